// SPDX-License-Identifier: BSL-1.0
#pragma once

// Children by descriptor instead of by number: a pidfd cannot come to mean another process, becomes readable when
// the process has ended (all its threads are gone and its memory is released by then), and is reaped by whoever
// holds it: no SIGCHLD handler, no waitpid(-1).
//
// Thread safety: all functions are safe to call from any thread.

#include <sys/types.h>

#include <optional>

#include <muster/base/exit_status.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster {

/// A descriptor of the process `pid`. Free of races for a child that nobody has reaped yet.
/// Throws muster::error: ESRCH when there is no such process, EMFILE when descriptors run out.
[[nodiscard]] unique_fd open_pidfd(pid_t pid);

/// Sends `signal` to the process behind a pidfd; returns false when the process has already been reaped.
/// Throws muster::error: EPERM when this process may not, EBADF when the descriptor is no pidfd.
bool send_signal(int process, int signal);

/// Sends `signal` to all who are in the process group that the child behind a pidfd leads, or led until it ended:
/// whoever has reaped it, which a program that ignores SIGCHLD leaves to the kernel. Returns whether it was sent to
/// anybody. `pid` is the child's number: before Linux 6.9 the group is found by it, if it cannot have come to be
/// another's.
bool send_signal_to_group(int process, pid_t pid, int signal) noexcept;

/// Reaps the children of this process that have ended in the process group that the child behind a pidfd led. A program
/// that is the first of a container, or a subreaper, gets them when their parents die. Other children are left alone.
/// Returns whether the group has children of this process that have not ended. Never blocks.
/// Requires: the leader has ended, and `pid` was its number.
[[nodiscard]] bool reap_group(int process, pid_t pid) noexcept;

/// The same, but waits until all children in the group have ended.
void wait_for_group(int process, pid_t pid) noexcept;

/// Whether the process has ended, with all its threads; reaped or not. Never blocks.
/// Throws muster::error when the descriptor cannot be asked.
[[nodiscard]] bool has_ended(int process);

/// Whether all threads of the process have ended, as /proc says: so it is, too, while a tracer that had seized all of
/// them has not taken notice yet, and the pidfd is not readable. False where /proc does not say. Never blocks.
[[nodiscard]] bool all_threads_have_ended(int process) noexcept;

/// Whether some thread of the process has memory. A thread that exits gives up its memory before its descriptors: so a
/// process whose descriptors are closed and that has memory does not exit, but has closed them itself, or has executed
/// another program. Nothing where /proc does not tell. Never blocks.
[[nodiscard]] std::optional<bool> has_memory(int process) noexcept;

/// Waits for the child to end and reaps it. exit_status::lost() when somebody else did, or when SIGCHLD is ignored.
/// Unblocked by: the end of the child; of one that is traced, the tracer's letting go of it.
/// Requires: the descriptor is blocking, as open_pidfd makes it.
[[nodiscard]] exit_status reap(int process);

/// Reaps the child if that is possible now: nothing while it runs, and nothing while it has ended under a tracer (a
/// debugger, strace), who alone may have it until he lets go. exit_status::lost() when there is nothing to wait for.
/// Never blocks.
[[nodiscard]] std::optional<exit_status> try_reap(int process) noexcept;

/// How a child ended that nobody has reaped yet, which a tracer cannot keep from us: /proc says it.
/// exit_status::lost() where it does not.
[[nodiscard]] exit_status status_of_zombie(int process) noexcept;

}  // namespace muster
