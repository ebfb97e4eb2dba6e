// SPDX-License-Identifier: BSL-1.0
#include "futex_pong.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <new>
#include <string>
#include <thread>

#include <muster/base/detail/futex.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/system_call.hpp>

#include "comparison.hpp"

namespace bench {

namespace {

void hand_over(std::atomic<std::uint32_t>& to, std::uint32_t value) {
  to.store(value, std::memory_order_release);
  muster::futex_wake(muster::futex_address(to), 1, muster::futex_scope::shared);
}

void await(const std::atomic<std::uint32_t>& from, std::uint32_t value) {
  for (auto found = from.load(std::memory_order_acquire); found != value;
       found = from.load(std::memory_order_acquire)) {
    muster::futex_wait(muster::futex_address(from), found, muster::futex_scope::shared);
  }
}

char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto end = text.rfind(") ");
  return end == std::string::npos ? '?' : text[end + 2];
}

}  // namespace

futex_pong::futex_pong(std::size_t processor)
    : file_(muster::make_memfd("futex-pong", sizeof(page))),
      memory_(file_, sizeof(page), muster::mapping::inherit::yes),
      page_(*new(memory_.bytes().data()) page),
      child_(muster::system_call("fork", [] { return ::fork(); })) {
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(0, processor);
    answer();
  }
}

futex_pong::~futex_pong() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

void futex_pong::round_trip() {
  hand_over(page_.ping, ++sent_);
  await(page_.pong, sent_);
}

void futex_pong::answer() {
  for (std::uint32_t next = 1;; ++next) {
    await(page_.ping, next);
    hand_over(page_.pong, next);
  }
}

void let_sleep(pid_t process) {
  do {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  } while (state_of(process) != 'S');
}

}  // namespace bench
