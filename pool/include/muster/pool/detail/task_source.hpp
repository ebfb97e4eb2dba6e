// SPDX-License-Identifier: BSL-1.0
#pragma once

// Futures of tasks in worker processes, and of calls that such tasks make: their values come encoded.

#include <utility>

#include <muster/async/detail/typed_source.hpp>
#include <muster/async/future.hpp>
#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster {

class nested_end;

namespace detail {

/// Of held_sources that are tasks of a pool_core, and calls of a task.
extern const source_functions task_functions;
extern const source_functions nested_functions;

template <class R>
inline constexpr typed_functions<R> task_source{{&task_functions}, &take_encoded<R>};
template <class R>
inline constexpr typed_functions<R> nested_source{{&nested_functions}, &take_encoded<R>};

template <class R>
[[nodiscard]] future<R> future_of_task(held_source task) {
  return future_access::of_handle<R>({std::move(task), task_source<R>});
}

/// As nested_end::require_current, memory and functions.
[[nodiscard]] nested_end& require_nested_end();
[[nodiscard]] arena& memory_of(nested_end& here) noexcept;
[[nodiscard]] token_encoder& functions_of(nested_end& here);
/// Has the call run. Throws as nested_end::submit.
[[nodiscard]] held_source submit_nested(nested_end& here, function_token function, outgoing_frame frame);

}  // namespace detail
}  // namespace muster
