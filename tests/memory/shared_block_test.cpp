// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/shared_block.hpp>

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>

namespace muster::shared_block_test {
namespace {

// The tables of a domain as everybody maps them: docs/formats/domain.md.
class tables {
public:
  tables(const unique_fd& control, std::size_t participants, std::size_t blocks)
      : participants_(participants),
        blocks_(blocks),
        memory_(control, block_page + blocks * sizeof(block_descriptor), mapping::inherit::yes) {}

  [[nodiscard]] participant_entry& entry(participant_id who) const {
    return at<participant_entry>(4096, participants_)[index_of(who)];
  }
  [[nodiscard]] block_table blocks() const {
    return {at<block_descriptor>(block_page, blocks_), table_mark(at<std::atomic<std::uint64_t>>(32, 1)[0])};
  }

private:
  static constexpr std::size_t block_page = 8192;  // with at most 64 participants

  template <class T>
  [[nodiscard]] std::span<T> at(std::size_t offset, std::size_t count) const {
    return {reinterpret_cast<T*>(memory_.bytes().data() + offset), count};
  }

  std::size_t participants_;
  std::size_t blocks_;
  mapping memory_;
};

// Three participants in this process: each has an arena of its own over the same files.
class SharedBlock : public testing::Test {
protected:
  SharedBlock() {
    for (auto& each : guests_) {
      ids_.push_back(host_.participants().enrol());
      each = join(ids_.back());
    }
  }

  std::unique_ptr<domain> join(participant_id id) {
    return std::make_unique<domain>(
        domain_files{.control = duplicate(host_.files().control), .arena = duplicate(host_.files().arena)}, id);
  }
  static unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }

  [[nodiscard]] arena& host() { return host_.blocks(); }
  [[nodiscard]] arena& guest(std::size_t index) { return guests_[index]->blocks(); }
  // As a crash would: the participant is gone, and its arena has not let go of anything. Its handles, which a test
  // still has, let go when all has been looked at.
  void kill(std::size_t index) {
    graves_.push_back(std::move(guests_[index]));
    host_.bury(ids_[index]);
  }
  [[nodiscard]] std::size_t held() { return host().read_statistics().held_bytes; }
  [[nodiscard]] std::size_t free_and_cached() {
    std::size_t cached = host().read_statistics().cached_bytes;
    for (auto& each : guests_) cached += each ? each->blocks().read_statistics().cached_bytes : 0;
    return cached;
  }
  shared_block block_with(const char* content) {
    auto made = host().allocate_shared(100);
    std::strcpy(reinterpret_cast<char*>(made.data()), content);
    return made;
  }
  void expect_all_free() { EXPECT_EQ(held(), free_and_cached()); }

  // As if the participant had made so many changes of counts, in a process before this one.
  void begin_after(std::size_t index, std::uint64_t changes) {
    tables_.entry(ids_[index]).change = changes;
    guests_[index] = join(ids_[index]);
  }
  std::uint32_t begin_to_add(std::size_t index, std::uint64_t target) {
    auto blocks = tables_.blocks();
    const auto hold = blocks.bind(ids_[index], 0, 0, 0).value();
    blocks.at(hold).target = target;
    blocks.at(hold).change = ++tables_.entry(ids_[index]).change;
    set_state(hold, block_state::adding);
    return hold;
  }
  void kill_when_about_to_add(std::size_t index, std::uint64_t target) {
    static_cast<void>(begin_to_add(index, target));
    kill(index);
  }
  // The block that it was told of has ended meanwhile; it may have noted already which one it holds.
  void kill_when_just_added_to_the_next(std::size_t index, std::uint64_t target, std::uint64_t noted) {
    const auto hold = begin_to_add(index, target);
    auto blocks = tables_.blocks();
    const auto added =
        share_protocol::change_count(blocks.at(target >> 32U).count, 1, ids_[index], blocks.at(hold).change,
                                     [this](participant_id who) { return &tables_.entry(who); });
    EXPECT_TRUE(added);
    blocks.at(hold).target = noted;
    kill(index);
  }
  void kill_when_just_added(std::size_t index) {
    for (std::uint32_t each = 0; each < tables_.blocks().used_count(); ++each) {
      const auto found = tables_.blocks().read(each).owner;
      if (found.owner == ids_[index] && found.state == block_state::hold) set_state(each, block_state::adding);
    }
    kill(index);
  }
  void set_state(std::uint32_t hold, block_state state) {
    const auto found = tables_.blocks().read(hold).owner;
    auto changed = found;
    changed.state = state;
    EXPECT_TRUE(tables_.blocks().change(hold, found, changed));
  }

  domain host_{{.arena_bytes = std::size_t{64} << 20U, .max_participants = 8, .max_blocks = 64}};
  const tables tables_{host_.files().control, 8, 64};
  std::vector<participant_id> ids_;
  std::array<std::unique_ptr<domain>, 2> guests_;
  std::vector<std::unique_ptr<domain>> graves_;
};

void write(const shared_block& to, const char* text) { std::strcpy(reinterpret_cast<char*>(to.data()), text); }
std::string read(const shared_block& from) { return reinterpret_cast<const char*>(from.data()); }

TEST_F(SharedBlock, HasTheSizeAskedForAndIsFreeWhenItsLastHandleIsGone) {
  auto made = host().allocate_shared(100'000);
  EXPECT_EQ(made.size(), 100'000U);
  const auto copy = made;
  EXPECT_FALSE(made.is_unique());
  made.reset();
  EXPECT_TRUE(copy.is_unique());
  EXPECT_EQ(host().read_statistics().live_blocks, 1U);
  shared_block(copy).reset();
  EXPECT_EQ(host().read_statistics().live_blocks, 1U);
}

TEST_F(SharedBlock, ACellTakesNoMemoryAndIsGoneWithItsLastHold) {
  const auto before = held();
  auto cell = host().allocate_cell();
  EXPECT_EQ(cell.size(), 0U);
  const auto name = host().name_of(cell);
  auto kept = guest(0).borrow(name);
  guest(0).keep(kept);
  auto received = guest(1).receive(host().send(cell));
  EXPECT_EQ(held(), before);
  EXPECT_FALSE(host().is_sole(cell));
  cell.reset();
  kept.reset();
  EXPECT_EQ(host().borrow(name).size(), 0U);
  received.reset();
  EXPECT_THROW(static_cast<void>(host().borrow(name)), error);
  host().allocate_cell().reset();  // which nobody else has had
  EXPECT_EQ(host().read_statistics().live_blocks, 0U);
  EXPECT_EQ(host().read_statistics().holds, 0U);
}

TEST_F(SharedBlock, ADeadProcesssHoldsOnCellsAreDropped) {
  const auto cell = host().allocate_cell();
  const auto received = guest(0).receive(host().send(cell));
  const auto alone = guest(0).allocate_cell();
  auto made = guest(0).allocate_cell();
  const auto name = guest(0).name_of(made);
  auto kept = guest(1).borrow(name);
  guest(1).keep(kept);
  EXPECT_FALSE(host().is_sole(cell));
  kill(0);
  EXPECT_TRUE(host().is_sole(cell));
  EXPECT_EQ(host().borrow(name).size(), 0U) << "another holds it";
  kept.reset();
  EXPECT_THROW(static_cast<void>(host().borrow(name)), error);
}

TEST_F(SharedBlock, ABorrowerSeesTheSameBytes) {
  const auto made = host().allocate_shared(1000);
  write(made, "written by the host");
  const auto borrowed = guest(0).borrow(host().name_of(made));
  EXPECT_EQ(read(borrowed), "written by the host");
  write(borrowed, "written by the guest");
  EXPECT_EQ(read(made), "written by the guest");
}

TEST_F(SharedBlock, BorrowedHandleThatNobodySharesBorrowsTheNextBlockInItsPlace) {
  const auto first = block_with("the first");
  const auto second = block_with("the second");
  auto borrowed = guest(0).borrow(host().name_of(first));
  guest(0).borrow_into(borrowed, host().name_of(second));
  EXPECT_EQ(read(borrowed), "the second");
}

TEST_F(SharedBlock, BorrowedHandleWithCopiesOrAHoldIsReplacedAndTheOthersStay) {
  const auto first = block_with("the first");
  const auto second = block_with("the second");
  auto handle = guest(0).borrow(host().name_of(first));
  auto copy = handle;
  guest(0).borrow_into(handle, host().name_of(second));
  EXPECT_EQ(read(copy), "the first");
  EXPECT_EQ(read(handle), "the second");
  guest(0).keep(copy);
  guest(0).borrow_into(copy, host().name_of(second));
  EXPECT_EQ(read(copy), "the second");
  EXPECT_EQ(guest(0).read_statistics().holds, 0U);
}

TEST_F(SharedBlock, ABlockThatIsKeptNoLongerIsFreeAndItsHandleBorrowsAgain) {
  auto first = block_with("the first");
  const auto second = block_with("the second");
  auto handle = guest(0).borrow(host().name_of(first));
  guest(0).keep(handle);
  guest(0).unkeep(handle);
  guest(0).unkeep(handle);  // it is not kept: nothing happens
  EXPECT_EQ(guest(0).read_statistics().holds, 0U);
  const auto name = host().name_of(first);
  first.reset();
  EXPECT_THROW(static_cast<void>(guest(1).borrow(name)), error);
  guest(0).borrow_into(handle, host().name_of(second));
  guest(0).keep(handle);
  EXPECT_EQ(read(handle), "the second");
}

TEST_F(SharedBlock, HandleThatWasReleasedAndReadoptedIsTheSame) {
  auto made = host().allocate_shared(100);
  write(made, "kept as a pointer");
  auto* const released = made.release();
  EXPECT_FALSE(made);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(released) % 8, 0U);
  EXPECT_EQ(read(shared_block::readopt(released)), "kept as a pointer");
  expect_all_free();
}

TEST_F(SharedBlock, ABorrowedBlockThatIsKeptOutlivesItsLender) {
  auto made = host().allocate_shared(1000);
  auto kept = guest(0).borrow(host().name_of(made));
  guest(0).keep(kept);
  write(made, "still there");
  made.reset();
  EXPECT_EQ(read(kept), "still there");
  EXPECT_EQ(guest(0).read_statistics().holds, 1U);
  kept.reset();
  expect_all_free();
}

TEST_F(SharedBlock, OneThatWasSentBelongsToItsReceiver) {
  auto made = guest(0).allocate_shared(1000);
  write(made, "from one guest to the other");
  auto received = guest(1).receive(guest(0).send(made));
  made.reset();
  EXPECT_EQ(read(received), "from one guest to the other");
  received.reset();
  expect_all_free();
}

TEST_F(SharedBlock, CanBeSentToOneself) {
  auto made = guest(0).allocate_shared(1000);
  auto again = guest(0).receive(guest(0).send(made));
  EXPECT_EQ(made.data(), again.data());
  made.reset();
  write(again, "here");
  again.reset();
  expect_all_free();
}

TEST_F(SharedBlock, CanBeInManyMessagesAtOnce) {
  auto made = host().allocate_shared(1000);
  std::vector<std::uint64_t> sent;
  for (int count = 0; count < 20; ++count) sent.push_back(host().send(made));
  made.reset();
  for (const auto name : sent) write(guest(0).receive(name), "x");
  EXPECT_EQ(guest(0).read_statistics().holds, 0U);
  expect_all_free();
}

TEST_F(SharedBlock, AReceivedOneCanBeSentOn) {
  auto made = host().allocate_shared(1000);
  write(made, "round");
  auto first = guest(0).receive(host().send(made));
  made.reset();
  auto second = guest(1).receive(guest(0).send(first));
  first.reset();
  auto back = host().receive(guest(1).send(second));
  second.reset();
  EXPECT_EQ(read(back), "round");
}

TEST_F(SharedBlock, ABorrowedOneCanBeSentOn) {
  auto made = host().allocate_shared(1000);
  auto borrowed = guest(0).borrow(host().name_of(made));
  auto received = guest(1).receive(guest(0).send(borrowed));
  borrowed.reset();
  made.reset();
  write(received, "held");
  received.reset();
  expect_all_free();
}

TEST_F(SharedBlock, OutlivesTheProcessThatMadeIt) {
  auto made = guest(0).allocate_shared(200'000);
  write(made, "the maker is dead");
  auto received = host().receive(guest(0).send(made));
  kill(0);
  EXPECT_EQ(read(received), "the maker is dead");
  received.reset();
  expect_all_free();
}

TEST_F(SharedBlock, ADeadHoldersHoldsAreDropped) {
  auto made = host().allocate_shared(200'000);
  auto received = guest(0).receive(host().send(made));
  auto kept = guest(0).borrow(host().name_of(made));
  guest(0).keep(kept);
  kill(0);
  made.reset();
  expect_all_free();
  EXPECT_EQ(host().read_statistics().holds, 0U);
}

TEST_F(SharedBlock, WhatADeadProcessHeldAloneIsFree) {
  auto made = guest(0).allocate_shared(200'000);
  static_cast<void>(guest(0).name_of(made));
  auto never_shared = guest(0).allocate_shared(200'000);
  static_cast<void>(guest(0).send(made));  // and nobody ever received it
  kill(0);
  expect_all_free();
}

TEST_F(SharedBlock, ADeathAfterChangesThatNobodyConfirmedDropsNoHoldOfOthers) {
  begin_after(0, 0x7fff'ffff);
  auto made = block_with("the host's");
  const auto name = host().name_of(made);
  kill_when_about_to_add(0, name);
  EXPECT_EQ(read(guest(1).borrow(name)), "the host's");
  made.reset();
  expect_all_free();
}

TEST_F(SharedBlock, ADeathAfterASignatureOfLongAgoWasOverwrittenDropsNoHoldOfOthers) {
  auto made = block_with("the host's");
  const auto name = host().name_of(made);
  auto kept = guest(0).borrow(name);
  guest(0).keep(kept);
  guest(0).unkeep(kept);  // its second change
  kept.reset();
  begin_after(0, 0x8000'0400);
  tables_.entry(ids_[0]).confirmed = 0x8000'0300;
  auto other = guest(1).borrow(name);
  guest(1).keep(other);
  kill_when_about_to_add(0, name);
  other.reset();
  EXPECT_EQ(read(guest(1).borrow(name)), "the host's");
  made.reset();
  expect_all_free();
}

TEST_F(SharedBlock, ADeathAfterMoreChangesThanASignatureHasBitsForDropsWhatWasHeld) {
  begin_after(0, 0xffff'ffff);
  auto made = block_with("the host's");
  const auto name = host().name_of(made);
  const auto kept = guest(0).borrow(name);
  guest(0).keep(kept);
  auto other = guest(1).borrow(name);
  guest(1).keep(other);
  EXPECT_EQ(tables_.entry(ids_[0]).confirmed, 0x1'0000'0000U);
  kill_when_just_added(0);
  EXPECT_EQ(read(guest(1).borrow(name)), "the host's");
  other.reset();
  made.reset();
  expect_all_free();
}

TEST_F(SharedBlock, ADeathAfterCountingOneselfIntoTheNextBlockOfTheDescriptorDropsThatHold) {
  auto made = block_with("the first");
  const auto name = host().name_of(made);
  made.reset();
  made = block_with("the second");
  const auto next = host().name_of(made);
  ASSERT_EQ(next >> 32U, name >> 32U) << "which has been another block";
  kill_when_just_added_to_the_next(0, name, name);
  EXPECT_TRUE(host().is_sole(made));
  kill_when_just_added_to_the_next(1, name, next);
  EXPECT_TRUE(host().is_sole(made));
  EXPECT_EQ(read(made), "the second");
  made.reset();
  expect_all_free();
}

TEST_F(SharedBlock, ADeathBeforeCountingOneselfIntoTheNextBlockOfTheDescriptorDropsNothing) {
  auto made = block_with("the first");
  const auto name = host().name_of(made);
  made.reset();
  made = block_with("the second");
  const auto next = host().name_of(made);
  ASSERT_EQ(next >> 32U, name >> 32U) << "which has been another block";
  kill_when_about_to_add(0, name);
  EXPECT_EQ(read(guest(1).borrow(next)), "the second");
  made.reset();
  expect_all_free();
}

TEST_F(SharedBlock, IsHeldByMoreParticipantsThanAWordHasBits) {
  domain many({.arena_bytes = std::size_t{16} << 20U, .max_participants = 202, .max_blocks = 512});
  auto made = many.blocks().allocate_shared(1000);
  std::vector<std::unique_ptr<domain>> joined;
  std::vector<participant_id> ids;
  std::vector<shared_block> held;
  for (int count = 0; count < 200; ++count) {
    ids.push_back(many.participants().enrol());
    joined.push_back(std::make_unique<domain>(
        domain_files{.control = duplicate(many.files().control), .arena = duplicate(many.files().arena)}, ids.back()));
    held.push_back(joined.back()->blocks().receive(many.blocks().send(made)));
  }
  made.reset();
  write(held.back(), "held 200 times");
  EXPECT_EQ(read(held.front()), "held 200 times");
  held.clear();
  std::size_t cached = many.blocks().read_statistics().cached_bytes;
  for (auto& each : joined) cached += each->blocks().read_statistics().cached_bytes;
  EXPECT_EQ(many.blocks().read_statistics().held_bytes, cached);
}

TEST_F(SharedBlock, ANameFromBeforeIsRefused) {
  auto made = host().allocate_shared(1000);
  const auto name = host().name_of(made);
  const auto hold = host().send(made);
  guest(0).receive(hold).reset();
  EXPECT_THROW(static_cast<void>(guest(0).receive(hold)), error);
  made.reset();
  const auto next = host().allocate_shared(1000);  // the same memory, most likely
  EXPECT_THROW(static_cast<void>(guest(0).borrow(name)), error);
  EXPECT_THROW(static_cast<void>(guest(0).borrow(UINT64_MAX)), error);
  EXPECT_THROW(static_cast<void>(guest(0).borrow(0)), error);
}

TEST_F(SharedBlock, TheErrorForAnOldNameSaysWhichBlockAndGenerationItIs) {
  auto made = host().allocate_shared(1000);
  const auto name = host().name_of(made);
  made.reset();
  try {
    static_cast<void>(guest(0).borrow(name));
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::corrupted);
    EXPECT_THAT(refused.what(), testing::HasSubstr("block " + std::to_string(name >> 32U) + ", generation " +
                                                   std::to_string(name & UINT32_MAX)));
  }
}

TEST_F(SharedBlock, AnAloneBlockCannotBeBorrowedUnderAForgedName) {
  const auto made = host().allocate_shared(1000);
  for (std::uint64_t descriptor = 0; descriptor < 64; ++descriptor) {
    EXPECT_THROW(static_cast<void>(guest(0).borrow(descriptor << 32U | 1)), error);
  }
}

TEST_F(SharedBlock, WhenDescriptorsRunOutTheErrorSaysSoAndNothingIsLost) {
  auto made = host().allocate_shared(1000);
  std::vector<std::uint64_t> sent;
  try {
    for (;;) sent.push_back(host().send(made));
  } catch (const error& found) {
    EXPECT_EQ(found.code(), make_error_code(errc::out_of_memory));
    EXPECT_THAT(found.what(), testing::HasSubstr("descriptors"));
  }
  made.reset();
  for (const auto name : sent) guest(0).receive(name).reset();
  expect_all_free();
}

}  // namespace
}  // namespace muster::shared_block_test
