// SPDX-License-Identifier: BSL-1.0
#include <muster/process/init.hpp>

#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "channel.hpp"
#include "spawn.hpp"
#include "unix_socket.hpp"
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

// Whether this program has more rights than who started it (set-user-ID, set-group-ID, capabilities of the file): then
// neither environment nor descriptors are to be trusted.
bool has_been_given_rights() { return ::getauxval(AT_SECURE) != 0; }

// A worker whose parent has gone must not become a second program, and nobody else can have workers made.
void require_parent() {
  const auto maker = detail::credentials_of_peer(detail::control_descriptor);
  if (maker.pid == ::getppid() && maker.user == ::geteuid()) return;
  if (!detail::is_hung_up(detail::control_descriptor)) {
    std::fprintf(stderr,
                 "muster: process %d was started by process %d as user %u, but as a worker of process %d of user %u: "
                 "it ends\n",
                 ::getpid(), ::getppid(), ::geteuid(), maker.pid, maker.user);
  }
  ::_exit(EXIT_FAILURE);
}

}  // namespace

void init(int /*argc*/, char** /*argv*/) {
  initialized_process = ::getpid();
  const char* found = std::getenv(detail::worker_variable);
  if (found == nullptr) return;
  const std::string mark = found;
  ::unsetenv(detail::worker_variable);
  if (has_been_given_rights() || !is_greeted(mark)) return;
  require_parent();
  detail::run_worker();
}

void detail::require_init() {
  if (has_been_given_rights()) {
    throw error(errc::not_initialized,
                "a pool was made in a program that has more rights than who started it (set-user-ID, set-group-ID or "
                "capabilities): its workers could not be told from processes that others start; give up the rights, "
                "or execute a program without them, and make the pool there");
  }
  if (initialized_process == ::getpid()) return;
  if (initialized_process != 0) {
    throw error(errc::not_initialized,
                text("a pool was made in a process that was forked from process ", initialized_process.load(),
                     ", which had called muster::init: call muster::init(argc, argv) again after fork() or daemon()"));
  }
  throw error(errc::not_initialized,
              "a pool was made, but muster::init was not called in this process: worker processes are this program "
              "executed anew, so write muster::init(argc, argv); as the first line of main()");
}

}  // namespace muster
