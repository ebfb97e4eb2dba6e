// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <pthread.h>

#include <csignal>

namespace muster {

/// While it exists the calling thread has all signals blocked, or as before those that say what the thread itself does:
/// that it has failed, for which the program may have a handler (blocked, they would end the process at once), and what
/// profilers count. Threads inherit the mask of their maker: made around the start of a thread, it keeps the program's
/// signal handlers off a thread that the program does not know of.
///
/// Thread safety: an object belongs to its thread.
class signals_blocked {
public:
  signals_blocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) ::sigdelset(&all, own);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// Which ones were blocked before.
  [[nodiscard]] const sigset_t& before() const noexcept { return before_; }

private:
  sigset_t before_{};
};

}  // namespace muster
