// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/extent_map.hpp>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "processes.hpp"

namespace muster::extent_map_test {
namespace {

constexpr participant_id alice{2};
constexpr participant_id bob{3};

struct table {
  explicit table(std::size_t size) : words(size), map(words, table_mark(mark)) {}
  std::vector<extent_map::word> words;
  std::atomic<std::uint64_t> mark = 0;
  extent_map map;
};

TEST(ExtentMap, ClaimsNeighbours) {
  table extents(8);
  const auto run = extents.map.claim(alice, 3, 0);
  ASSERT_TRUE(run);
  EXPECT_EQ(*run, (extent_run{0, 3}));
  EXPECT_EQ(extents.map.owner_of(2), alice);
  EXPECT_EQ(extents.map.held_count(), 3U);
}

TEST(ExtentMap, SkipsWhatOthersHold) {
  table extents(8);
  ASSERT_TRUE(extents.map.claim(alice, 1, 2));
  EXPECT_EQ(extents.map.claim(bob, 3, 0), (extent_run{3, 3}));
  EXPECT_EQ(extents.map.claim(bob, 2, 0), (extent_run{0, 2}));
}

TEST(ExtentMap, WrapsAroundTheHint) {
  table extents(8);
  EXPECT_EQ(extents.map.claim(alice, 4, 6), (extent_run{0, 4}));
}

TEST(ExtentMap, ARunAcrossTheHintIsFound) {
  table extents(8);
  ASSERT_TRUE(extents.map.claim(alice, 2, 0));
  ASSERT_TRUE(extents.map.claim(alice, 2, 6));
  EXPECT_EQ(extents.map.claim(bob, 4, 4), (extent_run{2, 4}));
}

// Two that claimed long runs overtook one another up to the end, and both found nothing, with all free but their own.
TEST(ExtentMap, TwoThatClaimLongRunsAtOnceBothGetOne) {
  constexpr std::size_t length = 2000;
  constexpr int rounds = 2000;
  table extents(3 * length);  // wherever the one lies, there is room for the other
  std::atomic<int> failed = 0;
  const auto claim = [&](participant_id who) {
    for (int round = 0; round < rounds; ++round) {
      const auto run = extents.map.claim(who, length, 0);
      run ? extents.map.release(who, *run) : static_cast<void>(++failed);
    }
  };
  std::thread other(claim, bob);
  claim(alice);
  other.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(extents.map.held_count(), 0U);
}

TEST(ExtentMap, WithoutALongEnoughRunNothingIsHeldAfterwards) {
  table extents(8);
  ASSERT_TRUE(extents.map.claim(alice, 1, 3));
  EXPECT_FALSE(extents.map.claim(bob, 5, 0));
  EXPECT_EQ(extents.map.held_count(), 1U);
  EXPECT_FALSE(extents.map.claim(bob, 9, 0));
  EXPECT_FALSE(extents.map.claim(bob, 0, 0));
}

TEST(ExtentMap, ReleasedExtentsCanBeClaimedAgain) {
  table extents(2);
  const auto run = extents.map.claim(alice, 2, 0);
  extents.map.release(alice, *run);
  EXPECT_TRUE(extents.map.claim(bob, 2, 0));
}

TEST(ExtentMap, TransferMovesOnlyWhatTheGiverHolds) {
  table extents(4);
  ASSERT_TRUE(extents.map.claim(alice, 2, 0));
  ASSERT_TRUE(extents.map.claim(bob, 2, 2));
  extents.map.transfer(alice, participant_id::host, {0, 4});
  EXPECT_EQ(extents.map.owner_of(1), participant_id::host);
  EXPECT_EQ(extents.map.owner_of(2), bob);
}

TEST(ExtentMap, TheMarkCoversEverythingThatWasEverClaimed) {
  table extents(8);
  ASSERT_TRUE(extents.map.claim(alice, 2, 3));
  EXPECT_EQ(extents.map.used_count(), 5U);
}

TEST(ExtentMap, ThreadsNeverGetTheSameExtent) {
  table extents(64);
  std::vector<std::atomic<int>> holders(64);
  std::atomic<bool> doubled = false;
  const auto work = [&](participant_id self) {
    for (std::size_t round = 0; round < 3000; ++round) {
      const auto run = extents.map.claim(self, 1 + round % 7, round % 64);
      if (!run) continue;
      for (std::size_t each = run->first; each < run->first + run->count; ++each) {
        if (holders[each].fetch_add(1) != 0) doubled = true;
      }
      for (std::size_t each = run->first; each < run->first + run->count; ++each) holders[each].fetch_sub(1);
      extents.map.release(self, *run);
    }
  };
  std::thread other(work, alice);
  work(bob);
  other.join();
  EXPECT_FALSE(doubled);
  EXPECT_EQ(extents.map.held_count(), 0U);
}

}  // namespace
}  // namespace muster::extent_map_test
