// SPDX-License-Identifier: BSL-1.0
// Holds in messages of structures that are recovered on their own.
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>

namespace muster::arena_messages_test {
namespace {

class ArenaMessages : public testing::Test {
protected:
  static unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }
  domain_files files() {
    return {.control = duplicate(host_.files().control), .arena = duplicate(host_.files().arena)};
  }
  shared_block make(const char* text) {
    auto made = peer_.blocks().allocate_shared(100);
    std::strcpy(reinterpret_cast<char*>(made.data()), text);
    return made;
  }
  static const char* text_of(const shared_block& block) { return reinterpret_cast<const char*>(block.data()); }
  // As it is of one that has died: where leak checkers look.
  static void leave_dead(shared_block& which) {
    static std::vector<const void*> left;
    left.push_back(which.release());
  }
  void expect_all_free() {
    const auto found = host_.blocks().read_statistics();
    EXPECT_EQ(found.live_blocks, 0U);
    EXPECT_EQ(found.holds, 0U);
  }

  domain host_{{.arena_bytes = std::size_t{16} << 20U, .max_participants = 8, .max_blocks = 64}};
  participant_id id_ = host_.participants().enrol();
  domain peer_{files(), id_};
};

TEST_F(ArenaMessages, WhatIsHandedOverIsTheMessagesAlone) {
  const auto name = peer_.blocks().hand_over(make("handed over"));
  EXPECT_EQ(peer_.blocks().read_statistics().holds, 0U);
  const auto received = host_.blocks().receive(name);
  EXPECT_STREQ(text_of(received), "handed over");
  EXPECT_TRUE(host_.blocks().is_sole(received));
}

TEST_F(ArenaMessages, HandingOverOneOfTwoHandlesLeavesTheOther) {
  const auto kept = make("two handles");
  const auto name = peer_.blocks().hand_over(shared_block(kept));
  const auto received = host_.blocks().receive(name);
  EXPECT_STREQ(text_of(kept), "two handles");
  EXPECT_FALSE(host_.blocks().is_sole(received));
}

TEST_F(ArenaMessages, WhatIsBorrowedFromAMessageBecomesTheReceiversOwn) {
  const auto name = peer_.blocks().hand_over(make("lent, then kept"));
  const auto borrowed = host_.blocks().borrow_sent(name);
  const auto copy = borrowed;
  EXPECT_EQ(host_.blocks().read_statistics().holds, 0U);
  host_.blocks().receive_for(borrowed, name);
  EXPECT_EQ(host_.blocks().read_statistics().holds, 1U);
  EXPECT_STREQ(text_of(copy), "lent, then kept");
}

// The hold that the message names is what it has until the message is gone: it may die before, and the message is there
// again.
TEST_F(ArenaMessages, WhatWasKeptAlreadyIsReceivedAllTheSame) {
  const auto name = host_.blocks().hand_over(shared_block(host_.blocks().allocate_shared(100)));
  host_.blocks().entrust(name, participant_id::host);
  auto borrowed = peer_.blocks().borrow_sent(name);
  peer_.blocks().keep(borrowed);
  peer_.blocks().receive_for(borrowed, name);
  EXPECT_EQ(peer_.blocks().read_statistics().holds, 1U);
  host_.blocks().entrust(name, id_);  // as the recovery of a queue does
  EXPECT_NO_THROW(static_cast<void>(host_.blocks().borrow_sent(name)));
  static_cast<void>(host_.blocks().receive(name));
  static const void* left = nullptr;  // where leak checkers look
  left = borrowed.release();          // it is dead
  EXPECT_NE(left, nullptr);
  host_.bury(id_);
  expect_all_free();
}

TEST_F(ArenaMessages, ADeathDropsWhatItHasSentUnlessItWasEntrusted) {
  const auto dropped = peer_.blocks().hand_over(make("dropped"));
  const auto entrusted = peer_.blocks().hand_over(make("entrusted"));
  const auto inherited = peer_.blocks().hand_over(make("inherited"));
  peer_.blocks().entrust(entrusted, id_);
  host_.blocks().entrust(inherited, id_);
  host_.bury(id_);
  EXPECT_THROW(static_cast<void>(host_.blocks().borrow_sent(dropped)), error);
  EXPECT_STREQ(text_of(host_.blocks().receive(entrusted)), "entrusted");
  EXPECT_STREQ(text_of(host_.blocks().receive(inherited)), "inherited");
  expect_all_free();
}

TEST_F(ArenaMessages, WhatWasReceivedMeanwhileIsNotEntrusted) {
  const auto name = peer_.blocks().hand_over(make("back again"));
  {
    const auto again = peer_.blocks().receive(name);
    peer_.blocks().entrust(name, id_);
    EXPECT_STREQ(text_of(again), "back again");
  }
  host_.bury(id_);
  expect_all_free();
}

TEST_F(ArenaMessages, ForgedNamesAreRefused) {
  for (const auto name : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 32U | 7U}) {
    EXPECT_THROW(static_cast<void>(host_.blocks().borrow_sent(name)), error);
    host_.blocks().entrust(name, id_);
  }
}

// The name of a hold can be had from its descriptor, which everybody can read.
TEST_F(ArenaMessages, WhatSomebodyHoldsForHimselfIsNotTakenByAMessageThatNamesIt) {
  const auto name = peer_.blocks().send(make("mine"));
  const auto mine = host_.blocks().receive(name);
  for (auto* const thief : {&host_, &peer_}) {
    EXPECT_THROW(static_cast<void>(thief->blocks().borrow_sent(name)), error);
    EXPECT_THROW(static_cast<void>(thief->blocks().receive(name)), error);
  }
  host_.blocks().entrust(name, participant_id::host);
  host_.bury(id_);
  EXPECT_STREQ(text_of(mine), "mine");
  EXPECT_EQ(host_.blocks().read_statistics().holds, 1U);
}

TEST_F(ArenaMessages, AHoldThatIsAnotherBlocksByNowIsRefused) {
  const auto name = peer_.blocks().send(make("first"));
  const auto other = peer_.blocks().send(make("second"));
  const auto borrowed = host_.blocks().borrow_sent(name);
  EXPECT_THROW(host_.blocks().receive_for(borrowed, other), error);
  host_.blocks().receive_for(borrowed, name);
  EXPECT_STREQ(text_of(borrowed), "first");
}

TEST_F(ArenaMessages, TheOnlyHandleIsKnownAsSuch) {
  auto block = make("mine");
  EXPECT_TRUE(peer_.blocks().is_sole(block));
  {
    const auto copy = block;
    EXPECT_FALSE(peer_.blocks().is_sole(block));
  }
  const auto name = peer_.blocks().send(block);
  EXPECT_FALSE(peer_.blocks().is_sole(block));
  host_.blocks().receive(name).reset();
  EXPECT_TRUE(peer_.blocks().is_sole(block));
  EXPECT_FALSE(peer_.blocks().is_sole(peer_.blocks().borrow(peer_.blocks().name_of(block))));
}

// ---- holds that go with a block

class ArenaMessagesInABlock : public ArenaMessages {
protected:
  // One of `what`, in a message in `carrier`.
  static std::uint64_t send(arena& from, const shared_block& what, const shared_block& carrier) {
    const auto name = from.send(what, carrier);
    from.entrust(name, carrier);
    return name;
  }
  // Of a carrier that the peer makes, keeps a hold on, and gives the host another one.
  shared_block given_to_host(const shared_block& carrier) {
    return host_.blocks().receive(peer_.blocks().send(carrier));
  }
  [[nodiscard]] bool is_there(std::uint64_t name) {
    try {
      static_cast<void>(host_.blocks().borrow_sent(name));
      return true;
    } catch (const error&) {
      return false;
    }
  }
};

TEST_F(ArenaMessagesInABlock, AreReceivedAfterTheirSendersDeath) {
  auto carrier = make("a ring");
  const auto mine = given_to_host(carrier);
  const auto name = send(peer_.blocks(), make("in a ring"), carrier);
  leave_dead(carrier);
  host_.bury(id_);
  EXPECT_STREQ(text_of(host_.blocks().receive(name)), "in a ring");
}

TEST_F(ArenaMessagesInABlock, GoWithItWhoeverFreesIt) {
  for (const bool peer_is_last : {false, true}) {
    auto carrier = make("a ring");
    auto mine = given_to_host(carrier);
    const auto name = send(peer_.blocks(), make("in a ring"), carrier);
    (peer_is_last ? mine : carrier).reset();
    EXPECT_TRUE(is_there(name));
    (peer_is_last ? carrier : mine).reset();
    EXPECT_FALSE(is_there(name));
    expect_all_free();
  }
}

TEST_F(ArenaMessagesInABlock, GoWithItWhenItsLastHolderDies) {
  auto carrier = make("a ring");
  const auto name = send(peer_.blocks(), make("in a ring"), carrier);
  leave_dead(carrier);
  host_.bury(id_);
  EXPECT_FALSE(is_there(name));
  expect_all_free();
}

TEST_F(ArenaMessagesInABlock, GoWithWhatThatWentWith) {
  auto outer = make("a group");
  auto carrier = make("a ring");
  const auto inner_name = send(peer_.blocks(), make("in a ring"), carrier);
  const auto name = send(peer_.blocks(), carrier, outer);
  carrier.reset();
  EXPECT_TRUE(is_there(name) && is_there(inner_name));
  outer.reset();
  EXPECT_FALSE(is_there(name) || is_there(inner_name));
  expect_all_free();
}

// As long as nobody has entrusted it.
TEST_F(ArenaMessagesInABlock, GoWithTheirSenderBeforeTheyAreTheCarriers) {
  auto carrier = make("a ring");
  const auto mine = given_to_host(carrier);
  const auto name = peer_.blocks().send(make("in a ring"), carrier);
  leave_dead(carrier);
  host_.bury(id_);
  EXPECT_FALSE(is_there(name));
}

TEST_F(ArenaMessagesInABlock, AreTheReceiversOwnThenWhateverBecomesOfTheBlock) {
  auto carrier = make("a ring");
  const auto name = send(peer_.blocks(), make("in a ring"), carrier);
  auto received = host_.blocks().receive(name);
  peer_.blocks().entrust(name, carrier);  // too late
  carrier.reset();
  EXPECT_STREQ(text_of(received), "in a ring");
  const auto next = host_.blocks().hand_over(std::move(received));
  host_.blocks().entrust(next, participant_id::host);  // in a queue
  send(peer_.blocks(), make("in a ring"), make("another"));
  EXPECT_STREQ(text_of(host_.blocks().receive(next)), "in a ring");
}

// Each life of a descriptor is another block: the next one carries nothing.
TEST_F(ArenaMessagesInABlock, AreNotOfTheNextBlockInItsPlace) {
  auto carrier = make("a ring");
  const auto name = send(peer_.blocks(), make("in a ring"), carrier);
  carrier.reset();
  carrier = make("the next");
  EXPECT_THROW(static_cast<void>(host_.blocks().receive(name)), error);
  const auto next = send(peer_.blocks(), make("in the next"), carrier);
  EXPECT_TRUE(is_there(next));
  carrier.reset();
  EXPECT_FALSE(is_there(next));
}

}  // namespace
}  // namespace muster::arena_messages_test
