// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>

#include "processes.hpp"

namespace muster::test {

/// A process beside the program that traces one of the program's workers or guests, with all its threads, as a debugger
/// or strace would: signals to the first are passed on, and of its end the tracer does not take notice, so that nobody
/// else may reap it until it lets go.
class tracer {
public:
  /// Of which ends it takes notice. Of none: one that has several threads has not ended for anybody who has its pidfd;
  /// nor are signals passed on then.
  enum class notice { of_other_threads, of_none };

  /// Returns when the process is traced. Check works(): the machine may forbid it.
  explicit tracer(pid_t traced, notice takes = notice::of_other_threads);

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
