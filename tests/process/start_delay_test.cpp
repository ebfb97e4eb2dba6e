// SPDX-License-Identifier: BSL-1.0
#include "start_delay.hpp"

#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::start_delay_test {
namespace {

using namespace std::chrono_literals;
using detail::start_delay;

std::vector<std::chrono::nanoseconds> next_of(start_delay& delay, std::size_t count) {
  std::vector<std::chrono::nanoseconds> found;
  while (found.size() < count) found.push_back(delay.next(24h));
  return found;
}

TEST(StartDelay, BeginsWithTenMillisecondsAndDoublesUpToFiveSeconds) {
  start_delay delay;
  EXPECT_THAT(next_of(delay, 12),
              testing::ElementsAre(10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1280ms, 2560ms, 5s, 5s, 5s));
}

TEST(StartDelay, BeginsAnewOnceAProcessCouldBeStarted) {
  start_delay delay;
  next_of(delay, 5);
  delay.reset();
  EXPECT_THAT(next_of(delay, 3), testing::ElementsAre(10ms, 20ms, 40ms));
}

TEST(StartDelay, EndsWithThePatienceAndDoublesAllTheSame) {
  start_delay delay;
  EXPECT_EQ(delay.next(3ms), 3ms);
  EXPECT_EQ(delay.next(1s), 20ms);
  EXPECT_EQ(delay.next(0ns), 40ms) << "which has ended already";
  EXPECT_EQ(delay.next(-1s), 80ms);
}

}  // namespace
}  // namespace muster::start_delay_test
