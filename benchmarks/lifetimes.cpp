// SPDX-License-Identifier: BSL-1.0
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include <muster/base/pidfd.hpp>
#include <muster/base/system_call.hpp>

#include "workloads.hpp"

namespace bench {

namespace {

using std::chrono::nanoseconds;

muster::pool_options quiet(unsigned workers) {
  return {.workers = workers, .log = [](muster::log_level, std::string_view) {}};
}

void spawn_and_wait() {
  std::string program = "/bin/true";
  char* const arguments[] = {program.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) std::abort();
  muster::system_call("waitpid", ::waitpid, child, static_cast<int*>(nullptr), 0);
}

row start_2(const effort& how) {
  const side ours{.name = "pool of 2, first result", .once = [] {
                    std::optional<muster::pool> pool;
                    return time_of([&] {
                      pool.emplace(quiet(2));
                      pool->apply([](int a, int b) { return a + b; }, 2, 3);
                    });
                  }};
  return compare("start_2", how, ours, spawning_peer());
}

// The worker says that it runs the task; then it waits to be killed.
void announce_and_wait(pid_t parent, int event) {
  const auto path = "/proc/" + std::to_string(parent) + "/fd/" + std::to_string(event);
  const muster::unique_fd opened(
      muster::system_call("open", [&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); }));
  const char byte = '.';
  muster::system_call("write", ::write, opened.get(), &byte, sizeof byte);
  for (;;) ::pause();
}

class started_pipe {
public:
  started_pipe() { muster::system_call("pipe2", ::pipe2, ends_, O_CLOEXEC); }
  started_pipe(const started_pipe&) = delete;
  started_pipe& operator=(const started_pipe&) = delete;
  ~started_pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void await() {
    char byte = 0;
    muster::system_call("read", ::read, ends_[0], &byte, sizeof byte);
  }

private:
  int ends_[2]{};
};

nanoseconds death_to_future(const muster::pool& pool, started_pipe& started) {
  auto doomed = pool.apply_async(announce_and_wait, ::getpid(), started.write_end());
  started.await();
  const auto worker = pool.workers().front().pid;
  return time_of([&] {
    ::kill(worker, SIGKILL);
    if (doomed.get_result().error() != muster::errc::worker_died) std::abort();
  });
}

nanoseconds death_to_pidfd() {
  const auto child = muster::system_call("fork", [] { return ::fork(); });
  if (child == 0) {
    for (;;) ::pause();
  }
  const auto watched = muster::open_pidfd(child);
  const auto taken = time_of([&] {
    ::kill(child, SIGKILL);
    pollfd ended{.fd = watched.get(), .events = POLLIN, .revents = 0};
    muster::system_call("poll", ::poll, &ended, nfds_t{1}, -1);
  });
  ::waitpid(child, nullptr, 0);
  return taken;
}

row death_to_error(const effort& how) {
  const muster::pool pool(quiet(1));
  started_pipe started;
  return compare("death_to_error", how,
                 {.name = "SIGKILL to worker_died", .once = [&] { return death_to_future(pool, started); }},
                 {.name = "SIGKILL to pidfd readable", .once = death_to_pidfd});
}

// Retried, should the dying worker have claimed it.
row respawn(const effort& how) {
  const muster::pool pool(quiet(1));
  pool.apply([] {});
  const side ours{.name = "SIGKILL to the next result", .once = [&] {
                    const auto worker = pool.workers().front().pid;
                    return time_of([&] {
                      ::kill(worker, SIGKILL);
                      pool.with({.retries = 1}).apply([](int a, int b) { return a + b; }, 2, 3);
                    });
                  }};
  return compare("respawn", how, ours, spawning_peer());
}

}  // namespace

side spawning_peer() {
  return {.name = "posix_spawn of /bin/true and wait", .once = [] { return time_of(spawn_and_wait); }};
}

std::vector<workload> lifetimes() {
  return {{.name = "start_2", .run = start_2, .needs_two_processors = false},
          {.name = "death_to_error", .run = death_to_error, .needs_two_processors = false},
          {.name = "respawn", .run = respawn, .needs_two_processors = false}};
}

}  // namespace bench
