// SPDX-License-Identifier: BSL-1.0
#include "ping_pong.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include <muster/base/detail/futex.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/system_call.hpp>

#include "comparison.hpp"

namespace bench {

namespace {

constexpr std::uint64_t sleep_now = std::uint64_t{1} << 63U;

}  // namespace

ping_pong::ping_pong(std::size_t processor)
    : file_(muster::make_memfd("ping-pong", sizeof(page))),
      memory_(file_, sizeof(page), muster::mapping::inherit::yes),
      page_(*new(memory_.bytes().data()) page),
      child_(muster::system_call("fork", [] { return ::fork(); })) {
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(0, processor);
    answer();
  }
}

ping_pong::~ping_pong() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

void ping_pong::begin() {
  page_.awake.store(1);
  muster::futex_wake(muster::futex_address(page_.awake), 1, muster::futex_scope::shared);
}

void ping_pong::run(std::size_t count) {
  for (std::size_t index = 0; index < count; ++index) {
    page_.ping.store(++sent_, std::memory_order_release);
    while (page_.pong.load(std::memory_order_acquire) != sent_) muster::relax_processor();
  }
}

void ping_pong::end() {
  page_.awake.store(0);
  page_.ping.store(++sent_ | sleep_now, std::memory_order_release);
  while (page_.pong.load(std::memory_order_acquire) != (sent_ | sleep_now)) muster::relax_processor();
}

void ping_pong::answer() {
  std::uint64_t answered = 0;
  for (;;) {
    while (page_.awake.load() == 0)
      muster::futex_wait(muster::futex_address(page_.awake), 0, muster::futex_scope::shared);
    do {
      while (page_.ping.load(std::memory_order_acquire) == answered) muster::relax_processor();
      answered = page_.ping.load(std::memory_order_relaxed);  // stays until it is answered
      page_.pong.store(answered, std::memory_order_release);
    } while ((answered & sleep_now) == 0);
  }
}

}  // namespace bench
