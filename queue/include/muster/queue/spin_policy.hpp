// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

namespace muster {

/// How long to look before sleeping.
///
/// Sleeping costs the sleeper the time of a wake-up, and costs the waker a system call. Spinning for about as long as a
/// wake-up takes is never worse than twice the best that could be done (Karlin et al., 1990), provided that there is a
/// processor to spin on.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct spin_policy {
  std::chrono::nanoseconds budget{0};  ///< 0: sleep at once
  unsigned processors = 1;             ///< that this program may keep busy

  /// Measures how long a sleeping thread takes to run after it was woken, and looks at affinity and CPU quota.
  /// One processor means no spinning. Cost: under a millisecond.
  [[nodiscard]] static spin_policy calibrate();
};

}  // namespace muster
