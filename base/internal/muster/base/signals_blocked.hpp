// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <pthread.h>

#include <csignal>

namespace muster {

/// While it exists the calling thread has all signals blocked. Threads inherit the mask of their maker: made around the
/// start of a thread, it keeps the program's signal handlers off a thread that the program does not know of.
///
/// Thread safety: an object belongs to its thread.
class signals_blocked {
public:
  signals_blocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_{};
};

}  // namespace muster
