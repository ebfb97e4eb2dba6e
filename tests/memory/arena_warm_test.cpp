// SPDX-License-Identifier: BSL-1.0
// What arenas keep warm: no more than they have used themselves, and not for longer than somebody uses it.
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/base/memfd.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/memory/domain.hpp>

#include "processes.hpp"

namespace muster::arena_warm_test {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

// Several processes' arenas over one memory, all in this process.
class ArenaWarm : public testing::Test {
protected:
  ArenaWarm()
      : extents_(4096),
        blocks_(4096),
        file_(make_memfd("test", extents_.size() * extent_bytes)),
        memory_(file_, extents_.size() * extent_bytes, mapping::inherit::yes) {
    for (std::uint16_t self = 1; self <= 4; ++self) {
      members_[self].word = self;
      arenas_.push_back(std::make_unique<arena>(
          extent_map(extents_, table_mark(extents_used_)), block_table(blocks_, table_mark(blocks_used_)),
          memory_.bytes(), file_,
          arena::options{.self = participant_id{self}, .cache_bytes = 128 * mebibyte, .members = members_}));
    }
  }

  [[nodiscard]] arena& at(std::size_t which) { return *arenas_[which]; }
  [[nodiscard]] std::size_t cached(std::size_t which) { return at(which).read_statistics().cached_bytes; }
  [[nodiscard]] std::size_t held() { return at(0).read_statistics().held_bytes; }

  // Allocated by one, held by both, freed by the other.
  void pass(std::size_t maker, std::size_t last, std::size_t bytes) {
    auto made = at(maker).allocate_shared(bytes);
    auto there = at(last).receive(at(maker).send(made));
    made.reset();
    there.reset();
  }

  std::vector<extent_map::word> extents_;
  std::vector<block_descriptor> blocks_;
  std::vector<participant_entry> members_{8};
  std::atomic<std::uint64_t> extents_used_ = 0;
  std::atomic<std::uint64_t> blocks_used_ = 0;
  unique_fd file_;
  mapping memory_;
  std::vector<std::unique_ptr<arena>> arenas_;
};

TEST_F(ArenaWarm, WhoFreesThousandsOfOthersBlocksKeepsNoMoreThanTheLeast) {
  for (int each = 0; each < 5000; ++each) pass(0, 3, extent_bytes * 2);
  EXPECT_LE(cached(3), arena::least_warm_bytes);
  EXPECT_LE(held(), 2 * arena::least_warm_bytes);
}

TEST_F(ArenaWarm, ItIsBoundedWhoeverMakesAndWhoeverFrees) {
  constexpr std::size_t most_used = 4 * extent_bytes;
  for (std::size_t each = 0; each < 5000; ++each) pass(each % 3, (each * each + 1) % 4, extent_bytes * (1 + each % 4));
  for (std::size_t which = 0; which < 4; ++which) EXPECT_LE(cached(which), 2 * most_used + arena::least_warm_bytes);
}

TEST_F(ArenaWarm, WhatALendersBorrowerFreesIsBoundedToo) {
  for (int each = 0; each < 1000; ++each) at(0).adopt(at(1).allocate(mebibyte / 2).lend()).reset();
  EXPECT_LE(cached(0), arena::least_warm_bytes);
}

TEST_F(ArenaWarm, WhatAProcessHasUsedAtOnceItKeeps) {
  for (int round = 0; round < 3; ++round) {
    std::vector<block> several;
    for (int each = 0; each < 5; ++each) several.push_back(at(0).allocate(4 * mebibyte));
    EXPECT_EQ(held(), 20 * mebibyte);
  }
  EXPECT_EQ(cached(0), 20 * mebibyte);
}

TEST_F(ArenaWarm, RunsOfSeveralSizesInTurnAreAllUsedAgain) {
  for (int round = 0; round < 100; ++round) {
    for (const auto size : {20U, 9U, 4U, 1U}) at(0).allocate(size * mebibyte).reset();
    EXPECT_EQ(held(), 34 * mebibyte);
  }
}

TEST_F(ArenaWarm, SharedBlocksOfAProcessesOwnAreKeptLikeOthers) {
  for (int round = 0; round < 3; ++round) {
    auto made = at(0).allocate_shared(8 * mebibyte);
    static_cast<void>(at(0).name_of(made));
    EXPECT_EQ(held(), 8 * mebibyte);
  }
  EXPECT_EQ(cached(0), 8 * mebibyte);
}

TEST_F(ArenaWarm, WhatWasNeededOnceIsGivenBackWhenLittleIsNeededAnyMore) {
  at(0).allocate(32 * mebibyte).reset();
  EXPECT_EQ(cached(0), 32 * mebibyte);
  for (std::size_t each = 0; each < 2 * run_demand::period; ++each) at(0).allocate(extent_bytes).reset();
  EXPECT_LE(cached(0), arena::least_warm_bytes + 2 * extent_bytes);
}

TEST_F(ArenaWarm, WhatIsStillUsedDoesNotMakeOthersFreedBlocksStay) {
  const auto stays = at(3).allocate(100 * mebibyte);
  for (std::size_t each = 0; each < 2 * run_demand::period; ++each) pass(0, 3, mebibyte);
  EXPECT_LE(cached(3), arena::least_warm_bytes);
}

TEST_F(ArenaWarm, StatisticsTellWhatIsUsedAndWhatIsKeptWarmByWhom) {
  const auto used = at(1).allocate(3 * mebibyte);
  at(2).allocate(5 * mebibyte).reset();
  const auto found = at(0).read_statistics();
  EXPECT_EQ(found.held_bytes, 8 * mebibyte);
  EXPECT_EQ(found.warm_bytes, 5 * mebibyte);
  EXPECT_EQ(found.in_use_bytes(), 3 * mebibyte);
  EXPECT_EQ(found.cached_bytes, 0U) << "by itself";
  std::string all;
  for (const auto& each : at(0).read_participants()) {
    all += std::to_string(index_of(each.id)) + ':' + std::to_string(each.held_bytes / mebibyte) + '/' +
           std::to_string(each.warm_bytes / mebibyte) + ' ';
  }
  EXPECT_EQ(all, "1:0/0 2:3/0 3:5/5 4:0/0 ");
}

// ---- what nobody uses

TEST_F(ArenaWarm, WhatNobodyHasUsedSinceIsGivenBack) {
  at(0).allocate(8 * mebibyte).reset();
  const auto seen = at(0).warm();
  EXPECT_EQ(seen.bytes, 8 * mebibyte);
  EXPECT_EQ(at(0).trim_unused(seen).bytes, 0U);
  EXPECT_EQ(held(), 0U);
}

TEST_F(ArenaWarm, WhatSomebodyHasUsedSinceStays) {
  at(0).allocate(8 * mebibyte).reset();
  const auto seen = at(0).warm();
  at(0).allocate(extent_bytes).reset();
  const auto later = at(0).trim_unused(seen);
  EXPECT_EQ(later.bytes, 8 * mebibyte + extent_bytes);
  EXPECT_EQ(at(0).trim_unused(later).bytes, 0U);
}

TEST_F(ArenaWarm, AsMuchAsWasPrefaultedStays) {
  at(0).prefault(16 * mebibyte);
  for (const auto size : {9U, 4U, 20U}) at(0).allocate(size * mebibyte).reset();
  EXPECT_EQ(at(0).warm().bytes, 17 * mebibyte);
  at(0).trim();
  EXPECT_EQ(cached(0), 0U) << "no run of it is that short";
  at(0).allocate(12 * mebibyte).reset();
  at(0).trim();
  EXPECT_EQ(cached(0), 12 * mebibyte);
}

class counting_keeper final : public warm_keeper {
public:
  void begin_watch() noexcept override { ++calls; }
  int calls = 0;
};

TEST_F(ArenaWarm, AKeeperIsToldOnceForEachWatch) {
  counting_keeper keeper;
  at(0).be_watched_by(&keeper);
  EXPECT_EQ(keeper.calls, 0);
  for (int each = 0; each < 10; ++each) at(0).allocate(mebibyte).reset();
  EXPECT_EQ(keeper.calls, 1);
  const auto seen = at(0).warm();
  at(0).allocate(mebibyte).reset();
  EXPECT_NE(at(0).trim_unused(seen).bytes, 0U) << "the watch goes on";
  at(0).allocate(mebibyte).reset();
  EXPECT_EQ(keeper.calls, 1);
  EXPECT_EQ(at(0).trim_unused(at(0).warm()).bytes, 0U);
  at(0).allocate(mebibyte).reset();
  EXPECT_EQ(keeper.calls, 2);
  const counting_keeper another;
  at(0).no_longer_watched_by(another);
  at(0).trim();
  at(0).allocate(mebibyte).reset();
  EXPECT_EQ(keeper.calls, 3);
  at(0).no_longer_watched_by(keeper);
  at(0).trim();
  at(0).allocate(mebibyte).reset();
  EXPECT_EQ(keeper.calls, 3);
}

TEST_F(ArenaWarm, AKeeperThatComesLaterIsToldAtOnce) {
  counting_keeper keeper;
  at(0).allocate(mebibyte).reset();
  at(0).be_watched_by(&keeper);
  EXPECT_EQ(keeper.calls, 1);
  at(0).no_longer_watched_by(keeper);
}

// ---- sleepers

TEST(DomainSleep, WhoSleepsGivesBackWhatTheProcessKeepsWarm) {
  domain shared({.arena_bytes = 256 * mebibyte});
  shared.blocks().allocate_shared(8 * mebibyte).reset();
  ASSERT_EQ(shared.blocks().read_statistics().warm_bytes, 8 * mebibyte);
  std::atomic<std::uint32_t> word = 0;
  std::thread sleeper([&] {
    const futex_expectation expected{.word = futex_address(word), .expected = 0};
    while (word == 0) shared.sleep(std::span(&expected, 1));
  });
  EXPECT_TRUE(test::eventually([&] { return shared.blocks().read_statistics().warm_bytes == 0; }));
  word = 1;
  futex_wake(futex_address(word), 1, futex_scope::shared);
  sleeper.join();
}

TEST(DomainSleep, EndsAtItsDeadlineAlsoWhileMemoryIsWarm) {
  domain shared({.arena_bytes = 256 * mebibyte});
  shared.blocks().allocate_shared(8 * mebibyte).reset();
  const std::atomic<std::uint32_t> word = 0;
  const futex_expectation expected{.word = futex_address(word), .expected = 0};
  const auto until = deadline::after(std::chrono::milliseconds(2));
  EXPECT_FALSE(shared.sleep(std::span(&expected, 1), until));
  EXPECT_TRUE(until.expired());
}

}  // namespace
}  // namespace muster::arena_warm_test
