// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

#include <muster/base/unique_fd.hpp>

#include "processes.hpp"

namespace muster::test {

/// While it lives, the calling thread and another one are on one processor: each step of a tracee wakes both of them
/// once, and to wake somebody on an idle processor takes ten times as long where processors are virtual.
///
/// Thread safety: belongs to the thread that made it.
class same_processor {
public:
  explicit same_processor(pid_t id);
  same_processor(const same_processor&) = delete;
  same_processor& operator=(const same_processor&) = delete;
  ~same_processor();

private:
  pid_t id_;
};

/// A process or thread under ptrace. It *lands* by raising SIGTRAP, and stops there.
///
/// Thread safety: belongs to the thread that made it, whom the kernel takes for the tracer.
class tracee {
public:
  /// `asleep`: it is in a system call that sleeps, and will stop behind it. `gone`: it has ended, and is reaped.
  enum class outcome { stopped, asleep, gone };

  /// Begins to trace it; it runs on.
  explicit tracee(pid_t id);
  tracee(const tracee&) = delete;
  tracee& operator=(const tracee&) = delete;

  /// Stops it where it is.
  outcome interrupt();
  /// Lets it run until it lands or ends.
  outcome run_to_landing();
  /// Lets one that is stopped run until it is about to execute what is at `function` in this program, which is the
  /// other's too, or until it lands or ends. Only on x86-64: elsewhere it stays where it is.
  outcome run_to(std::uintptr_t function);
  /// Lets it execute one instruction. Only a step that `may_sleep` is found asleep: looking costs time.
  outcome step(bool may_sleep = false);
  /// After `asleep`: waits until it was woken and has stopped.
  outcome await_stop();
  /// Ends the tracing of one that is stopped; it runs on.
  void release();

private:
  [[nodiscard]] bool is_asleep() const;

  pid_t id_;
  same_processor together_;
  bool stopped_ = false;
};

/// A process of its own that steps a thread of this one.
class thread_stepper {
public:
  thread_stepper();
  thread_stepper(const thread_stepper&) = delete;
  thread_stepper& operator=(const thread_stepper&) = delete;

  /// Runs `what` in a new thread, stopped after so many instructions, or at its end if it has fewer. Then calls
  /// `meanwhile`, which must neither allocate nor lock anything: the thread may just have done so. Then lets the thread
  /// go on, and waits for its end. Returns after how many instructions it was stopped.
  unsigned run(const std::function<void()>& what, unsigned instructions, const std::function<void()>& meanwhile);

private:
  int serve();

  std::array<unique_fd, 2> commands_;
  std::array<unique_fd, 2> answers_;
  shared<std::atomic<bool>> ended_;
  processes process_;
};

}  // namespace muster::test
