// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/base/detail/duration.hpp>

namespace muster::detail {

/// The beginning of a call's arguments.
struct world_call_header {
  std::uint32_t function = 0;  ///< its number in the world
  std::uint32_t slices = 1;    ///< of each rank's share
  std::uint64_t outputs = 0;   ///< which are wanted: a bit for each
  std::uint64_t rows = 0;      ///< selected rows of the scattered inputs, if there are such
  std::uint64_t step = 0;      ///< how often the function's rules will have been applied, with this call
};

/// Where a call's time went in one rank, in nanoseconds. Small, because it goes with each reply.
struct rank_times {
  float scatter = 0;     ///< getting at its share of the inputs
  float compute = 0;     ///< in the function
  float accumulate = 0;  ///< joining slices, writing updates
  float wait = 0;        ///< for other ranks' results
  float reduce = 0;      ///< joining those
};

/// One of them. What no call can take, where somebody has overwritten it, is nothing.
///
/// Thread safety: safe.
[[nodiscard]] constexpr std::chrono::nanoseconds nanoseconds_of(float time) noexcept {
  constexpr float most = 1e18F;  // thirty years
  return std::chrono::nanoseconds(time > 0 && time < most ? static_cast<std::int64_t>(time) : 0);
}

}  // namespace muster::detail
