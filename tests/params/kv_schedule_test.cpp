// SPDX-License-Identifier: BSL-1.0
#include <optional>

#include <gtest/gtest.h>

#include <muster/params/detail/kv_schedule.hpp>

namespace muster::detail {
namespace {

TEST(KvSchedule, OperationsOfAKeyBeginInTheirOrderOneAtATime) {
  kv_schedule all(4);
  const auto one = all.add("a", 0);
  const auto two = all.add("a", 9);
  EXPECT_EQ(all.begin_next(), one);
  EXPECT_EQ(all.begin_next(), std::nullopt);
  all.end(one);
  EXPECT_EQ(all.begin_next(), two);
  all.end(two);
  EXPECT_TRUE(all.is_empty());
  EXPECT_FALSE(all.has("a"));
}

TEST(KvSchedule, OfDifferentKeysTheHighestPriorityIsNext) {
  kv_schedule all(4);
  const auto low = all.add("a", -1);
  const auto middle = all.add("b", 0);
  const auto other = all.add("c", 0);
  const auto high = all.add("d", 1);
  EXPECT_EQ(all.begin_next(), high);
  EXPECT_EQ(all.begin_next(), middle);
  EXPECT_EQ(all.begin_next(), other);
  EXPECT_EQ(all.begin_next(), low);
}

TEST(KvSchedule, NoMoreAreUnderWayThanTheWindow) {
  kv_schedule all(1);
  const auto one = all.add("a", 0);
  const auto two = all.add("b", 0);
  EXPECT_EQ(all.begin_next(), one);
  EXPECT_EQ(all.begin_next(), std::nullopt);
  const auto urgent = all.add("c", 1);
  all.end(one);
  EXPECT_EQ(all.begin_next(), urgent) << "pushed last";
  all.end(urgent);
  EXPECT_EQ(all.begin_next(), two);
}

}  // namespace
}  // namespace muster::detail
