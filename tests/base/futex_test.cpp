// SPDX-License-Identifier: BSL-1.0
#include <muster/base/futex.hpp>

#include <climits>
#include <thread>

#include <gtest/gtest.h>

#include "processes.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(Futex, DoesNotSleepWhenTheWordHasChanged) {
  const std::atomic<std::uint32_t> word = 1;
  EXPECT_TRUE(futex_wait(futex_address(word), 0, futex_scope::within_process));
}

TEST(Futex, EndsAtTheDeadline) {
  const std::atomic<std::uint32_t> word = 0;
  EXPECT_FALSE(futex_wait(futex_address(word), 0, futex_scope::within_process, deadline::after(1ms)));
}

TEST(Futex, WakesAThread) {
  std::atomic<std::uint32_t> word = 0;
  std::thread sleeper([&] {
    while (word == 0) futex_wait(futex_address(word), 0, futex_scope::within_process);
  });
  word = 1;
  futex_wake(futex_address(word), INT_MAX, futex_scope::within_process);
  sleeper.join();
}

TEST(Futex, WakesAnotherProcessOnTheLowHalfOfAWord) {
  const test::shared<std::atomic<std::uint64_t>> word;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    while (*word == 0) futex_wait(futex_address(*word), 0, futex_scope::shared);
    return 0;
  });
  *word = 1;
  futex_wake(futex_address(*word), INT_MAX, futex_scope::shared);
  EXPECT_TRUE(ranks->wait(0).success());
}

}  // namespace
}  // namespace muster
