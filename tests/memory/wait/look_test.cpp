// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/wait/look.hpp>

#include <thread>

#include <gtest/gtest.h>

namespace muster::look_test {
namespace {

using namespace std::chrono_literals;

prospect usual() { return prospect::usual; }

TEST(LookUntil, AsksOnceWithoutABudget) {
  int looks = 0;
  EXPECT_FALSE(look_until(0ns, [&] { return ++looks == 0; }, usual));
  EXPECT_EQ(looks, 1);
  EXPECT_TRUE(look_until(0ns, [] { return true; }, usual));
}

TEST(LookUntil, LooksUntilItIsDone) {
  int looks = 0;
  EXPECT_TRUE(look_until(1h, [&] { return ++looks == 100; }, usual));
}

TEST(LookUntil, GivesUpWhenTheBudgetIsUsedUp) {
  EXPECT_FALSE(look_until(1us, [] { return false; }, usual));
}

TEST(LookUntil, GivesUpAtOnceWhereItIsFutile) {
  int looks = 0;
  EXPECT_FALSE(look_until(1h, [&] { return ++looks == 0; }, [] { return prospect::futile; }));
  EXPECT_EQ(looks, 2) << "once at first, once at the end";
}

TEST(LookUntil, GivesUpOnceItBecomesFutile) {
  int questions = 0;
  const auto ask = [&] { return ++questions == 5 ? prospect::futile : prospect::usual; };
  EXPECT_FALSE(look_until(1h, [] { return false; }, ask));
}

TEST(LookUntil, LooksOnceMoreBehindTheQuestion) {
  bool is_there = false;
  const auto ask = [&] {
    is_there = true;
    return prospect::futile;
  };
  EXPECT_TRUE(look_until(1h, [&] { return is_there; }, ask));
}

TEST(LookUntil, LooksForOneThatWasWokenAShortTimeOnly) {
  EXPECT_FALSE(look_until(1h, [] { return false; }, [] { return prospect::woken; }));
}

TEST(LookUntil, LooksForOneThatMovesBeyondTheBudget) {
  const auto start = clock::now();
  EXPECT_FALSE(look_until(1ms, [] { return false; }, [] { return prospect::coming; }));
  EXPECT_GE(clock::now() - start, 2ms);
}

TEST(LookUntil, AsksOnceUnderContention) {
  std::thread([] {
    contention::of_this_thread().begin(clock::now() + 1h);
    int looks = 0;
    EXPECT_FALSE(look_until(1h, [&] { return ++looks == 0; }, usual));
    EXPECT_EQ(looks, 1);
  }).join();
}

}  // namespace
}  // namespace muster::look_test
