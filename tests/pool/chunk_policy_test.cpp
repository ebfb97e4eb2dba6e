// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/chunk_policy.hpp>

#include <gtest/gtest.h>

namespace muster::detail::chunk_policy_test {
namespace {

using namespace std::chrono_literals;

TEST(ChunkPolicy, AGivenSizeIsKept) {
  const chunk_policy policy({.workers = 4, .given = 10});
  EXPECT_EQ(policy.next(1000), 10U);
  EXPECT_EQ(policy.next(7), 7U);
}

TEST(ChunkPolicy, BeginsWithOneElement) {
  const chunk_policy policy({.workers = 2});
  EXPECT_EQ(policy.next(1000000), 1U);
}

TEST(ChunkPolicy, GrowsAtMostThirtyTwoFoldAtATime) {
  chunk_policy policy({.workers = 2});
  policy.observe(1, 10ns);
  EXPECT_EQ(policy.next(1000000), 32U);
  policy.observe(32, 320ns);
  EXPECT_EQ(policy.next(1000000), 1024U);
}

TEST(ChunkPolicy, AimsAtAMillisecond) {
  chunk_policy policy({.workers = 2});
  policy.observe(10, 100us);
  EXPECT_EQ(policy.next(1000000), 100U);
}

TEST(ChunkPolicy, SlowElementsGoOneByOne) {
  chunk_policy policy({.workers = 2});
  policy.observe(1, 1s);
  EXPECT_EQ(policy.next(8), 1U);
}

TEST(ChunkPolicy, TakesAtMostHalfAWorkersShareOfWhatIsLeft) {
  chunk_policy policy({.workers = 2});
  for (int round = 0; round < 5; ++round) policy.observe(1000, 1us);
  EXPECT_LE(policy.next(100000), 25001U);
}

TEST(ChunkPolicy, NearTheEndChunksStayWorthTheirCost) {
  chunk_policy policy({.workers = 2});
  for (int round = 0; round < 5; ++round) policy.observe(1000, 100us);  // 0.1 µs each: 200 take 20 µs
  EXPECT_EQ(policy.next(300), 200U);
}

TEST(ChunkPolicy, RespectsTheLimitOfAWorkersLife) {
  chunk_policy policy({.workers = 1, .given = 100, .most = 3});
  EXPECT_EQ(policy.next(1000), 3U);
}

TEST(ChunkPolicy, AnEmptyObservationTeachesNothing) {
  chunk_policy policy({.workers = 1});
  policy.observe(0, 1s);
  EXPECT_EQ(policy.next(10), 1U);
}

}  // namespace
}  // namespace muster::detail::chunk_policy_test
