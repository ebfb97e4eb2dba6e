// SPDX-License-Identifier: BSL-1.0
// service: an HTTP server whose requests are worked out in worker processes. A request that crashes gets an error for
// an answer, and costs nobody else anything.
#include <csignal>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <muster/base/effective_cpus.hpp>
#include <muster/pool/pool.hpp>

#include "router.hpp"
#include "server.hpp"

namespace service {
namespace {

using std::chrono::milliseconds;

struct settings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;
  unsigned workers = muster::effective_cpus();
  std::size_t pending = 1000;
  std::int64_t deadline = 5000;
  std::int64_t patience = 30'000;
  std::int64_t drain = 10'000;
};

void run(const settings& chosen) {
  const muster::pool pool({.workers = chosen.workers,
                           .name = "service",
                           .max_pending = chosen.pending,
                           .overflow = muster::overflow_policy::fail_task});
  boost::asio::io_context io(1);
  const server_options how{.address = chosen.address,
                           .port = chosen.port,
                           .patience = milliseconds(chosen.patience),
                           .drain = milliseconds(chosen.drain)};
  server web(io, how, router(pool, milliseconds(chosen.deadline)));
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& /*none*/, int /*which*/) {
    web.stop();
    signals.clear();  // a second one ends the program at once
  });
  std::cout << "service: listening on http://" << web.endpoint() << std::endl;
  io.run();
  std::cout << "service: stopped\n";
}

// Milliseconds; as nanoseconds, which is what becomes of them, those of a year are far from too many.
CLI::Range time_from(std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{366} * 24 * 3600 * 1000;
  return {least, most};
}

void add_options(CLI::App& app, settings& chosen) {
  app.add_option("--address", chosen.address, "Where to listen")->capture_default_str();
  app.add_option("--port", chosen.port, "TCP port; 0: any, and it is printed")->capture_default_str();
  app.add_option("--workers", chosen.workers, "Worker processes")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--pending", chosen.pending, "Tasks that may wait or run; for one more the answer is 503")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--deadline", chosen.deadline, "Milliseconds that a task may take; longer, and the answer is 504")
      ->check(time_from(1))
      ->capture_default_str();
  app.add_option("--patience", chosen.patience, "Milliseconds that a client may take to send or receive")
      ->check(time_from(1))
      ->capture_default_str();
  app.add_option("--drain", chosen.drain, "Milliseconds that requests may take after SIGTERM or SIGINT")
      ->check(time_from(0))
      ->capture_default_str();
}

}  // namespace
}  // namespace service

int main(int argc, char** argv) {
  muster::init(argc, argv);
  service::settings chosen;
  CLI::App app("Answers HTTP requests in worker processes; GET / says which. SIGTERM and SIGINT end it in good order.");
  service::add_options(app, chosen);
  CLI11_PARSE(app, argc, argv);
  try {
    service::run(chosen);
  } catch (const std::exception& failure) {
    std::cerr << "service: " << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}
