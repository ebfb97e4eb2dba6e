// SPDX-License-Identifier: BSL-1.0
#include <muster/process/init.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include <muster/base/error.hpp>

#include "channel.hpp"
#include "spawn.hpp"
#include "worker_main.hpp"

namespace muster {

namespace {

// The process that called init(); a forked child has another number and must call it again.
std::atomic<pid_t> initialized_process = 0;

// Whether the socket at the agreed place holds the greeting that goes with the mark. Looks without taking anything, so
// that an unrelated descriptor of that number is not disturbed.
bool is_greeted(const std::string& mark) {
  std::array<char, 64> bytes{};
  const auto length = ::recv(detail::control_descriptor, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  const auto kind = detail::message_kind::greeting;
  return length == static_cast<ssize_t>(sizeof kind + mark.size()) &&
         std::memcmp(bytes.data(), &kind, sizeof kind) == 0 &&
         std::memcmp(bytes.data() + sizeof kind, mark.data(), mark.size()) == 0;
}

}  // namespace

void init(int /*argc*/, char** /*argv*/) {
  initialized_process = ::getpid();
  const char* found = std::getenv(detail::worker_variable);
  if (found == nullptr) return;
  const std::string mark = found;
  ::unsetenv(detail::worker_variable);
  if (is_greeted(mark)) detail::run_worker();
}

void detail::require_init() {
  if (initialized_process == ::getpid()) return;
  throw error(errc::not_initialized,
              "a pool was made, but muster::init was not called in this process: worker processes are this program "
              "executed anew, so write muster::init(argc, argv); as the first line of main()");
}

}  // namespace muster
