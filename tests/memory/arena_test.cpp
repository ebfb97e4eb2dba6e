// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/arena.hpp>

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/memory_budget.hpp>
#include <muster/memory/domain.hpp>

#include "error_code.hpp"
#include "refused_calls.hpp"

namespace muster::arena_test {
namespace {

constexpr participant_id worker{2};
constexpr std::size_t mebibyte = std::size_t{1} << 20U;

// Two processes' arenas over one memory, both in this process. One mapping: what sanitizers can follow.
class Arena : public testing::Test {
protected:
  Arena()
      : extents_(64),
        blocks_(256),
        file_(make_memfd("test", extents_.size() * extent_bytes)),
        memory_(file_, extents_.size() * extent_bytes, mapping::inherit::yes),
        host_(make(participant_id::host)),
        guest_(make(worker)) {}

  std::unique_ptr<arena> make(participant_id self, std::size_t shared_cache_bytes = 0, bool populates_all = false) {
    return std::make_unique<arena>(extent_map(extents_, table_mark(extents_used_)),
                                   block_table(blocks_, table_mark(blocks_used_)), memory_.bytes(), file_,
                                   arena::options{.self = self,
                                                  .cache_bytes = mebibyte,
                                                  .shared_cache_bytes = shared_cache_bytes,
                                                  .members = members_,
                                                  .populates_all = populates_all});
  }
  // That have pages.
  [[nodiscard]] std::size_t touched() const {
    struct stat found{};
    EXPECT_EQ(::fstat(file_.get(), &found), 0);
    return static_cast<std::size_t>(found.st_blocks) * 512;
  }
  [[nodiscard]] std::size_t held() const { return host_->read_statistics().held_bytes; }

  std::vector<extent_map::word> extents_;
  std::vector<block_descriptor> blocks_;
  std::vector<participant_entry> members_{4};
  std::atomic<std::uint64_t> extents_used_ = 0;
  std::atomic<std::uint64_t> blocks_used_ = 0;
  unique_fd file_;
  mapping memory_;
  std::unique_ptr<arena> host_;
  std::unique_ptr<arena> guest_;
};

void fill(const block& which, unsigned char value) { std::memset(which.data(), value, which.size()); }

bool holds_only(std::span<const std::byte> bytes, unsigned char value) {
  return std::all_of(bytes.begin(), bytes.end(), [=](std::byte each) { return each == std::byte{value}; });
}

TEST_F(Arena, ASharedBlockWhoseDescriptorWasOverwrittenTakesNoOtherAlong) {
  const auto offset_of = [this](const std::byte* data) {
    return static_cast<std::uint64_t>(data - memory_.bytes().data());
  };
  const auto other = host_->allocate_shared(3 * extent_bytes);
  static_cast<void>(host_->name_of(other));
  const auto own = host_->allocate(3 * extent_bytes);
  const auto owners = [this](std::uint64_t offset) { return extents_[offset / extent_bytes].load(); };
  const auto before = std::pair(owners(offset_of(other.data())), owners(offset_of(own.data())));
  for (const auto forged : {offset_of(other.data()), offset_of(own.data()), UINT64_MAX}) {
    auto damaged = host_->allocate_shared(3 * extent_bytes);
    blocks_[host_->name_of(damaged) >> 32U].offset = forged;
    damaged.reset();
    EXPECT_EQ(std::pair(owners(offset_of(other.data())), owners(offset_of(own.data()))), before);
  }
}

TEST_F(Arena, ASharedBlockWhoseSizeWasOverwrittenIsFreeAsAWholeAndServesNobodyAgain) {
  for (const auto forged :
       {std::size_t{0}, std::size_t{1}, 3 * extent_bytes - 256, 4 * extent_bytes, std::size_t{20'000}}) {
    auto damaged = host_->allocate_shared(3 * extent_bytes);
    std::memset(damaged.data(), 1, damaged.size());
    blocks_[host_->name_of(damaged) >> 32U].capacity = forged;
    damaged.reset();
    EXPECT_EQ(held(), host_->read_statistics().slab_bytes) << forged;
    EXPECT_EQ(touched(), 0U) << forged;
    EXPECT_EQ(host_->allocate(100).size(), 100U);
    EXPECT_EQ(host_->allocate_shared(3 * extent_bytes).size(), 3 * extent_bytes);
  }
}

TEST_F(Arena, ALentBlockOfASizeOrAtAPlaceThatNoAllocatorMakesIsRefused) {
  const auto refusal_of = [this](block_ref lent) {
    lent.size_bytes = block_ref::whole;
    return test::code_of([&] { static_cast<void>(host_->adopt(lent)); });
  };
  for (const auto forged :
       {std::size_t{0}, std::size_t{1}, 3 * extent_bytes - 256, 3 * extent_bytes + 256, std::size_t{20'000}}) {
    const auto lent = guest_->allocate(3 * extent_bytes).lend();
    blocks_[lent.descriptor].capacity = forged;
    EXPECT_EQ(refusal_of(lent), errc::corrupted) << forged;
  }
  for (const std::size_t forged : {0U, 255U, 300U, 32'768U}) {
    const auto lent = guest_->allocate(300).lend();
    blocks_[lent.descriptor].capacity = forged;
    EXPECT_EQ(refusal_of(lent), errc::corrupted) << forged;
  }
  for (const auto bytes : {std::size_t{300}, 3 * extent_bytes}) {
    const auto lent = guest_->allocate(bytes).lend();
    blocks_[lent.descriptor].offset += 256;
    EXPECT_EQ(refusal_of(lent), errc::corrupted) << bytes;
  }
  EXPECT_EQ(host_->allocate(100).size(), 100U);
  EXPECT_EQ(host_->allocate(3 * extent_bytes).size(), 3 * extent_bytes);
  host_->recover(worker);
  const auto found = host_->read_statistics();
  EXPECT_EQ(found.held_bytes, found.slab_bytes + found.cached_bytes);
}

TEST_F(Arena, ABorrowerOfASharedBlockWhoseDescriptorWasOverwrittenIsToldWhatItSays) {
  const auto made = host_->allocate_shared(3 * extent_bytes);
  const auto name = host_->name_of(made);
  auto& descriptor = blocks_[name >> 32U];
  descriptor.capacity = 5 * mebibyte;
  try {
    static_cast<void>(guest_->borrow(name));
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::corrupted);
    EXPECT_THAT(refused.what(), testing::AllOf(testing::HasSubstr("block " + std::to_string(name >> 32U)),
                                               testing::HasSubstr("take 5242880 of 4194304 bytes")));
  }
  descriptor.capacity = 3 * extent_bytes;
  descriptor.offset = 1;
  EXPECT_THROW(static_cast<void>(guest_->borrow(name)), error);
}

TEST_F(Arena, AHoldWhoseTargetWasOverwrittenIsRefusedAndFreesNothing) {
  const auto other = host_->allocate_shared(extent_bytes);
  const auto others_name = host_->name_of(other);
  auto made = host_->allocate_shared(extent_bytes);
  const auto hold = host_->send(made);
  auto& target = blocks_[hold >> 32U].target;
  const auto right = target.load();
  for (const auto forged : {std::uint64_t{0}, UINT64_MAX, hold, others_name + 1, right + 1}) {
    target = forged;
    EXPECT_THROW(static_cast<void>(guest_->receive(hold)), error);
  }
  EXPECT_EQ(guest_->read_statistics().holds, 0U);
  target = right;
  made.reset();
  std::memset(other.data(), 1, other.size());
  auto received = guest_->receive(hold);
  EXPECT_NE(received.data(), other.data());
  EXPECT_EQ(guest_->borrow(others_name).data(), other.data());
}

TEST_F(Arena, ABlockIsRightAgainAfterItsDescriptorWasOverwritten) {
  for (const std::size_t bytes : {std::size_t{300}, 3 * extent_bytes}) {
    auto first = host_->allocate(bytes);
    const auto descriptor = first.ref().descriptor;
    first.reset();
    for (auto& each : {&blocks_[descriptor].offset, &blocks_[descriptor].capacity}) *each = ~std::uint64_t{0};
    blocks_[descriptor].home = 99;
    blocks_[descriptor].word = 12345;
    const auto again = host_->allocate(bytes);
    ASSERT_EQ(again.ref().descriptor, descriptor);
    fill(again, 7);
    EXPECT_TRUE(holds_only(guest_->view(again.ref()), 7));
  }
}

TEST_F(Arena, ABlockThatBeginsWhereNoneCanIsRefused) {
  auto lent = guest_->allocate(300).lend();
  blocks_[lent.descriptor].offset += 1;
  EXPECT_THROW(static_cast<void>(host_->adopt(lent)), error);
  EXPECT_THROW(static_cast<void>(host_->view(lent)), error);
}

TEST_F(Arena, BlocksOfAllSizesAreAlignedAndDoNotOverlap) {
  std::vector<block> blocks;
  unsigned char value = 0;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{257}, std::size_t{4096}, std::size_t{16384},
        std::size_t{16385}, std::size_t{65536}, std::size_t{200000}}) {
    blocks.push_back(host_->allocate(bytes));
    EXPECT_EQ(blocks.back().size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data()) % 64, 0U);
    fill(blocks.back(), ++value);
  }
  value = 0;
  for (const auto& each : blocks) EXPECT_TRUE(holds_only(each.bytes(), ++value)) << each.size();
}

TEST_F(Arena, ABlockOfNoBytesIsABlock) {
  const auto empty = host_->allocate(0);
  EXPECT_TRUE(empty);
  EXPECT_EQ(empty.size(), 0U);
}

TEST_F(Arena, AReleasedSmallBlockIsUsedAgain) {
  auto first = host_->allocate(100);
  const auto* where = first.data();
  first.reset();
  EXPECT_EQ(host_->allocate(200).data(), where);
}

TEST_F(Arena, AReleasedRunIsCachedUpToTheWatermark) {
  {
    const auto run = host_->allocate(mebibyte / 2);
  }
  EXPECT_EQ(host_->read_statistics().cached_bytes, mebibyte / 2);
  {
    const auto larger = host_->allocate(2 * mebibyte);
  }
  EXPECT_LE(host_->read_statistics().cached_bytes, mebibyte);
}

TEST_F(Arena, ALargeRunStaysWarmWhereThoseWhoTakePartAreFew) {
  const auto alone = make(participant_id::host, 3 * mebibyte);
  members_[1].word = 1;
  alone->allocate(2 * mebibyte).reset();
  EXPECT_EQ(alone->read_statistics().cached_bytes, 2 * mebibyte);
  members_[2].word = 2;
  alone->allocate(2 * mebibyte).reset();
  EXPECT_EQ(alone->read_statistics().cached_bytes, 0U) << "half of it is less than that";
}

TEST_F(Arena, ReadingDroppedMemoryAgainFindsZeros) {
  {
    const auto large = host_->allocate(2 * mebibyte);
    fill(large, 9);
  }
  const auto again = host_->allocate(2 * mebibyte);
  EXPECT_TRUE(holds_only(again.bytes(), 0));
}

TEST_F(Arena, ShrinkingChangesWhatIsUsed) {
  auto one = host_->allocate(1000);
  one.shrink(10);
  EXPECT_EQ(one.size(), 10U);
  EXPECT_EQ(one.ref().size_bytes, 10U);
}

TEST_F(Arena, AnotherProcessViewsABlockByItsReference) {
  const auto mine = host_->allocate(1000);
  fill(mine, 5);
  EXPECT_TRUE(holds_only(guest_->view(mine.ref()), 5));
}

TEST_F(Arena, AStaleReferenceIsRefused) {
  auto mine = host_->allocate(100);
  const auto stale = mine.ref();
  mine.reset();
  const auto next = host_->allocate(100);
  EXPECT_EQ(next.ref().descriptor, stale.descriptor);
  EXPECT_THROW(static_cast<void>(guest_->view(stale)), error);
  EXPECT_THROW(static_cast<void>(guest_->view({})), error);
  EXPECT_THROW(static_cast<void>(guest_->view({.descriptor = 4000000000U, .generation = 1, .size_bytes = 1})), error);
}

TEST_F(Arena, AReferenceThatClaimsMoreThanTheBlockIsRefused) {
  const auto mine = host_->allocate(100);
  auto greedy = mine.ref();
  greedy.size_bytes = 257;
  EXPECT_THROW(static_cast<void>(guest_->view(greedy)), error);
}

TEST_F(Arena, ALentSmallBlockComesBackToItsHome) {
  auto lent = guest_->allocate(100);
  const auto* where = lent.data();
  fill(lent, 3);
  auto adopted = host_->adopt(lent.lend());
  EXPECT_FALSE(lent);
  EXPECT_TRUE(holds_only(adopted.bytes(), 3));
  adopted.reset();
  EXPECT_EQ(guest_->allocate(100).data(), where);
}

TEST_F(Arena, ALentRunBelongsToTheAdopter) {
  auto adopted = host_->adopt(guest_->allocate(mebibyte / 2).lend());
  adopted.reset();
  EXPECT_EQ(host_->read_statistics().cached_bytes, mebibyte / 2);
}

TEST_F(Arena, ABlockIsAdoptedOnce) {
  auto lent = guest_->allocate(100);
  const auto ref = lent.lend();
  const auto adopted = host_->adopt(ref);
  EXPECT_THROW(static_cast<void>(host_->adopt(ref)), error);
}

TEST_F(Arena, AdoptingAWholeBlockGivesAllOfIt) {
  auto lent = guest_->allocate(100);
  auto ref = lent.lend();
  ref.size_bytes = block_ref::whole;
  EXPECT_EQ(host_->adopt(ref).size(), 256U);
}

TEST_F(Arena, AnExhaustedArenaSaysWhatWasNeededAndWhatThereIs) {
  const auto most = host_->allocate(60 * extent_bytes);
  try {
    static_cast<void>(host_->allocate(8 * extent_bytes));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::out_of_memory);
    EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("512.0 KiB is needed"), testing::HasSubstr("4.0 MiB"),
                                               testing::HasSubstr("3.8 MiB of it in use")));
  }
}

TEST_F(Arena, ASharedBlockThatDoesNotFitSaysWhatWasAskedHeldCachedAndFree) {
  const auto most = host_->allocate_shared(40 * extent_bytes);
  host_->allocate_shared(8 * extent_bytes).reset();
  const auto foreign = guest_->allocate(10 * extent_bytes);
  try {
    static_cast<void>(host_->allocate_shared(20 * extent_bytes));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::out_of_memory);
    EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("1.2 MiB is needed"), testing::HasSubstr("4.0 MiB"),
                                               testing::HasSubstr("3.1 MiB of it in use"),
                                               testing::HasSubstr("0 bytes are cached by this process"),
                                               testing::HasSubstr("896.0 KiB free")));
  }
}

TEST_F(Arena, ARequestLargerThanTheArenaIsRefused) {
  EXPECT_THROW(static_cast<void>(host_->allocate(mebibyte * 1024)), error);
}

TEST_F(Arena, TheCacheIsGivenUpBeforeARequestFails) {
  {
    const auto cached = host_->allocate(16 * extent_bytes);
  }
  ASSERT_GT(host_->read_statistics().cached_bytes, 0U);
  EXPECT_TRUE(host_->allocate(60 * extent_bytes));
}

TEST_F(Arena, TakenDescriptorsAreAnErrorToo) {
  std::vector<block> all;
  EXPECT_THROW(for (int each = 0; each < 300; ++each) all.push_back(host_->allocate(1)), error);
  EXPECT_EQ(all.size(), 256U);
}

TEST_F(Arena, PagesThatTheKernelDoesNotHaveAreAnErrorAndNoCrash) {
  const auto before = held();
  {
    const test::refused_calls scope("madvise", ENOMEM);
    EXPECT_THROW(static_cast<void>(host_->allocate(2 * mebibyte)), error);
  }
  EXPECT_EQ(held(), before);
  EXPECT_EQ(host_->allocate(2 * mebibyte).size(), 2 * mebibyte);
}

// What a machine that never overcommits does not have it says by SIGBUS, when a page is touched.
TEST_F(Arena, SmallBlocksAndShortRunsHavePagesFromTheStartWhereTheKernelNeverOvercommits) {
  host_ = make(participant_id::host, 0, true);
  std::vector<block> all;
  for (const auto bytes : {std::size_t{1}, std::size_t{300}, std::size_t{16'000}, std::size_t{20'000}, mebibyte / 2}) {
    all.push_back(host_->allocate(bytes));
    EXPECT_EQ(touched(), held()) << bytes;
  }
  for (const auto bytes : {std::size_t{5'000}, std::size_t{70'000}}) {
    const auto before = held();
    {
      const test::refused_calls scope("madvise", ENOMEM);
      EXPECT_THROW(static_cast<void>(host_->allocate(bytes)), error);
    }
    EXPECT_EQ(held(), before);
    EXPECT_EQ(touched(), held());
    EXPECT_EQ(host_->allocate(bytes).size(), bytes);
  }
}

TEST_F(Arena, AnAllocationThatFailsForWantOfADescriptorLosesNoMemory) {
  std::vector<block> all;
  for (int each = 0; each < 256; ++each) all.push_back(host_->allocate(1));
  EXPECT_THROW(static_cast<void>(host_->allocate(300)), error);
  const auto before = held();  // with an extent for the other size
  for (int each = 0; each < 10'000; ++each) EXPECT_THROW(static_cast<void>(host_->allocate(300)), error);
  EXPECT_EQ(held(), before);
}

// While it lives, this process gets no more memory of its own, and has none left in larger pieces.
class no_memory {
public:
  no_memory() {
    rest_.reserve(10'000);
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit none{.rlim_cur = 1, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &none);
    while (rest_.size() < rest_.capacity()) {
      rest_.emplace_back(new (std::nothrow) std::byte[100'000]);
      if (rest_.back() == nullptr) return;
    }
  }
  no_memory(const no_memory&) = delete;
  no_memory& operator=(const no_memory&) = delete;
  ~no_memory() { ::setrlimit(RLIMIT_AS, &before_); }

private:
  rlimit before_{};
  std::vector<std::unique_ptr<std::byte[]>> rest_;
};

// Records come in pages, then twice as many at a time: the next one is where half a megabyte is needed for them.
TEST_F(Arena, AnAllocationThatFailsForWantOfARecordLosesNeitherMemoryNorDescriptor) {
  if (MUSTER_SANITIZER[0] != '\0') GTEST_SKIP() << "a sanitizer ends the program that has no memory";
  constexpr std::size_t records = 128 * 64;
  blocks_ = std::vector<block_descriptor>(records + 1);
  host_ = make(participant_id::host);
  std::vector<block> all;
  for (std::size_t each = 0; each < records; ++each) all.push_back(host_->allocate(1));
  const auto before = held();
  const auto pages_before = touched();
  for (int times = 0; times < 3; ++times) {
    const no_memory scope;
    EXPECT_THROW(static_cast<void>(host_->allocate(mebibyte)), std::bad_alloc);
  }
  EXPECT_EQ(held(), before);
  EXPECT_EQ(touched(), pages_before);
  EXPECT_EQ(host_->allocate(mebibyte).size(), mebibyte) << "by the last descriptor that there is";
}

TEST_F(Arena, RecoveryFreesEverythingOfTheDead) {
  auto small = guest_->allocate(100);
  auto run = guest_->allocate(mebibyte);
  static_cast<void>(small.lend());  // its words stay, as after a kill
  static_cast<void>(run.lend());
  ASSERT_GT(held(), 0U);
  host_->recover(worker);
  EXPECT_EQ(held(), 0U);
  for (const auto& each : blocks_) EXPECT_EQ(block_ownership::unpack(each.word).state, block_state::free);
}

TEST_F(Arena, WhatWasAdoptedOutlivesItsMaker) {
  auto small = host_->adopt(guest_->allocate(100).lend());
  auto other = host_->adopt(guest_->allocate(100).lend());
  auto run = host_->adopt(guest_->allocate(mebibyte).lend());
  fill(small, 1);
  fill(run, 2);
  host_->recover(worker);
  const auto newcomer = make(worker);
  const auto fresh = newcomer->allocate(2 * mebibyte);
  fill(fresh, 7);
  EXPECT_TRUE(holds_only(small.bytes(), 1));
  EXPECT_TRUE(holds_only(run.bytes(), 2));
  small.reset();
  EXPECT_GT(held(), fresh.size() + mebibyte);
  other.reset();
  run.reset();
  EXPECT_EQ(held() - host_->read_statistics().cached_bytes, fresh.size());
}

TEST_F(Arena, RecoveryIsIdempotent) {
  const auto adopted = host_->adopt(guest_->allocate(100).lend());
  host_->recover(worker);
  host_->recover(worker);
  EXPECT_EQ(host_->read_statistics().live_blocks, 1U);
}

TEST_F(Arena, ScribbledWordsOfTheHostsBlocksAreNotBelieved) {
  const auto mine = host_->allocate(100);
  fill(mine, 4);
  const block_ownership forged{.generation = 99, .owner = worker, .state = block_state::live};
  blocks_[mine.ref().descriptor].word = forged.pack();
  blocks_[mine.ref().descriptor].offset = ~std::uint64_t{0};
  host_->recover(worker);
  EXPECT_TRUE(holds_only(mine.bytes(), 4));
}

TEST_F(Arena, TwoProcessesAllocateAndExchangeAtOnce) {
  std::atomic<std::uint64_t> handed = 0;  // a descriptor and generation on their way to the host
  constexpr int rounds = 2000;
  std::thread maker([&] {
    for (int round = 0; round < rounds; ++round) {
      auto made = guest_->allocate(static_cast<std::size_t>(round % 40000));
      fill(made, static_cast<unsigned char>(round));
      const auto ref = made.lend();
      while (handed.load() != 0) std::this_thread::yield();
      handed.store(std::uint64_t{ref.descriptor} << 32U | ref.generation);
    }
  });
  bool intact = true;
  for (int round = 0; round < rounds; ++round) {
    std::uint64_t word = 0;
    while ((word = handed.exchange(0)) == 0) std::this_thread::yield();
    const auto taken = host_->adopt({.descriptor = static_cast<std::uint32_t>(word >> 32U),
                                     .generation = static_cast<std::uint32_t>(word),
                                     .size_bytes = static_cast<std::size_t>(round % 40000)});
    intact = intact && holds_only(taken.bytes(), static_cast<unsigned char>(round));
    const auto own = host_->allocate(static_cast<std::size_t>(round % 1000));
    fill(own, 0xee);
  }
  maker.join();
  EXPECT_TRUE(intact);
  EXPECT_EQ(host_->read_statistics().live_blocks, 0U);
}

TEST(Admission, MoreThanTheMachineHasIsRefusedBeforeItIsTouched) {
  const auto budget = available_memory();
  domain shared({.arena_bytes = 2 * budget.limit_bytes});
  try {
    static_cast<void>(shared.blocks().allocate(budget.available_bytes + mebibyte));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::out_of_memory);
    EXPECT_THAT(failure.what(), testing::HasSubstr("are available"));
  }
}

TEST(Admission, ASharedBlockIsAdmittedLikeAnyOther) {
  const auto budget = available_memory();
  domain shared({.arena_bytes = 2 * budget.limit_bytes});
  try {
    static_cast<void>(shared.blocks().allocate_shared(budget.available_bytes + mebibyte));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::out_of_memory);
    EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("are available"), testing::HasSubstr("in use"),
                                               testing::HasSubstr("cached"), testing::HasSubstr(" free")));
  }
  EXPECT_EQ(shared.blocks().read_statistics().held_bytes, 0U);
}

// Two processes on a made-up machine: what it has, beyond what everybody must leave, is less than the arena.
class Budget : public Arena {
protected:
  static constexpr std::size_t reserve_bytes = 64 * mebibyte;
  static constexpr std::size_t room_extents = 16;

  Budget() {
    host_ = make_with(participant_id::host);
    guest_ = make_with(worker);
  }

  std::unique_ptr<arena> make_with(participant_id self) {
    return std::make_unique<arena>(
        extent_map(extents_, table_mark(extents_used_)), block_table(blocks_, table_mark(blocks_used_)),
        memory_.bytes(), file_, arena::options{.self = self, .members = members_, .budget = [this] { return look(); }});
  }
  memory_budget look() {
    ++looks_;
    if (meanwhile_ && looks_ == 1) std::exchange(meanwhile_, {})();
    return {.available_bytes = reserve_bytes + room_extents * extent_bytes, .limited_by = "a test"};
  }
  // Nothing is written: each is below the size from which pages are made at once.
  static bool claim(arena& from, std::vector<block>& into, std::size_t extents = 1) {
    try {
      into.push_back(from.allocate(extents * extent_bytes));
      return true;
    } catch (const error& refusal) {
      EXPECT_EQ(refusal.code(), errc::out_of_memory);
      EXPECT_THAT(refusal.what(), testing::AllOf(testing::HasSubstr("(a test)"),
                                                 testing::HasSubstr("are for blocks that were not written yet")));
      return false;
    }
  }

  int looks_ = 0;
  std::function<void()> meanwhile_;  // what the other does when somebody looks first
};

TEST_F(Budget, WhatWasClaimedAndNotWrittenYetIsNotThereForOthers) {
  std::vector<block> claimed;
  while (claim(*host_, claimed) && claim(*guest_, claimed)) continue;
  EXPECT_EQ(claimed.size(), room_extents);
  fill(claimed[0], 1);  // is a part of what is used now, which the made-up machine does not see
  EXPECT_TRUE(claim(*host_, claimed));
  EXPECT_FALSE(claim(*guest_, claimed));
}

TEST_F(Budget, OfTwoThatAreAdmittedAtOnceWhoClaimsLastGivesItsClaimUp) {
  std::vector<block> hosts;
  std::vector<block> guests;
  constexpr std::size_t most = room_extents - 1;  // one of them fits
  meanwhile_ = [&] { EXPECT_TRUE(claim(*guest_, guests, most)); };
  EXPECT_FALSE(claim(*host_, hosts, most)) << "it was admitted, and saw both claims when it looked again";
  EXPECT_EQ(held(), most * extent_bytes) << "those of the other";
  guests.clear();
  EXPECT_EQ(guest_->read_statistics().cached_bytes, most * extent_bytes);
  EXPECT_FALSE(claim(*host_, hosts, most)) << "nobody can take them away from the other";
}

TEST_F(Budget, APlentyIsLookedAtOnceForSeveral) {
  const auto plenty = std::make_unique<arena>(
      extent_map(extents_, table_mark(extents_used_)), block_table(blocks_, table_mark(blocks_used_)), memory_.bytes(),
      file_, arena::options{.members = members_, .budget = [this] {
                              ++looks_;
                              return memory_budget{.available_bytes = std::uint64_t{1} << 40U};
                            }});
  std::vector<block> claimed;
  for (int each = 0; each < 40; ++each) claimed.push_back(plenty->allocate(extent_bytes));
  EXPECT_EQ(looks_, 2) << "before the first, and when that had been claimed";
}

// All were granted something ahead when there was plenty: that is still there when the rest is gone.
TEST_F(Budget, WhatAllWereGrantedAheadFitsIntoWhatIsKeptInReserve) {
  constexpr std::size_t count = 5;
  extents_ = std::vector<extent_map::word>(4096);
  blocks_ = std::vector<block_descriptor>(4096);
  file_ = make_memfd("test", extents_.size() * extent_bytes);
  memory_ = mapping(file_, extents_.size() * extent_bytes, mapping::inherit::yes);
  members_ = std::vector<participant_entry>(count + 1);
  host_ = make_with(participant_id::host);
  std::uint64_t available = std::uint64_t{1} << 40U;
  std::vector<std::unique_ptr<arena>> all;
  std::vector<block> claimed;
  for (std::size_t each = 1; each <= count; ++each) {
    members_[each].word = each;
    all.push_back(std::make_unique<arena>(
        extent_map(extents_, table_mark(extents_used_)), block_table(blocks_, table_mark(blocks_used_)),
        memory_.bytes(), file_, arena::options{.self = participant_id(each), .members = members_, .budget = [&] {
                                                 return memory_budget{.available_bytes = available,
                                                                      .limited_by = "a test"};
                                               }}));
    claimed.push_back(all.back()->allocate(extent_bytes));
  }
  available = reserve_bytes;
  const auto before = held();
  for (const auto& each : all) {
    while (claim(*each, claimed)) continue;
  }
  EXPECT_LE(held() - before, reserve_bytes / 2);
  EXPECT_GT(held() - before, reserve_bytes / 8) << "no look for each";
}

TEST(Admission, WhatOtherDomainsOfThisProcessHaveClaimedAndNotWrittenIsNotThereEither) {
  const auto limit = available_memory().limit_bytes;
  domain one({.arena_bytes = 256 * mebibyte});
  domain another({.arena_bytes = 2 * limit});
  const auto refusal_of_all = [&] {
    try {
      static_cast<void>(another.blocks().allocate(limit));
    } catch (const error& refusal) {
      return std::string(refusal.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal_of_all(), testing::Not(testing::HasSubstr("other domains")));
  std::vector<block> claimed;
  for (int each = 0; each < 200; ++each) claimed.push_back(one.blocks().allocate(mebibyte / 2));
  EXPECT_THAT(refusal_of_all(), testing::HasSubstr("less 100.0 MiB claimed in other domains of this process"));
  for (const auto& each : claimed) fill(each, 1);
  EXPECT_THAT(refusal_of_all(), testing::Not(testing::HasSubstr("other domains")));
}

TEST(Admission, CopiesOfTheReceiverCount) {
  const auto budget = available_memory();
  domain shared({});
  try {
    static_cast<void>(shared.blocks().allocate(budget.available_bytes / 2 + mebibyte, 1));
    FAIL();
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("private copy"));
  }
}

TEST_F(Arena, ASmallBlockLentToOneThatDiesComesBack) {
  auto lent = host_->allocate(100);
  const auto* where = lent.data();
  auto adopted = guest_->adopt(lent.lend());
  host_->recover(worker);
  EXPECT_EQ(host_->allocate(100).data(), where);
  static_cast<void>(adopted.lend());  // the dead one gives nothing back
}

TEST_F(Arena, ADescriptorWhoseBinderDiedHalfwayIsFreeAgain) {
  constexpr std::size_t index = 7;
  // As left between claiming the descriptor and writing where its memory lies: that is of an earlier life.
  blocks_[index].home = static_cast<std::uint16_t>(participant_id::host);
  blocks_[index].capacity = extent_bytes;
  blocks_[index].word = block_ownership{.generation = 3, .owner = worker, .state = block_state::cached}.pack();
  blocks_used_ = index + 1;
  host_->recover(worker);
  EXPECT_EQ(block_ownership::unpack(blocks_[index].word).state, block_state::free);
  EXPECT_EQ(held(), 0U);
}

}  // namespace
}  // namespace muster::arena_test
