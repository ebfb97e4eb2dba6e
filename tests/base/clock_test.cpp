// SPDX-License-Identifier: BSL-1.0
#include <muster/base/clock.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace muster::clock_test {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, NeverDoesNotExpire) {
  EXPECT_TRUE(deadline().is_never());
  EXPECT_FALSE(deadline::never().expired());
}

TEST(Deadline, ADurationTooLongForTheClockIsNever) {
  EXPECT_TRUE(deadline::after(std::chrono::hours::max()).is_never());
  EXPECT_TRUE(deadline::after(std::chrono::nanoseconds::max()).is_never());
}

TEST(Deadline, ANegativeDurationHasExpiredHoweverFar) {
  EXPECT_TRUE(deadline::after(-1s).expired());
  EXPECT_TRUE(deadline::after(-10'000'000'000s).expired());  // more than the clock has nanoseconds for
  EXPECT_TRUE(deadline::after(std::chrono::hours::min()).expired());
  EXPECT_TRUE(deadline::after(std::chrono::duration<double>(-1e300)).expired());
  EXPECT_TRUE(deadline::after(std::chrono::duration<double>(NAN)).expired());
}

TEST(Deadline, ALongDurationHasNotExpired) {
  EXPECT_FALSE(deadline::after(1h).expired());
  EXPECT_FALSE(deadline::after(1h).is_never());
}

TEST(Deadline, TellsWhatIsLeftUpToAMost) {
  EXPECT_EQ(deadline::never().left(5ms), 5ms);
  EXPECT_EQ(deadline::after(1h).left(5ms), 5ms);
  EXPECT_LE(deadline::after(1ms).left(1h), 1ms);
}

TEST(Deadline, HasNothingLeftOnceItHasExpired) { EXPECT_LE(deadline::after(-1s).left(5ms), 0ns); }

}  // namespace
}  // namespace muster::clock_test
