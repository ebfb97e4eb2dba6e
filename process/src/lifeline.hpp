// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <utility>

#include <muster/base/unique_fd.hpp>

namespace muster::detail {

/// A pipe that nobody writes to: {read end for the workers, write end that only the parent keeps}.
[[nodiscard]] std::pair<unique_fd, unique_fd> make_lifeline();

/// Makes the kernel kill this process, and its process group if it leads one, with SIGKILL as soon as the last write
/// end of the pipe is closed, which is when the parent ends, however it ends. It needs no thread, and works while user
/// code spins with all signals blocked. Children of the parent that have been made by a raw system call (clone) hold
/// the write end as well, and exec closes the read end: so die_with is needed too. Ends the process at once when the
/// parent is gone already. Returns the descriptor that must stay open.
[[nodiscard]] unique_fd hold_lifeline(const unique_fd& read_end);

/// Makes the kernel kill this process with SIGKILL when the thread that started it ends, which in the parent is the
/// supervisor's: it ends after all workers, or with the parent. Descriptors do not matter to this, and it lasts when
/// the calling thread executes another program, unless that gives rights (set-user-ID). The process group is not
/// killed. Ends the process at once when it is no child of `parent` any more. Requires: called on the main thread.
void die_with(pid_t parent);

}  // namespace muster::detail
