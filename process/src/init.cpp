// SPDX-License-Identifier: BSL-1.0
#include <muster/process/init.hpp>

#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <muster/base/cpu_list.hpp>
#include <muster/base/error.hpp>
#include <muster/base/log.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/error_info.hpp>

#include "asio_errors.hpp"
#include "channel.hpp"
#include "program_command.hpp"
#include "spawn.hpp"
#include "unix_socket.hpp"
#include "worker_main.hpp"

namespace muster {

namespace {

// The process that called init(); a forked child has another number and must call it again.
std::atomic<pid_t> initialized_process = 0;

// 0: unknown.
std::size_t count_threads() noexcept {
  struct stat found{};
  if (::stat("/proc/self/task", &found) != 0 || found.st_nlink < 2) return 0;
  return found.st_nlink - 2;  // a directory is named by its parent, by itself, and by each that is in it
}

// Those of libraries that start some when they are loaded, as sanitizers do, are there in every worker anyway.
const std::size_t threads_when_loaded = count_threads();

// Nothing is wrong yet: what stands before init may be meant for every process.
void warn_if_late() {
  const auto begun = count_threads();
  if (begun <= threads_when_loaded) return;
  log_to_stderr(log_level::warning,
                text("muster::init was called when ", begun - threads_when_loaded,
                     " of the program's threads had been started: what stands before it in main() runs in every worker "
                     "process too; write muster::init(argc, argv); as the first line of main()"));
}

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

std::string describe_rights(const detail::peer_credentials& maker) {
  return text(
      "process ", ::getpid(), " was started as a worker of process ", maker.pid,
      ", but the kernel gives it more rights than who started it: real user ", ::getuid(), ", effective user ",
      ::geteuid(), ", real group ", ::getgid(), ", effective group ", ::getegid(),
      ", or capabilities of the program's file; such a process cannot be told from one that others start, so it "
      "ends. A program that gives up root gives up the real user and group too (setresgid, setresuid), before "
      "it makes pools");
}

// So does the kernel with what a process executes that has given up only its effective user or group. It must neither
// work nor become a second program. That it was greeted counts as long as the greeting is of another process of its own
// user, which could end it anyway.
void end_if_made_with_rights() {
  const auto maker = detail::credentials_of_peer(detail::control_descriptor);
  if (maker.user != ::geteuid() || maker.pid == ::getpid()) return;
  try {
    detail::send_message(detail::control_descriptor, detail::message_kind::failure,
                         detail::body_of(error_info(errc::start_failed, describe_rights(maker))));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // Who has made it is gone.
  }
  ::_exit(EXIT_FAILURE);
}

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
  const auto before = initialized_process.exchange(::getpid());
  const bool is_first = before == 0;
  if (before != ::getpid()) detail::note_process_cpus();
  static_cast<void>(detail::program_command::of_process());  // the program may change its directory after this
  const char* found = std::getenv(detail::worker_variable);
  if (found == nullptr) {
    if (is_first) warn_if_late();
    return;
  }
  const std::string mark = found;
  ::unsetenv(detail::worker_variable);
  if (!is_greeted(mark)) return;
  if (has_been_given_rights()) return end_if_made_with_rights();
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
