// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

#include "data.hpp"

namespace digits {

/// Losses in their order.
struct curve {
  struct point {
    double step = 0;
    double loss = 0;
  };
  std::string name;
  std::vector<point> points;
};

/// Curves of losses, and a page of those images that were taken for something else, each with what it shows and what it
/// was taken for, as SVG. Without guesses there is no such page.
[[nodiscard]] std::string picture_of(const std::string& title, const std::vector<curve>& curves, const samples& on,
                                     const muster::tensor& guesses);

/// Throws std::runtime_error.
void write_file(const std::string& name, const std::string& content);

}  // namespace digits
