// SPDX-License-Identifier: BSL-1.0
#pragma once

// Futures, and the results of streams, as asynchronous operations of Boost.Asio:
//
//     int sum = co_await pool.apply_async(add, 1, 2)(asio::use_awaitable);
//     muster::result<int> sum = co_await pool.apply_async(add, 1, 2).as_result();
//     pool.apply_async(add, 1, 2)([](std::exception_ptr failure, int sum) { … });
//
//     auto pages = pool.imap(render, requests);
//     while (auto page = co_await pages.async_next(asio::use_awaitable)) send(*page);
//
// Needs no more than the headers of Boost.Asio.
//
// Completion: once, as if by boost::asio::post on the handler's associated executor, never inside the call that begins;
// handlers without one are called on the pool's callback thread, or its loop. Work on that executor is outstanding
// meanwhile. What completes is allocated with the handler's associated allocator. Cancellation by the handler's
// associated slot: a task that no worker has begun is withdrawn by any type, and has had no effect. One that runs goes
// on under total, is asked to stop under partial, and is killed with its worker under terminal (see
// muster::cancellation); the operation completes when the task has ended. A map is given up under partial and terminal,
// and goes on under total. A wait for a stream just ends (stream::async_next). When the pool goes away first, the
// operation completes with errc::cancelled. Thread safety: as futures; any number of operations may be under way. A
// signal is emitted where the handler runs.

#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <muster/pool/detail/async_operation.hpp>
#include <muster/pool/detail/stream_operation.hpp>
#include <muster/pool/stream.hpp>
#include <muster/serialize/boost_error_code.hpp>

namespace muster {

template <class R>
template <class Token>
auto future<R>::operator()(Token&& token) {
  using form = detail::value_or_exception<R>;
  require_valid();
  return boost::asio::async_initiate<Token, typename form::signature>(detail::initiate_wait<R, form>(*this), token,
                                                                      std::move(*this));
}

template <class R>
template <class Token>
auto future<R>::as_result(Token&& token) {
  using form = detail::whole_result<R>;
  require_valid();
  return boost::asio::async_initiate<Token, typename form::signature>(detail::initiate_wait<R, form>(*this), token,
                                                                      std::move(*this));
}

template <class R>
auto future<R>::as_result() {
  return as_result(boost::asio::deferred);
}

template <class R>
template <class Token>
auto stream<R>::async_next(Token&& token) {
  using next = detail::next_value<R>;
  return boost::asio::async_initiate<Token, typename next::form::signature>(detail::initiate_next<R, next>(source()),
                                                                            token, source_);
}

template <class R>
template <class Token>
auto stream<R>::async_next_result(Token&& token) {
  using next = detail::next_result<R>;
  return boost::asio::async_initiate<Token, typename next::form::signature>(detail::initiate_next<R, next>(source()),
                                                                            token, source_);
}

template <class R>
auto stream<R>::async_next_result() {
  return async_next_result(boost::asio::deferred);
}

}  // namespace muster
