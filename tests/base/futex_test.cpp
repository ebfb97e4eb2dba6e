// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/futex.hpp>

#include <array>
#include <climits>
#include <thread>

#include <gtest/gtest.h>

#include "processes.hpp"

namespace muster::futex_test {
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

class FutexWaitAny : public testing::Test {
protected:
  bool sleep(deadline until = {}) {
    const std::array words = {futex_expectation{.word = futex_address(first_), .expected = 0},
                              futex_expectation{.word = futex_address(second_), .expected = 0}};
    return futex_wait_any(words, futex_scope::within_process, until);
  }
  std::atomic<std::uint32_t> first_ = 0;
  std::atomic<std::uint32_t> second_ = 0;
};

TEST_F(FutexWaitAny, DoesNotSleepWhenOneWordHasChanged) {
  second_ = 1;
  EXPECT_TRUE(sleep());
}

TEST_F(FutexWaitAny, EndsAtTheDeadline) { EXPECT_FALSE(sleep(deadline::after(1ms))); }

TEST_F(FutexWaitAny, IsWokenOnEachOfItsWords) {
  for (auto* const word : {&first_, &second_}) {
    first_ = second_ = 0;
    std::thread sleeper([&] {
      while (*word == 0) sleep();
    });
    *word = 1;
    futex_wake(futex_address(*word), INT_MAX, futex_scope::within_process);
    sleeper.join();
  }
}

TEST_F(FutexWaitAny, WakesAnotherProcess) {
  const test::shared<std::array<std::atomic<std::uint32_t>, 2>> words;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    const std::array both = {futex_expectation{.word = futex_address((*words)[0]), .expected = 0},
                             futex_expectation{.word = futex_address((*words)[1]), .expected = 0}};
    while ((*words)[1] == 0) futex_wait_any(both, futex_scope::shared);
    return 0;
  });
  (*words)[1] = 1;
  futex_wake(futex_address((*words)[1]), INT_MAX, futex_scope::shared);
  EXPECT_TRUE(ranks->wait(0).success());
}

}  // namespace
}  // namespace muster::futex_test
