// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/slot_word.hpp>

#include <gtest/gtest.h>

namespace muster::slot_word_test {
namespace {

TEST(SlotWord, KeepsItsParts) {
  const slot_word word((std::uint64_t{1} << 42U) - 1, slot_word::most_owners,
                       slot_flag::waiter | slot_flag::block_reply, slot_state::claimed);
  EXPECT_EQ(word.generation(), (std::uint64_t{1} << 42U) - 1);
  EXPECT_EQ(word.owner(), slot_word::most_owners);
  EXPECT_EQ(word.flags(), slot_flag::waiter | slot_flag::block_reply);
  EXPECT_EQ(word.state(), slot_state::claimed);
  EXPECT_EQ(slot_word(word.bits()), word);
}

TEST(SlotWord, ZeroIsAFreeSlotOfNobody) {
  EXPECT_EQ(slot_word().state(), slot_state::free);
  EXPECT_EQ(slot_word().owner(), 0U);
}

TEST(SlotWord, FlagsAreSetWithoutTouchingTheRest) {
  const slot_word word(5, 3, slot_flag::none, slot_state::queued);
  const slot_word flagged(word.bits() | slot_word::flag_bits(slot_flag::notify));
  EXPECT_TRUE(flagged.has(slot_flag::notify));
  EXPECT_FALSE(flagged.has(slot_flag::waiter));
  EXPECT_EQ(flagged.generation(), 5U);
  EXPECT_EQ(flagged.owner(), 3U);
  EXPECT_EQ(flagged.state(), slot_state::queued);
}

TEST(SlotWord, SuccessiveGenerationsDifferInTheHalfThatAFutexCompares) {
  const slot_word one(7, 1, slot_flag::waiter, slot_state::claimed);
  const slot_word next(8, 1, slot_flag::waiter, slot_state::claimed);
  EXPECT_NE(static_cast<std::uint32_t>(one.bits()), static_cast<std::uint32_t>(next.bits()));
}

}  // namespace
}  // namespace muster::slot_word_test
