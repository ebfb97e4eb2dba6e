// SPDX-License-Identifier: BSL-1.0
#pragma once

// Futures (muster/async/asio.hpp), and the results of streams, as asynchronous operations of Boost.Asio:
//
//     auto pages = pool.imap(render, requests);
//     while (auto page = co_await pages.async_next(asio::use_awaitable)) send(*page);
//
// A wait for a stream's next result completes as one for a future does; cancelled, it just ends (stream::async_next).
//
// Thread safety: as streams.

#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <muster/async/asio.hpp>
#include <muster/pool/detail/stream_operation.hpp>
#include <muster/pool/stream.hpp>

namespace muster {

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
