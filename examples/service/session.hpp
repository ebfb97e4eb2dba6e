// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "answer.hpp"

namespace service {

/// What a server and the coroutine of one connection tell each other.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe; all of it happens on the server's executor.
struct session {
  bool answering = false;  ///< a request has come whose answer is not yet sent
  bool last = false;       ///< the server wants no further request
  boost::asio::cancellation_signal cut_off;
};

/// Answers the requests of one connection, one after the other, until the client closes it, sends what is no HTTP,
/// takes longer than `patience` to send a request or to take an answer, or until the answer after session::last is set.
/// Throws boost::system::system_error when the connection breaks or is cut off.
/// Lifetime: borrows `answer_to` and `state`.
[[nodiscard]] boost::asio::awaitable<void> serve(boost::asio::ip::tcp::socket socket, const handler& answer_to,
                                                 std::chrono::nanoseconds patience, session& state);

}  // namespace service
