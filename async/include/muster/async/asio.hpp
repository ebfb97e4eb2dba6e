// SPDX-License-Identifier: BSL-1.0
#pragma once

// Futures as asynchronous operations of Boost.Asio:
//
//     int sum = co_await pool.apply_async(add, 1, 2)(asio::use_awaitable);
//     muster::result<int> sum = co_await pool.apply_async(add, 1, 2).as_result();
//     pool.apply_async(add, 1, 2)([](std::exception_ptr failure, int sum) { … });
//
// Needs no more than the headers of Boost.Asio.
//
// Completion: once, as if by boost::asio::post on the handler's associated executor, never inside the call that begins;
// handlers without one are called on the pool's callback thread, or its loop. Work on that executor is outstanding
// meanwhile. What completes is allocated with the handler's associated allocator. Cancellation by the handler's
// associated slot: a task that no worker has begun is withdrawn by any type, and has had no effect. One that runs goes
// on under total, is asked to stop under partial, and is killed with its worker under terminal (see
// muster::cancellation); the operation completes when the task has ended. A map is given up under partial and terminal,
// and goes on under total. When the pool goes away first, the operation completes with errc::cancelled. Thread safety:
// as futures; any number of operations may be under way. A signal is emitted where the handler runs.

#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <muster/async/detail/async_operation.hpp>
#include <muster/async/future.hpp>
#include <muster/serialize/boost_error_code.hpp>

namespace muster {

template <class R>
template <class Token>
auto future<R>::operator()(Token&& token) {
  using form = detail::value_or_exception<R>;
  handle_.require_noticed();
  return boost::asio::async_initiate<Token, typename form::signature>(detail::initiate_wait<R, form>(*this), token,
                                                                      std::move(*this));
}

template <class R>
template <class Token>
auto future<R>::as_result(Token&& token) {
  using form = detail::whole_result<R>;
  handle_.require_noticed();
  return boost::asio::async_initiate<Token, typename form::signature>(detail::initiate_wait<R, form>(*this), token,
                                                                      std::move(*this));
}

template <class R>
auto future<R>::as_result() {
  return as_result(boost::asio::deferred);
}

}  // namespace muster
