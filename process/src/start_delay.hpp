// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::detail {

/// How long to wait before a process is tried again that could not be started for want of something: 10 ms, and twice
/// as long after each further failure, up to 5 s.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class start_delay {
public:
  static constexpr std::chrono::nanoseconds first = std::chrono::milliseconds(10);
  static constexpr std::chrono::nanoseconds longest = std::chrono::seconds(5);

  /// The wait after one more failure. Ends when somebody's patience does, of which there is `patience` left; nothing
  /// left: it is not looked at.
  [[nodiscard]] constexpr std::chrono::nanoseconds next(std::chrono::nanoseconds patience) noexcept {
    const auto delay = std::exchange(next_, std::min(2 * next_, longest));
    return patience > patience.zero() ? std::min(delay, patience) : delay;
  }
  /// A process could be started.
  constexpr void reset() noexcept { next_ = first; }

private:
  std::chrono::nanoseconds next_ = first;
};

}  // namespace muster::detail
