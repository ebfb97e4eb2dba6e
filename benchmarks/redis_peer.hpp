// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace bench {

/// A Redis server of our own, on a Unix socket, with one value, and a client of it that asks for that.
class redis_peer {
public:
  /// Starts it. `bytes`: of the value.
  explicit redis_peer(std::size_t bytes);
  redis_peer(const redis_peer&) = delete;
  redis_peer& operator=(const redis_peer&) = delete;
  ~redis_peer();

  /// Gets the value so many times, into one buffer.
  void get(std::size_t count);

  /// Why there can be none here; empty where there can.
  [[nodiscard]] static std::string hindrance();
  [[nodiscard]] static std::string version();

private:
  void connect();
  void send(const std::string& what);
  /// Up to the end of a line, which is left out.
  [[nodiscard]] std::string read_line();
  void read(char* room, std::size_t bytes);

  const std::string directory_;
  pid_t server_ = 0;
  boost::asio::io_context loop_;
  boost::asio::local::stream_protocol::socket socket_{loop_};
  std::vector<char> value_;
};

}  // namespace bench
