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

  /// What a wake-up takes where processors are virtual, and the most that is worth while elsewhere
  /// (docs/design/waiting.md).
  static constexpr std::chrono::nanoseconds usual_budget = std::chrono::microseconds(50);

  /// Of the calling process: usual_budget, or none where it may keep one processor busy only.
  /// Thread safety: safe. Cost: 0.1 ms the first time, and when the process's processors have changed (effective_cpus);
  /// else well under a microsecond.
  [[nodiscard]] static spin_policy of_process();
};

}  // namespace muster
