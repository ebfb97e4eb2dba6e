// SPDX-License-Identifier: BSL-1.0
#pragma once

// Children by descriptor instead of by number: a pidfd cannot come to mean another process, becomes readable when
// the process has ended (all its threads are gone and its memory is released by then), and is reaped by whoever
// holds it: no SIGCHLD handler, no waitpid(-1).
//
// Thread safety: all functions are safe to call from any thread.

#include <sys/types.h>

#include <muster/base/exit_status.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster {

/// A descriptor of the process `pid`. Free of races for a child that nobody has reaped yet.
/// Throws muster::error: ESRCH when there is no such process, EMFILE when descriptors run out.
[[nodiscard]] unique_fd open_pidfd(pid_t pid);

/// Sends `signal` to the process behind a pidfd; returns false when the process has already been reaped.
bool send_signal(int process, int signal);

/// Waits for the child to end and reaps it. exit_status::lost() when somebody else did, or when SIGCHLD is ignored.
/// Unblocked by: the end of the child. Returns at once when the pidfd is readable.
[[nodiscard]] exit_status reap(int process);

}  // namespace muster
