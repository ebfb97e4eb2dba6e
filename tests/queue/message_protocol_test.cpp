// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/message_protocol.hpp>

#include <new>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/memory/detail/wait/wait_protocol.hpp>
#include <muster/queue/detail/ring_memory.hpp>

namespace muster::message_protocol_test {
namespace {

using message_protocol::claim_empty;
using message_protocol::claim_ready;
using message_protocol::make_empty;
using message_protocol::make_ready;
using finding = message_protocol::look::finding;

constexpr participant_id producer{2};
constexpr participant_id consumer{3};
constexpr participant_id another{4};

class MessageProtocol : public testing::TestWithParam<queue_kind> {
protected:
  ring_memory make(std::size_t capacity) {
    const auto shape = ring_shape::of(GetParam(), capacity, 8, {});
    bytes_.reset(new (std::align_val_t(128)) std::byte[shape.total_bytes()]);
    return ring_memory::make({bytes_.get(), shape.total_bytes()}, shape);
  }
  static bool push(ring_memory& ring) {
    const auto at = claim_empty(ring, producer);
    if (at) make_ready(ring, *at);
    return at.has_value();
  }
  static bool pop(ring_memory& ring) {
    const auto found = claim_ready(ring, consumer);
    if (found.what == finding::ready) make_empty(ring, found.at);
    return found.what == finding::ready;
  }

  struct aligned_delete {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t(128)); }
  };
  std::unique_ptr<std::byte[], aligned_delete> bytes_;
};

TEST(MessageWord, HoldsLapOwnerAndState) {
  const message_word word(lap_mask, participant_id{0x1234}, message_state::reading);
  EXPECT_EQ(word.lap(), lap_mask);
  EXPECT_EQ(word.owner(), participant_id{0x1234});
  EXPECT_EQ(word.state(), message_state::reading);
}

TEST(MessageWord, LapsAreComparedAcrossTheirEnd) {
  EXPECT_EQ(laps_ahead(0, lap_mask), 1);
  EXPECT_EQ(laps_ahead(lap_mask, 0), -1);
  EXPECT_EQ(laps_ahead(7, 7), 0);
}

TEST(RingPosition, GoesRoundAndCountsLaps) {
  const ring_position last(lap_mask, 2);
  EXPECT_EQ(last.next(3), ring_position(0, 0));
  EXPECT_EQ(ring_position(0, 1).ahead_of(last, 3), 2);
  EXPECT_EQ(last.ahead_of(ring_position(0, 1), 3), -2);
}

TEST_P(MessageProtocol, ExactlyTheCapacityFitsInOrder) {
  for (const std::size_t capacity : {1U, 2U, 3U, 7U}) {
    auto ring = make(capacity);
    for (int round = 0; round < 5; ++round) {
      for (std::size_t count = 0; count < capacity; ++count) EXPECT_TRUE(push(ring));
      EXPECT_FALSE(push(ring));
      for (std::size_t count = 0; count < capacity; ++count) EXPECT_TRUE(pop(ring));
      EXPECT_FALSE(pop(ring));
    }
  }
}

TEST_P(MessageProtocol, LapsMayWrap) {
  auto ring = make(2);
  const ring_position last(lap_mask, 0);
  const_cast<ring_memory::word&>(ring.cell(0)) = message_word::empty(lap_mask).bits();
  const_cast<ring_memory::word&>(ring.cell(1)) = message_word::empty(lap_mask).bits();
  for (auto at = ring_position(); ring.tail() != last; at = ring.tail()) {
    // Set the hints there: they are words of the header in front of the cells.
    auto* const words = reinterpret_cast<std::uint64_t*>(bytes_.get());
    words[16] = last.bits();
    words[32] = last.bits();
    ASSERT_NE(at, ring.tail());
  }
  for (int count = 0; count < 10; ++count) {
    EXPECT_TRUE(push(ring));
    EXPECT_TRUE(push(ring));
    EXPECT_FALSE(push(ring));
    EXPECT_TRUE(pop(ring));
    EXPECT_TRUE(pop(ring));
    EXPECT_FALSE(pop(ring));
  }
}

TEST_P(MessageProtocol, ConsumersLookOverWhatIsBeingReadAndWaitForWhatIsBeingWritten) {
  auto ring = make(4);
  push(ring);
  const auto written = claim_empty(ring, producer);
  push(ring);
  const auto first = claim_ready(ring, consumer);
  EXPECT_EQ(first.what, finding::ready);
  EXPECT_EQ(claim_ready(ring, another).what, finding::pending);  // order is kept
  make_ready(ring, *written);
  EXPECT_EQ(claim_ready(ring, another).at, *written);
}

TEST_P(MessageProtocol, WhatIsPutBackIsTheFirstAgain) {
  auto ring = make(3);
  push(ring);
  push(ring);
  const auto first = claim_ready(ring, consumer);
  const auto second = claim_ready(ring, another);
  make_empty(ring, second.at);
  make_ready(ring, first.at);
  EXPECT_EQ(claim_ready(ring, another).at, first.at);
}

TEST_P(MessageProtocol, WhoeverReadsHimselfFindsNothingOthersFindItPending) {
  auto ring = make(2);
  push(ring);
  push(ring);
  EXPECT_EQ(claim_ready(ring, consumer).what, finding::ready);
  EXPECT_EQ(claim_ready(ring, consumer).what, finding::ready);
  EXPECT_EQ(claim_ready(ring, consumer).what, finding::nothing);
  EXPECT_EQ(claim_ready(ring, another).what, finding::pending);
}

TEST_P(MessageProtocol, RecoveryUndoesAWriteAndRedeliversARead) {
  auto ring = make(3);
  push(ring);
  const auto read = claim_ready(ring, consumer);
  const auto written = claim_empty(ring, producer);
  push(ring);
  for (const auto dead : {consumer, producer}) {
    for (std::size_t index = 0; index < ring.capacity(); ++index) message_protocol::recover(ring.cell(index), dead);
  }
  EXPECT_EQ(claim_ready(ring, another).at, read.at);
  EXPECT_EQ(claim_ready(ring, another).at, written->next(3));
  EXPECT_EQ(claim_ready(ring, another).what, finding::nothing);
}

TEST_P(MessageProtocol, AWriteThatIsUndoneCostsNoRoom) {
  auto ring = make(1);
  const auto at = claim_empty(ring, producer);
  ASSERT_TRUE(at);
  message_protocol::recover(ring.cell(0), producer);
  EXPECT_TRUE(push(ring));
  EXPECT_TRUE(pop(ring));
}

TEST_P(MessageProtocol, RecoveryLeavesOthersAlone) {
  auto ring = make(2);
  const auto at = claim_empty(ring, producer);
  message_protocol::recover(ring.cell(0), another);
  make_ready(ring, *at);
  EXPECT_TRUE(pop(ring));
}

TEST_P(MessageProtocol, OverwrittenWordsEndEveryLook) {
  auto ring = make(4);
  for (std::uint64_t bits : {~std::uint64_t{0}, std::uint64_t{0xff}, std::uint64_t{77} << 24U}) {
    for (std::size_t index = 0; index < ring.capacity(); ++index) ring.cell(index).store(bits);
    static_cast<void>(claim_ready(ring, consumer));
    static_cast<void>(claim_empty(ring, producer));
  }
}

// A word that is right but for its owner was claimed over and over before.
TEST_P(MessageProtocol, WordsThatAreAlmostRightAreNotClaimed) {
  auto ring = make(2);
  ring.cell(0).store(message_word(0, another, message_state::empty).bits());
  EXPECT_FALSE(claim_empty(ring, producer));
  EXPECT_TRUE(message_protocol::find_damage_at_tail(ring));
  ring.cell(0).store(message_word(0, another, message_state::ready).bits());
  EXPECT_NE(claim_ready(ring, consumer).what, finding::ready);
  EXPECT_TRUE(message_protocol::find_damage_at_head(ring));
}

TEST_P(MessageProtocol, WhatNobodyCanHaveLeftAtHeadAndTailIsToldOf) {
  for (const auto& forged : {message_word::empty(500), message_word::empty(lap_mask),
                             message_word(0, participant_id::none, message_state::writing),
                             message_word(0, participant_id::everybody, message_state::reading), message_word(0xff)}) {
    auto ring = make(3);
    EXPECT_FALSE(message_protocol::find_damage_at_tail(ring));
    EXPECT_FALSE(message_protocol::find_damage_at_head(ring));
    ring.cell(0).store(forged.bits());
    EXPECT_TRUE(message_protocol::find_damage_at_tail(ring)) << forged.bits();
    EXPECT_TRUE(message_protocol::find_damage_at_head(ring)) << forged.bits();
  }
}

TEST_P(MessageProtocol, HintsThatWereMovedFarAwayAreToldOf) {
  constexpr auto far = std::uint64_t{1} << 30U;
  for (const auto lap : {std::uint64_t{2}, far, lap_mask - far}) {
    auto ring = make(3);
    auto* const words = reinterpret_cast<std::uint64_t*>(bytes_.get());
    words[16] = words[32] = ring_position(lap, 1).bits();
    EXPECT_FALSE(claim_empty(ring, producer));
    EXPECT_NE(claim_ready(ring, consumer).what, finding::ready);
    EXPECT_TRUE(message_protocol::find_damage_at_tail(ring));
    EXPECT_TRUE(message_protocol::find_damage_at_head(ring));
  }
}

TEST_P(MessageProtocol, HintsBeyondTheCellsDoNotStayThere) {
  auto ring = make(2);
  auto* const words = reinterpret_cast<std::uint64_t*>(bytes_.get());
  words[16] = words[32] = ring_position(0, 77).bits();
  for (int count = 0; count < 5; ++count) {
    EXPECT_TRUE(push(ring));
    EXPECT_TRUE(push(ring));
    EXPECT_FALSE(push(ring));
    EXPECT_TRUE(pop(ring));
    EXPECT_TRUE(pop(ring));
    EXPECT_FALSE(pop(ring));
  }
}

TEST_P(MessageProtocol, AForgedHeaderIsRefused) {
  auto ring = make(4);
  const std::span bytes(bytes_.get(), ring.shape().total_bytes());
  EXPECT_EQ(ring_memory::attach(bytes, GetParam()).capacity(), 4U);
  const auto other = GetParam() == queue_kind::p2p ? queue_kind::shared : queue_kind::p2p;
  EXPECT_THROW(static_cast<void>(ring_memory::attach(bytes, other)), error);
  EXPECT_THROW(static_cast<void>(ring_memory::attach(bytes.first(64), GetParam())), error);
  for (std::size_t word = 0; word < 3; ++word) {
    auto& forged = reinterpret_cast<std::uint64_t*>(bytes.data())[word];
    const auto right = std::exchange(forged, 0x7777777777);
    EXPECT_THROW(static_cast<void>(ring_memory::attach(bytes, GetParam())), error) << word;
    forged = right;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MessageProtocol, testing::Values(queue_kind::shared, queue_kind::p2p),
                         [](const auto& each) { return each.param == queue_kind::p2p ? "P2p" : "Shared"; });

TEST(RingShape, SaysWhatIsPossible) {
  EXPECT_EQ(ring_shape::of(queue_kind::shared, 5, 64, {}).inline_bytes(), 112U);
  EXPECT_EQ(ring_shape::of(queue_kind::shared, 5, 0, {}).inline_bytes(), 48U);
  EXPECT_THROW(static_cast<void>(ring_shape::of(queue_kind::shared, 0, 8, {})), error);
  EXPECT_THROW(static_cast<void>(ring_shape::of(queue_kind::shared, ring_position::most_cells + 1, 8, {})), error);
}

TEST(WaitProtocol, AnAnnouncementIsSeenAndChangesTheWord) {
  std::atomic<std::uint32_t> word = 0;
  EXPECT_FALSE(wait_protocol::is_awaited(word));
  const auto first = wait_protocol::announce(word);
  EXPECT_TRUE(wait_protocol::is_awaited(word));
  EXPECT_EQ(word, first);
  EXPECT_NE(wait_protocol::announce(word), first);
}

TEST(WaitProtocol, RaisingKeepsWhoeverIsAboutToSleepAwake) {
  std::atomic<std::uint32_t> word = 0;
  const auto announced = wait_protocol::announce(word);
  const auto raised = wait_protocol::raise(word);
  EXPECT_NE(word, announced);
  wait_protocol::withdraw(word, raised);
  EXPECT_FALSE(wait_protocol::is_awaited(word));
}

TEST(WaitProtocol, WhoeverAnnouncesHimselfAfterTheWakeStaysAnnounced) {
  std::atomic<std::uint32_t> word = 0;
  static_cast<void>(wait_protocol::announce(word));
  const auto raised = wait_protocol::raise(word);
  const auto announced = wait_protocol::announce(word);
  wait_protocol::withdraw(word, raised);
  EXPECT_TRUE(wait_protocol::is_awaited(word));
  EXPECT_EQ(word, announced);
}

TEST(WaitProtocol, NumbersMayWrap) {
  std::atomic<std::uint32_t> word = 0xfffffffe;
  EXPECT_EQ(wait_protocol::announce(word), 1U);
  word = 0xffffffff;
  EXPECT_EQ(wait_protocol::raise(word), 1U);
}

}  // namespace
}  // namespace muster::message_protocol_test
