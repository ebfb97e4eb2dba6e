// SPDX-License-Identifier: BSL-1.0
#pragma once

// Futures of tasks in worker processes, and of calls that such tasks make: their values come encoded.

#include <functional>
#include <memory>
#include <utility>

#include <muster/async/detail/typed_source.hpp>
#include <muster/async/future.hpp>
#include <muster/queue/outgoing_frame.hpp>
#include <muster/serialize/function_token.hpp>

namespace muster {

class nested_end;

namespace detail {

// Of held_sources that are tasks of a pool_core.
bool wait_for_task(const held_source& which, deadline until);
[[nodiscard]] bool task_is_done(const held_source& which);
bool cancel_task(const held_source& which, cancellation how);
void notify_of_task(const held_source& which, std::unique_ptr<end_notice> notice);
void drop_task(const held_source& which) noexcept;
[[nodiscard]] bool task_runs_here(const held_source& which) noexcept;
[[nodiscard]] std::function<void(cancellation)> canceller_of_task(const held_source& which);
[[nodiscard]] std::function<void(deadline)> waiter_of_task(const held_source& which);
void read_task(const held_source& which, const end_reader& reader);

template <class R>
inline constexpr typed_functions<R> task_source{{.wait = &wait_for_task,
                                                 .is_done = &task_is_done,
                                                 .cancel = &cancel_task,
                                                 .notify = &notify_of_task,
                                                 .drop = &drop_task,
                                                 .runs_here = &task_runs_here,
                                                 .canceller = &canceller_of_task,
                                                 .waiter = &waiter_of_task,
                                                 .read = &read_task},
                                                &take_encoded<R>};

template <class R>
[[nodiscard]] future<R> future_of_task(held_source task) {
  return future_access::of_handle<R>({std::move(task), task_source<R>});
}

// Of held_sources that are calls of a task.
bool wait_for_nested(const held_source& which, deadline until);
[[nodiscard]] bool nested_is_done(const held_source& which);
bool cancel_nested(const held_source& which, cancellation how);
void notify_of_nested(const held_source& which, std::unique_ptr<end_notice> notice);
void drop_nested(const held_source& which) noexcept;
[[nodiscard]] bool nested_runs_here(const held_source& which) noexcept;
[[nodiscard]] std::function<void(cancellation)> canceller_of_nested(const held_source& which);
[[nodiscard]] std::function<void(deadline)> waiter_of_nested(const held_source& which);
void read_nested(const held_source& which, const end_reader& reader);

template <class R>
inline constexpr typed_functions<R> nested_source{{.wait = &wait_for_nested,
                                                   .is_done = &nested_is_done,
                                                   .cancel = &cancel_nested,
                                                   .notify = &notify_of_nested,
                                                   .drop = &drop_nested,
                                                   .runs_here = &nested_runs_here,
                                                   .canceller = &canceller_of_nested,
                                                   .waiter = &waiter_of_nested,
                                                   .read = &read_nested},
                                                  &take_encoded<R>};

/// As nested_end::require_current, memory and functions.
[[nodiscard]] nested_end& require_nested_end();
[[nodiscard]] arena& memory_of(nested_end& here) noexcept;
[[nodiscard]] token_encoder& functions_of(nested_end& here);
/// Has the call run. Throws as nested_end::submit.
[[nodiscard]] held_source submit_nested(nested_end& here, function_token function, outgoing_frame frame);

}  // namespace detail
}  // namespace muster
