// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "answer.hpp"
#include "session.hpp"

namespace service {

struct server_options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system chooses one
  /// How long a client may take to send a request, or to take its answer.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  /// How long requests under way may take after stop().
  std::chrono::nanoseconds drain = std::chrono::seconds(10);
};

/// Accepts connections and has their requests answered. Everything happens in whoever runs the io_context, which has
/// nothing left to do after stop(), once all connections have ended.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe; one thread runs the io_context, and all calls are
/// made there or while nobody runs it.
/// Lifetime: borrows the io_context. It must not be run any more when the server has gone.
class server {
public:
  /// Listens when it returns. Throws std::runtime_error with address and cause when it cannot.
  server(boost::asio::io_context& io, const server_options& options, handler answer_to);

  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

  /// Accepts no more connections, ends those that wait for a request, and the others when they have their answer; when
  /// server_options::drain is over, all that are left.
  void stop();

private:
  using sessions = std::list<session>;

  [[nodiscard]] boost::asio::awaitable<void> accept_all();
  void begin(boost::asio::ip::tcp::socket socket);
  void end(sessions::iterator which);
  void cut_off_all();

  boost::asio::io_context& io_;
  const server_options options_;
  const handler answer_to_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer drained_;
  sessions sessions_;
};

}  // namespace service
