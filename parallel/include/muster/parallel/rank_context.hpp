// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>

#include <muster/device/device.hpp>
#include <muster/parallel/row_range.hpp>

namespace muster {

/// Where a function of a world runs, for those that want to know: such a function takes a `const rank_context&` first.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
/// Lifetime: borrows the names, for the time of the call.
struct rank_context {
  std::size_t rank = 0;    ///< that runs the function
  std::size_t ranks = 1;   ///< how many the world has
  std::size_t slice = 0;   ///< which of them
  std::size_t slices = 1;  ///< of this rank's share that have rows: run_options::num_slices, or fewer
  row_range rows{};        ///< which of the selected rows of all ranks these are; of resident rows, which of the rank's
  muster::device device = muster::device::cpu();  ///< where the tensors that the function is given lie
  const std::string& function;                    ///< the name of the function
};

}  // namespace muster
