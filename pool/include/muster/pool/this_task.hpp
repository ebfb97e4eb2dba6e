// SPDX-License-Identifier: BSL-1.0
#pragma once

/// What a running task may ask about itself.
///
/// Thread safety: safe; only the thread that the task was called on is "in" it.
namespace muster::this_task {

/// Whether somebody called future::cancel(); a long task looks from time to time and returns early.
/// False outside of a task. Cost: one load.
[[nodiscard]] bool stop_requested() noexcept;

}  // namespace muster::this_task
