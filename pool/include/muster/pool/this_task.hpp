// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stop_token>

#include <muster/base/requirements.hpp>

/// What a running task may ask about itself; and what serves a call of an RPC group, which is not tried again here:
/// attempt() is that of the task around it, if there is one.
///
/// Thread safety: safe; only the thread that the task was called on is "in" it.
namespace muster::this_task {

/// Whether somebody called future::cancel(), or terminate() of a pool of threads; of an RPC group's call also whether
/// its deadline has passed, or its caller is dead (this_call::stop_requested()). A long task looks from time to time
/// and returns early. False outside of a task. Cost: a few loads.
[[nodiscard]] bool stop_requested() noexcept;

/// The same as a token, for std::condition_variable_any, std::stop_callback and what else takes one; callbacks run on
/// another thread. When the task has ended nobody asks any more. Outside of a task it can never be stopped.
/// Throws muster::error when there is no thread to be had. Cost: in a worker process a thread for the rest of the task;
/// a member of an RPC group has one for all calls.
[[nodiscard]] std::stop_token stop_token();

/// Which attempt at this task it is, or, in a map, at this element: 1, and more after a failure that task_options said
/// to try again for. 0 outside of a task.
[[nodiscard]] unsigned attempt() noexcept;

}  // namespace muster::this_task
