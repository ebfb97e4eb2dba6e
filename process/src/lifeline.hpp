// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <muster/base/unique_fd.hpp>

namespace muster::detail {

/// A pipe that nobody writes to: {read end for the workers, write end that only the parent keeps}.
[[nodiscard]] std::pair<unique_fd, unique_fd> make_lifeline();

/// Makes the kernel kill this process, and its process group if it leads one, with SIGKILL as soon as the last write
/// end of the pipe is closed, which is when the parent ends, however it ends. It needs no thread, works while user code
/// spins with all signals blocked, and is not tied to the thread that started this process, as PR_SET_PDEATHSIG is.
/// Ends the process at once when the parent is gone already.
/// Returns the descriptor that must stay open.
[[nodiscard]] unique_fd hold_lifeline(const unique_fd& read_end);

}  // namespace muster::detail
