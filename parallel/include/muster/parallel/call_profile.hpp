// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <vector>

#include <muster/base/detail/duration.hpp>

namespace muster {

/// Where the time of a function's calls went, in sum over the calls.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_profile {
  /// In one rank.
  struct share {
    std::chrono::nanoseconds scatter{};     ///< getting at its rows; copying them together, where a list selects them
    std::chrono::nanoseconds compute{};     ///< in the function
    std::chrono::nanoseconds accumulate{};  ///< joining slices; writing updates of the rank's own
    std::chrono::nanoseconds wait{};        ///< for other ranks' values of updates that are reduced
    std::chrono::nanoseconds reduce{};      ///< joining those, and applying rules
  };

  std::uint64_t calls = 0;           ///< that were successful
  std::uint64_t failed = 0;          ///< the others; their times are not counted
  std::chrono::nanoseconds total{};  ///< in the caller, from beginning to end
  /// Of the inputs that were given with successful calls: the selected rows of rows() inputs, which the ranks read
  /// where they lie, and what was written of whole() inputs, where a tensor is a reference. What lies in variables is
  /// no input.
  std::uint64_t input_bytes = 0;
  std::vector<share> ranks{};  ///< by rank
};

/// Prints a table: a line for each rank, in microseconds per call.
///
/// Thread safety: safe.
std::ostream& operator<<(std::ostream& out, const call_profile& what);

}  // namespace muster
