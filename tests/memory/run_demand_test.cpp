// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/run_demand.hpp>

#include <gtest/gtest.h>

namespace muster::run_demand_test {
namespace {

TEST(RunDemand, IsWhatWasUsedAtOnce) {
  run_demand demand;
  demand.take(10);
  demand.take(20);
  demand.give(10);
  demand.give(20);
  EXPECT_EQ(demand.used(), 0U);
  EXPECT_EQ(demand.swing(), 30U);
}

TEST(RunDemand, OfWhatIsNeverGivenBackIsNothingInTheEnd) {
  run_demand demand;
  demand.take(1000);
  for (std::size_t each = 0; each < 2 * run_demand::period; ++each) {
    demand.take(1);
    demand.give(1);
  }
  EXPECT_EQ(demand.swing(), 1U);
}

TEST(RunDemand, ThatOnlyFreesWhatOthersHaveAllocatedIsNone) {
  run_demand demand;
  for (std::size_t each = 0; each < 3 * run_demand::period; ++each) demand.count_release();
  EXPECT_EQ(demand.swing(), 0U);
}

TEST(RunDemand, LastsForAPeriodAtLeastAndForTwoAtMost) {
  run_demand demand;
  demand.take(1000);
  demand.give(1000);
  for (std::size_t each = 0; each < run_demand::period; ++each) demand.count_release();
  EXPECT_EQ(demand.swing(), 1000U);
  for (std::size_t each = 0; each < run_demand::period; ++each) demand.count_release();
  EXPECT_EQ(demand.swing(), 0U);
}

TEST(RunDemand, BeginsAnewWhenItIsReset) {
  run_demand demand;
  demand.take(1000);
  demand.give(400);
  demand.reset();
  EXPECT_EQ(demand.swing(), 0U);
  EXPECT_EQ(demand.used(), 600U);
  demand.give(600);
  EXPECT_EQ(demand.swing(), 600U);
}

}  // namespace
}  // namespace muster::run_demand_test
