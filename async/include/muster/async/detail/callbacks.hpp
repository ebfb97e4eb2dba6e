// SPDX-License-Identifier: BSL-1.0
#pragma once

// What templates do with a callback_executor, which is declared only.

#include <memory>

#include <muster/async/detail/deferred_call.hpp>
#include <muster/base/clock.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

class callback_executor;

/// Allocates what posting `call` needs, and starts the thread. Where none can be had, the call waits for one. Throws
/// std::bad_alloc.
void prepare(callback_executor& where, deferred_call& call);
/// Runs `call` soon, never inside this function. False once the executor has stopped; `call` stays the caller's then.
/// Requires: it was prepared.
[[nodiscard]] bool try_post(callback_executor& where, deferred_ptr& call) noexcept;
/// The loop on which it runs calls; null: on threads of its own.
[[nodiscard]] boost::asio::io_context* loop_of(const callback_executor& where) noexcept;
/// Not before `when`. Throws std::bad_alloc.
void post_at(callback_executor& where, clock::time_point when, deferred_ptr call);

}  // namespace muster::detail
