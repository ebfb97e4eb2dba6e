// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

#include "scaling_figures.hpp"

namespace scaling {

/// One line of a table.
struct row {
  std::string part;  ///< which table
  std::string name;  ///< which way to do it
  plan what;
  figures found;   ///< under full load: four tasks under way for each worker
  figures halved;  ///< one task for every second worker: for the delays; empty where that is not asked for
};

/// How much of what the workers could do if handing out tasks cost nothing.
[[nodiscard]] double share_of_ideal(const row& of);

void print_heading(const std::string& part);
void print(const row& found);
/// What threads did and what the simulation says they do.
void print_counts(const row& threads, const row& simulated);
[[nodiscard]] std::string to_json(const std::vector<row>& rows);

/// A chart: share of the ideal over workers, for each length of task; `plain` solid, `better` dashed.
[[nodiscard]] std::string to_svg(const std::vector<row>& rows, const std::string& plain, const std::string& better);

}  // namespace scaling
