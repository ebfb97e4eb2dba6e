// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/queue/retry_reasons.hpp>

namespace muster {

/// What most tasks do not ask for: an end by some time, and when to be tried again.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct task_terms {
  std::chrono::nanoseconds timeout{};  ///< how long it, or an element of it, may run; 0: as long as it likes
  clock::time_point deadline = clock::time_point::max();  ///< when it must have ended
  clock::time_point since{};                              ///< when the call began that the deadline is of
  retry_reasons retry_on = retry::death();
  std::chrono::nanoseconds retry_delay{};  ///< before the second attempt; twice as long before each further one

  /// Whether it differs from what tasks have without.
  [[nodiscard]] bool some() const noexcept {
    return timeout.count() > 0 || deadline != clock::time_point::max() || retry_on != retry::death() ||
           retry_delay.count() > 0;
  }
};

}  // namespace muster
