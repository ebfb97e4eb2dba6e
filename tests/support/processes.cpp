// SPDX-License-Identifier: BSL-1.0
#include "processes.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <string>

#include <muster/base/clock.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/base/system_call.hpp>

#include "watchdog.hpp"

namespace muster::test {

processes::~processes() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].reaped) continue;
    kill(rank);
    static_cast<void>(wait(rank));
  }
}

processes::member processes::start(std::size_t rank, const rank_function& run) {
  const auto pid = system_call("fork", ::fork);
  if (pid == 0) {
    watchdog::arm();  // nobody outlives a test by much
    try {
      ::_exit(run(rank));
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "rank %zu: %s\n", rank, failure.what());
      ::_exit(99);
    }
  }
  return {.pid = pid, .process = open_pidfd(pid)};
}

void processes::add(const rank_function& run) { ranks_.push_back(start(ranks_.size(), run)); }

void processes::kill(std::size_t rank) { send_signal(ranks_[rank].process.get(), SIGKILL); }
void processes::freeze(std::size_t rank) { send_signal(ranks_[rank].process.get(), SIGSTOP); }
void processes::thaw(std::size_t rank) { send_signal(ranks_[rank].process.get(), SIGCONT); }

exit_status processes::wait(std::size_t rank) {
  ranks_[rank].reaped = true;
  return reap(ranks_[rank].process.get());
}

void processes::replace(std::size_t rank, const rank_function& run) {
  kill(rank);
  static_cast<void>(wait(rank));
  ranks_[rank] = start(rank, run);
}

std::unique_ptr<processes> spawn(std::size_t count, const processes::rank_function& run) {
  auto ranks = std::make_unique<processes>();
  for (std::size_t rank = 0; rank < count; ++rank) ranks->add(run);
  return ranks;
}

bool sleeps_on_futex(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/syscall");
  long number = 0;
  return static_cast<bool>(in >> number) && (number == SYS_futex || number == SYS_futex_waitv);
}

void work_for(std::chrono::nanoseconds time) {
  const timespec duration{.tv_sec = time.count() / 1'000'000'000, .tv_nsec = time.count() % 1'000'000'000};
  ::nanosleep(&duration, nullptr);
}

bool eventually(const std::function<bool()>& condition) {
  const auto until = deadline::after(std::chrono::seconds(30));
  while (!condition()) {
    if (until.expired()) return false;
    ::sched_yield();
  }
  return true;
}

}  // namespace muster::test
