// SPDX-License-Identifier: BSL-1.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <muster/base/memfd.hpp>
#include <muster/base/unique_fd.hpp>

#include "service/request_target.hpp"
#include "service/router.hpp"
#include "service/server.hpp"
#include "service/tasks.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::size_t file_bytes = std::size_t{64} << 10U;
constexpr std::size_t connections = 16;

/// The service's server in a thread of its own.
class running_server {
public:
  explicit running_server(service::handler answer_to)
      : server_(io_, {}, std::move(answer_to)), endpoint_(server_.endpoint()), thread_([this] { io_.run(); }) {}
  running_server(const running_server&) = delete;
  running_server& operator=(const running_server&) = delete;
  ~running_server() {
    asio::post(io_, [this] { server_.stop(); });
    thread_.join();
  }

  [[nodiscard]] tcp::endpoint endpoint() const { return endpoint_; }

private:
  asio::io_context io_{1};
  service::server server_;
  const tcp::endpoint endpoint_;
  std::thread thread_;
};

/// Clients with connections that stay open, each with one request under way. All answers must be equal in length.
class clients {
public:
  clients(const tcp::endpoint& server, const std::string& target) : request_("GET " + target + " HTTP/1.1\r\n\r\n") {
    for (std::size_t index = 0; index < connections; ++index) sockets_.emplace_back(io_).connect(server);
    answer_.resize(answer_bytes());
  }

  void run(std::size_t requests) {
    const auto ahead = std::min(requests, connections);
    for (std::size_t sent = 0; sent < ahead; ++sent) send(sent);
    for (std::size_t got = 0; got < requests; ++got) {
      receive(got);
      if (got + ahead < requests) send(got);
    }
  }

private:
  void send(std::size_t number) { asio::write(sockets_[number % connections], asio::buffer(request_)); }
  void receive(std::size_t number) {
    asio::read(sockets_[number % connections], asio::buffer(answer_));
    if (!answer_.starts_with("HTTP/1.1 200") || !answer_.ends_with('\n')) std::abort();
  }
  // The first answer ends where the line with the hash does.
  std::size_t answer_bytes() {
    send(0);
    std::string first;
    while (first.find("\r\n\r\n") == std::string::npos || first.ends_with("\r\n\r\n") || !first.ends_with('\n')) {
      std::array<char, 4096> piece{};
      first.append(piece.data(), sockets_[0].read_some(asio::buffer(piece)));
    }
    return first.size();
  }

  asio::io_context io_;
  std::vector<tcp::socket> sockets_;
  const std::string request_;
  std::string answer_;
};

/// A file of zeros that lies in memory, and the target of a request for its hash.
class hashed_file {
public:
  hashed_file() : file_(muster::make_memfd("bench", file_bytes)) {}
  [[nodiscard]] std::string target() const {
    return "/hash?path=/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
  }

private:
  muster::unique_fd file_;
};

// As the service's router, but without workers.
asio::awaitable<service::answer> answer_inline(std::string target) {
  const service::request_target asked(target);
  const auto& path = asked.parameter("path", "FILE");
  co_return service::answer_of(service::hash_file(path), path);
}

side requests_to(const std::string& name, clients& askers) {
  return {.name = name, .run = [&askers](std::size_t count) { askers.run(count); }};
}

row service_rps(const effort& how) {
  const hashed_file file;
  const muster::pool pool;
  const running_server with_pool(service::router(pool, std::chrono::seconds(10)));
  const running_server without(answer_inline);
  clients of_pool(with_pool.endpoint(), file.target());
  clients of_inline(without.endpoint(), file.target());
  auto found = compare("service_rps", how, requests_to("requests answered by a pool", of_pool),
                       requests_to("the same answered in the server itself", of_inline));
  constexpr double second = 1e9;
  found.unit = "requests/s";
  found.value = second / found.value;
  found.peer_value = second / found.peer_value;
  found.ratio = 1 / found.ratio;
  return found;
}

}  // namespace

std::vector<workload> services() { return {{.name = "service_rps", .run = service_rps}}; }

}  // namespace bench
