// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/lane.hpp>

#include <array>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace muster::lane_test {
namespace {

using word = std::atomic<std::uint64_t>;

template <std::size_t Entries>
struct storage {
  word head = 0;
  std::array<word, Entries> entries{};
  lane view{head, entries};
};

TEST(Lane, IsEmptyAtFirst) {
  storage<4> ring;
  EXPECT_FALSE(ring.view.has_entry());
}

TEST(Lane, GivesHintsInOrder) {
  storage<4> ring;
  ASSERT_TRUE(ring.view.push(0, {.generation = 10, .slot = 1}));
  ASSERT_TRUE(ring.view.push(1, {.generation = 20, .slot = 2}));
  const auto first = ring.view.look();
  ASSERT_TRUE(first.some);
  EXPECT_EQ(first.hint, (lane_hint{.generation = 10, .slot = 1}));
  ring.view.advance(first);
  EXPECT_EQ(ring.view.look().hint, (lane_hint{.generation = 20, .slot = 2}));
}

TEST(Lane, LookingDoesNotTake) {
  storage<4> ring;
  ASSERT_TRUE(ring.view.push(0, {.generation = 1, .slot = 1}));
  EXPECT_TRUE(ring.view.look().some);
  EXPECT_TRUE(ring.view.look().some);
}

TEST(Lane, AdvancingTwiceMovesOnce) {
  storage<4> ring;
  ASSERT_TRUE(ring.view.push(0, {.generation = 1, .slot = 1}));
  ASSERT_TRUE(ring.view.push(1, {.generation = 2, .slot = 2}));
  const auto entry = ring.view.look();
  ring.view.advance(entry);
  ring.view.advance(entry);
  EXPECT_EQ(ring.view.look().hint.slot, 2);
}

TEST(Lane, IsFullWhenNobodyAdvances) {
  storage<2> ring;
  EXPECT_TRUE(ring.view.push(0, {}));
  EXPECT_TRUE(ring.view.push(1, {}));
  EXPECT_FALSE(ring.view.has_room(2));
  EXPECT_FALSE(ring.view.push(2, {}));
  ring.view.advance(ring.view.look());
  EXPECT_TRUE(ring.view.push(2, {}));
}

TEST(Lane, EntriesOfAnEarlierLapAreNotSeenAgain) {
  storage<2> ring;
  for (std::uint64_t ticket = 0; ticket < 200000; ++ticket) {  // laps wrap around their 16 bits
    ASSERT_FALSE(ring.view.has_entry()) << ticket;
    ASSERT_TRUE(ring.view.push(ticket, {.generation = static_cast<std::uint32_t>(ticket), .slot = 3}));
    const auto entry = ring.view.look();
    ASSERT_EQ(entry.hint.generation, static_cast<std::uint32_t>(ticket));
    ring.view.advance(entry);
  }
}

TEST(Lane, ManyReadersSeeEveryHint) {
  constexpr std::uint32_t count = 20000;
  storage<64> ring;
  std::vector<std::atomic<int>> seen(count);
  std::atomic<std::uint32_t> taken = 0;
  const auto read = [&] {
    while (taken.load() < count) {
      const auto entry = ring.view.look();
      if (!entry.some) {
        std::this_thread::yield();
        continue;
      }
      if (seen[entry.hint.generation].exchange(1) == 0) taken.fetch_add(1);  // as a claim would
      ring.view.advance(entry);
    }
  };
  std::thread one(read);
  std::thread two(read);
  for (std::uint32_t ticket = 0; ticket < count; ++ticket) {
    while (!ring.view.push(ticket, {.generation = ticket, .slot = 0})) std::this_thread::yield();
  }
  one.join();
  two.join();
  EXPECT_EQ(taken.load(), count);
}

TEST(Lane, AResetOneIsEmptyAndGoesOn) {
  std::atomic<std::uint64_t> head = 12345;
  std::array<std::atomic<std::uint64_t>, 4> entries{0xffffffffffffffffU, 1, 2, 3};
  lane made(head, entries);
  for (const std::uint64_t ticket : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{262140}}) {
    made.reset(ticket);
    EXPECT_FALSE(made.has_entry());
    for (std::uint64_t each = 0; each < 4; ++each) {
      EXPECT_FALSE(made.peek(ticket + each).some);
      EXPECT_TRUE(made.push(ticket + each, {.generation = 5, .slot = static_cast<std::uint16_t>(each)}));
      EXPECT_EQ(made.peek(ticket + each).hint.slot, each);
    }
    EXPECT_FALSE(made.has_room(ticket + 4));
    EXPECT_EQ(made.look().hint.slot, 0);
  }
}

}  // namespace
}  // namespace muster::lane_test
