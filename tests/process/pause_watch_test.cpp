// SPDX-License-Identifier: BSL-1.0
// By a clock that is made up.
#include "../../process/src/pause_watch.hpp"

#include <gtest/gtest.h>

namespace muster::pause_watch_test {
namespace {

using namespace std::chrono_literals;
using detail::pause_watch;

constexpr clock::time_point start{1000s};

TEST(PauseWatch, CutsTheSleepIntoEightSteps) {
  pause_watch watch;
  watch.begin(start, start + 800ms);
  auto now = start;
  int steps = 0;
  for (; now < start + 800ms; ++steps) {
    now = watch.next_step(now);
    EXPECT_FALSE(watch.look(now + pause_watch::slack)) << "as late as any thread may be";
  }
  EXPECT_EQ(now, start + 800ms);
  EXPECT_EQ(steps, 8);
}

TEST(PauseWatch, StepsAreOfTenMillisecondsAtLeastAndOfASecondAtMost) {
  pause_watch watch;
  watch.begin(start, start + 15ms);
  EXPECT_EQ(watch.next_step(start), start + 10ms);
  EXPECT_EQ(watch.next_step(start + 10ms), start + 15ms);
  watch.begin(start, start + 1h);
  EXPECT_EQ(watch.next_step(start), start + 1s);
  watch.begin(start, clock::time_point::max());
  EXPECT_EQ(watch.next_step(start), start + 1s);
  watch.begin(start, start - 1h);
  EXPECT_EQ(watch.next_step(start), start - 1h) << "what is over is looked at now";
}

TEST(PauseWatch, AStepThatEndsLateIsAPauseOnce) {
  pause_watch watch;
  watch.begin(start, start + 800ms);
  EXPECT_EQ(watch.next_step(start), start + 100ms);
  EXPECT_FALSE(watch.look(start + 50ms));
  const auto found = watch.look(start + 5s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->seen, start);
  EXPECT_EQ(found->due, start + 100ms);
  EXPECT_EQ(found->end, start + 5s);
  EXPECT_FALSE(watch.look(start + 5s));
}

// Stopped at 0.2 s, for 5 s, with 10 s to sleep: at the end of that nothing would be late.
TEST(PauseWatch, APauseThatIsOverBeforeTheSleepIsSeen) {
  pause_watch watch;
  watch.begin(start, start + 10s);
  EXPECT_EQ(watch.next_step(start), start + 1s);
  const auto found = watch.look(start + 5200ms);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->end - found->due, 4200ms);
  EXPECT_EQ(watch.next_step(start + 5200ms), start + 6200ms);
}

TEST(PauseWatch, NothingIsLateWhereNothingSleeps) {
  pause_watch watch;
  EXPECT_FALSE(watch.look(start));
  watch.begin(start, start + 1s);
  static_cast<void>(watch.next_step(start));
  watch.end();
  EXPECT_FALSE(watch.look(start + 1h));
}

}  // namespace
}  // namespace muster::pause_watch_test
