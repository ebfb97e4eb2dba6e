// SPDX-License-Identifier: BSL-1.0
#include "server.hpp"

#include <exception>
#include <stdexcept>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace service {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

tcp::acceptor listen_on(asio::io_context& io, const server_options& options) {
  try {
    return {io, tcp::endpoint(asio::ip::make_address(options.address), options.port)};
  } catch (const boost::system::system_error& failure) {
    throw std::runtime_error("cannot listen on address '" + options.address + "', port " +
                             std::to_string(options.port) + ": " + failure.code().message() +
                             "; expected an address of this machine and a port that is free");
  }
}

}  // namespace

server::server(asio::io_context& io, const server_options& options, handler answer_to)
    : io_(io), options_(options), answer_to_(std::move(answer_to)), acceptor_(listen_on(io, options)), drained_(io) {
  asio::co_spawn(io_, accept_all(), asio::detached);
}

asio::awaitable<void> server::accept_all() {
  asio::steady_timer pause(io_);
  for (;;) {
    auto [failure, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
    if (!acceptor_.is_open()) co_return;  // also with a connection that came while the server was being stopped
    if (!failure) {
      begin(std::move(socket));
    } else {  // out of descriptors, mostly: some may be free soon
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::use_awaitable);
    }
  }
}

void server::begin(tcp::socket socket) {
  const auto which = sessions_.emplace(sessions_.end());
  // A connection that breaks is its client's affair: the exception is dropped.
  asio::co_spawn(io_, serve(std::move(socket), answer_to_, options_.patience, *which),
                 asio::bind_cancellation_slot(which->cut_off.slot(),
                                              [this, which](const std::exception_ptr& /*broken*/) { end(which); }));
}

void server::end(sessions::iterator which) {
  sessions_.erase(which);
  if (sessions_.empty()) drained_.cancel();
}

void server::stop() {
  acceptor_.close();
  for (auto& each : sessions_) {
    each.last = true;
    if (!each.answering) each.cut_off.emit(asio::cancellation_type::terminal);
  }
  if (sessions_.empty()) return;
  drained_.expires_after(options_.drain);
  drained_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) cut_off_all();
  });
}

void server::cut_off_all() {
  for (auto& each : sessions_) each.cut_off.emit(asio::cancellation_type::terminal);
}

}  // namespace service
