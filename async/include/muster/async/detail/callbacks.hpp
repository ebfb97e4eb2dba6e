// SPDX-License-Identifier: BSL-1.0
#pragma once

// What templates do with a callback_executor, which is declared only.

#include <memory>

#include <muster/async/detail/deferred_call.hpp>
#include <muster/base/clock.hpp>

namespace muster::detail {

class callback_executor;

/// Allocates what posting `call` needs, and starts the thread. Where none can be had, the call waits for one. Throws
/// std::bad_alloc.
void prepare(callback_executor& where, deferred_call& call);
/// Runs `call` soon, never inside this function. False once the executor has stopped; `call` stays the caller's then.
/// Requires: it was prepared.
[[nodiscard]] bool try_post(callback_executor& where, deferred_ptr& call) noexcept;
/// Not before `when`. Throws std::bad_alloc.
void post_at(callback_executor& where, clock::time_point when, deferred_ptr call);

}  // namespace muster::detail
