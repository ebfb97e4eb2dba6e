// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/wait/contention.hpp>

#include <gtest/gtest.h>

namespace muster::contention_test {
namespace {

using namespace std::chrono_literals;

bool all_are_busy(long /*own*/) noexcept { return false; }
bool one_is_idle(long /*own*/) noexcept { return true; }

const clock::time_point start(1h);

TEST(Contention, IsThereOnlyAfterALongGap) {
  contention own;
  EXPECT_FALSE(own.is_on());
  own.note_gap(100'000);
  EXPECT_FALSE(own.is_on());
  own.note_gap(10'000'000);
  EXPECT_TRUE(own.is_on());
  EXPECT_TRUE(own.was_lately(clock::now()));
}

TEST(Contention, EndsSoonOnceAProcessorIsIdle) {
  contention own;
  own.begin(start);
  EXPECT_FALSE(own.is_over(start + 99ms, one_is_idle));
  EXPECT_TRUE(own.is_over(start + 101ms, one_is_idle));
  EXPECT_FALSE(own.is_on());
}

TEST(Contention, GoesOnWhileAllProcessorsAreBusyButNotForEver) {
  contention own;
  own.begin(start);
  EXPECT_FALSE(own.is_over(start + 101ms, all_are_busy));
  EXPECT_FALSE(own.is_over(start + 5s, all_are_busy));
  EXPECT_TRUE(own.is_over(start + 11s, all_are_busy));
}

TEST(Contention, LooksForAnIdleProcessorNowAndThenOnly) {
  contention own;
  own.begin(start);
  EXPECT_FALSE(own.is_over(start + 101ms, all_are_busy));
  EXPECT_FALSE(own.is_over(start + 102ms, one_is_idle)) << "it has looked just now";
  EXPECT_TRUE(own.is_over(start + 110ms, one_is_idle));
}

}  // namespace
}  // namespace muster::contention_test
