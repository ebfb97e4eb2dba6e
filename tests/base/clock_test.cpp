// SPDX-License-Identifier: BSL-1.0
#include <muster/base/clock.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <muster/base/spin.hpp>

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

TEST(SpinUntil, AsksOnceWithoutABudget) {
  int asked = 0;
  EXPECT_FALSE(spin_until(0ns, [&] { return ++asked > 5; }));
  EXPECT_EQ(asked, 1);
}

TEST(SpinUntil, StopsAsSoonAsItIsDone) {
  int asked = 0;
  EXPECT_TRUE(spin_until(1h, [&] { return ++asked == 100; }));
  EXPECT_EQ(asked, 100);
}

TEST(SpinUntil, EndsWithItsBudget) {
  EXPECT_FALSE(spin_until(1us, [] { return false; }));
}

}  // namespace
}  // namespace muster::clock_test
