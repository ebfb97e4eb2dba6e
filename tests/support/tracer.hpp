// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>

#include "processes.hpp"

namespace muster::test {

/// A process beside the program that traces one of the program's workers, with all its threads, as a debugger or strace
/// would: signals to the first are passed on, and of its end the tracer does not take notice, so that nobody else may
/// reap it until it lets go.
class tracer {
public:
  /// Returns when the process is traced. Check works(): the machine may forbid it.
  explicit tracer(pid_t traced);

  [[nodiscard]] bool works() const { return *traces_ == 1; }
  /// Ends, and with it the tracing.
  void let_go();

private:
  shared<std::atomic<int>> traces_;  // 0: not yet; -1: it may not
  std::unique_ptr<processes> process_;
};

/// Whether the process is a zombie.
[[nodiscard]] bool is_zombie(pid_t pid);

}  // namespace muster::test
