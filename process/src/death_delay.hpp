// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>

namespace muster::detail {

/// How long to wait before a process is asked once more whether it has ended, or can be reaped, where no event says so.
inline constexpr std::chrono::milliseconds first_death_delay(1);

[[nodiscard]] constexpr std::chrono::milliseconds next_death_delay(std::chrono::milliseconds last) noexcept {
  constexpr std::chrono::milliseconds longest(100);
  return std::min(2 * last, longest);
}

}  // namespace muster::detail
