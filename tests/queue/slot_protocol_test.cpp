// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/slot_protocol.hpp>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace muster::slot_protocol_test {
namespace {

using word = std::atomic<std::uint64_t>;

TEST(SlotProtocol, APublishedTaskIsClaimedOnce) {
  word slot = 0;
  slot_protocol::publish(slot, 1, slot_flag::block_arguments);
  const auto claimed = slot_protocol::try_claim(slot, 1, 4);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->owner(), 4U);
  EXPECT_TRUE(claimed->has(slot_flag::block_arguments));
  EXPECT_FALSE(slot_protocol::try_claim(slot, 1, 5));
}

TEST(SlotProtocol, AStaleHintClaimsNothing) {
  word slot = 0;
  slot_protocol::publish(slot, 2, slot_flag::none);
  EXPECT_FALSE(slot_protocol::try_claim(slot, 1, 1));
}

TEST(SlotProtocol, ARevokedTaskCannotBeClaimed) {
  word slot = 0;
  slot_protocol::publish(slot, 1, slot_flag::none);
  EXPECT_TRUE(slot_protocol::try_revoke(slot, 1));
  EXPECT_FALSE(slot_protocol::try_claim(slot, 1, 1));
}

TEST(SlotProtocol, AClaimedTaskCannotBeRevoked) {
  word slot = 0;
  slot_protocol::publish(slot, 1, slot_flag::none);
  ASSERT_TRUE(slot_protocol::try_claim(slot, 1, 1));
  EXPECT_FALSE(slot_protocol::try_revoke(slot, 1));
}

TEST(SlotProtocol, CompletionTellsWhatWasAskedMeanwhile) {
  word slot = 0;
  slot_protocol::publish(slot, 1, slot_flag::none);
  EXPECT_EQ(slot_protocol::request(slot, slot_flag::waiter).state(), slot_state::queued);
  const auto claimed = slot_protocol::try_claim(slot, 1, 1);
  slot_protocol::request(slot, slot_flag::notify);
  const auto asked = slot_protocol::complete(slot, *claimed, slot_flag::line_reply);
  EXPECT_TRUE(asked.has(slot_flag::waiter));
  EXPECT_TRUE(asked.has(slot_flag::notify));
  EXPECT_EQ(slot_protocol::read(slot).state(), slot_state::done);
  EXPECT_TRUE(slot_protocol::read(slot).has(slot_flag::line_reply));
}

TEST(SlotProtocol, ARequestThatComesTooLateSaysSo) {
  word slot = 0;
  slot_protocol::publish(slot, 1, slot_flag::none);
  const auto claimed = slot_protocol::try_claim(slot, 1, 1);
  static_cast<void>(slot_protocol::complete(slot, *claimed, slot_flag::none));
  EXPECT_EQ(slot_protocol::request(slot, slot_flag::waiter).state(), slot_state::done);
}

TEST(SlotProtocol, SeizingFreesWhatADeadWorkerHeld) {
  word slot = 0;
  slot_protocol::publish(slot, 1, slot_flag::none);
  ASSERT_TRUE(slot_protocol::try_claim(slot, 1, 1));
  EXPECT_EQ(slot_protocol::seize(slot, 1).state(), slot_state::claimed);
  EXPECT_EQ(slot_protocol::read(slot).state(), slot_state::free);
}

// Claim, revoke and requests race; each task ends in exactly one hand.
TEST(SlotProtocol, EveryTaskHasOneWinner) {
  constexpr std::uint64_t rounds = 10000;
  word slot = 0;
  std::atomic<std::uint64_t> published = 0;
  std::atomic<std::uint64_t> wins = 0;
  // Asleep: among busy programs, who yields instead waits for a time slice of each.
  const auto await = [](const std::atomic<std::uint64_t>& which, std::uint64_t least) {
    for (auto now = which.load(); now < least; now = which.load()) which.wait(now);
  };
  const auto follow = [&](auto act) {
    return [&, act] {
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        await(published, round);
        if (!act(round)) continue;
        wins.fetch_add(1);
        wins.notify_all();
      }
    };
  };
  std::vector<std::thread> threads;
  threads.emplace_back(follow([&](std::uint64_t round) {
    return slot_protocol::try_claim(slot, static_cast<std::uint32_t>(round), 1).has_value();
  }));
  threads.emplace_back(follow([&](std::uint64_t round) {
    return slot_protocol::try_claim(slot, static_cast<std::uint32_t>(round), 2).has_value();
  }));
  threads.emplace_back(follow([&](std::uint64_t round) { return slot_protocol::try_revoke(slot, round); }));
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    slot_protocol::publish(slot, round, slot_flag::none);
    published.store(round);
    published.notify_all();
    slot_protocol::request(slot, slot_flag::stop);
    await(wins, round);
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(wins.load(), rounds);
}

}  // namespace
}  // namespace muster::slot_protocol_test
