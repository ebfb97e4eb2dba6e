// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/descriptor_store.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/memory/domain.hpp>

#include "open_files.hpp"
#include "processes.hpp"

namespace muster::descriptor_store_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using standing = descriptor_store::finding::standing;

constexpr const char* label = "store-test";

unique_fd file_with(std::string_view content) {
  auto made = make_memfd(label, 64);
  EXPECT_EQ(::pwrite(made.get(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  return made;
}

std::string read(const unique_fd& file) {
  std::array<char, 64> room{};
  EXPECT_GT(::pread(file.get(), room.data(), room.size() - 1, 0), 0);
  return room.data();
}

// As an error with that code; 0: there was none.
template <class F>
std::error_code error_of(F what) {
  try {
    what();
  } catch (const error& failure) {
    return failure.code();
  }
  return {};
}

class DescriptorStore : public testing::Test {
protected:
  // Of the process that has the number now.
  descriptor_name name_of(participant_id who, std::uint32_t number) {
    return {who, host_.participants().incarnation_of(who).value_or(0), number};
  }
  void deposit(descriptor_name name, std::string_view content = "content", const shared_block& anchor = {}) {
    store_.deposit(name, file_with(content), anchor);
  }
  standing look_up(descriptor_name name) { return store_.look_up(name).what; }
  std::unique_ptr<domain> join(participant_id id) {
    const auto copy = [](const unique_fd& file) { return unique_fd(::dup(file.get())); };
    return std::make_unique<domain>(
        domain_files{.control = copy(host_.files().control), .arena = copy(host_.files().arena)}, id);
  }
  void expect_empty() {
    EXPECT_EQ(store_.read_statistics().kept, 0U);
    EXPECT_EQ(test::count_open(label), 0U);
  }

  domain host_{{.arena_bytes = std::size_t{64} << 20U, .max_participants = 8, .max_blocks = 4096}};
  descriptor_store& store_ = host_.deposits();
  const participant_id one_ = host_.participants().enrol();
  const participant_id other_ = host_.participants().enrol();
};

TEST_F(DescriptorStore, WhatIsDepositedIsFetchedByItsName) {
  const auto first = store_.make_name();
  const auto second = store_.make_name();
  store_.deposit(first, file_with("the first"), {});
  store_.deposit(second, file_with("the second"), {});
  const auto found = store_.fetch(first, deadline::never());
  ASSERT_TRUE(found);
  EXPECT_EQ(read(*found), "the first");
  EXPECT_EQ(read(*store_.fetch(second, deadline::never())), "the second");
  EXPECT_NE(::fcntl(found->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(DescriptorStore, WhatWasWithdrawnIsGoneAndWhoHasItKeepsIt) {
  const auto name = store_.make_name();
  deposit(name);
  {
    const auto found = store_.fetch(name, deadline::never());
    store_.withdraw(name);
    EXPECT_FALSE(store_.fetch(name, deadline::never()));
    EXPECT_EQ(read(*found), "content");
  }
  store_.withdraw(name);
  expect_empty();
}

TEST_F(DescriptorStore, ANameIsForOneDescriptor) {
  const auto name = name_of(one_, 3);
  deposit(name);
  EXPECT_EQ(error_of([&] { deposit(name); }), errc::invalid_argument);
  EXPECT_EQ(read(*store_.fetch(name, deadline::never())), "content");
  store_.withdraw(name);
  EXPECT_EQ(error_of([&] { deposit(name); }), errc::invalid_argument) << "nor later";
  expect_empty();
}

TEST_F(DescriptorStore, NumbersMayComeInAnyOrder) {
  deposit(name_of(one_, 5));
  EXPECT_EQ(look_up(name_of(one_, 4)), standing::awaited);
  store_.withdraw(name_of(one_, 3));
  EXPECT_EQ(look_up(name_of(one_, 3)), standing::gone) << "it was said that it will not come";
  deposit(name_of(one_, 4));
  EXPECT_EQ(look_up(name_of(one_, 4)), standing::there);
  EXPECT_EQ(look_up(name_of(one_, 6)), standing::awaited);
  deposit(name_of(one_, descriptor_name::most_number));
  EXPECT_EQ(look_up(name_of(one_, 6)), standing::gone) << "as many as that do not come any more";
  EXPECT_EQ(look_up(name_of(one_, 4)), standing::there);
  EXPECT_EQ(look_up(name_of(one_, descriptor_name::most_number - 1)), standing::awaited);
}

TEST_F(DescriptorStore, NothingCannotBeDeposited) {
  EXPECT_EQ(error_of([&] { store_.deposit(store_.make_name(), {}, {}); }), errc::invalid_argument);
}

TEST_F(DescriptorStore, OfWhomeverIsNotThereNothingIsKeptOrAwaited) {
  const auto nobody = static_cast<participant_id>(7);
  for (const auto who : {participant_id::none, nobody, static_cast<participant_id>(99), participant_id::everybody}) {
    EXPECT_EQ(error_of([&] { deposit({who, 1, 0}); }), errc::invalid_argument);
    EXPECT_FALSE(store_.fetch({who, 1, 0}, deadline::never()));
  }
  EXPECT_FALSE(store_.fetch({one_, 2, 0}, deadline::never())) << "of a later incarnation";
  expect_empty();
}

// ---- waiting

TEST_F(DescriptorStore, AFetchEndsAtItsDeadline) {
  const auto fetch = [&](deadline until) { static_cast<void>(store_.fetch(name_of(one_, 0), until)); };
  EXPECT_EQ(error_of([&] { fetch(deadline::after(0s)); }), errc::timed_out);
  EXPECT_EQ(error_of([&] { fetch(deadline::after(1ms)); }), errc::timed_out);
}

TEST_F(DescriptorStore, AFetchWaitsForTheDeposit) {
  const auto name = name_of(one_, 0);
  std::string found;
  std::thread waits([&] { found = read(store_.fetch(name, deadline::never()).value()); });
  deposit(name, "at last");
  waits.join();
  EXPECT_EQ(found, "at last");
}

TEST_F(DescriptorStore, AFetchEndsWhenItIsSaidThatNothingComes) {
  bool some = true;
  std::thread waits([&] { some = store_.fetch(name_of(one_, 0), deadline::never()).has_value(); });
  store_.withdraw(name_of(one_, 0));
  waits.join();
  EXPECT_FALSE(some);
}

TEST_F(DescriptorStore, AFetchEndsWhenTheDepositorDies) {
  const auto name = name_of(one_, 0);
  bool some = true;
  std::thread waits([&] { some = store_.fetch(name, deadline::never()).has_value(); });
  host_.bury(one_);
  waits.join();
  EXPECT_FALSE(some);
}

TEST_F(DescriptorStore, WhoeverWaitsElsewhereIsToldWhatBecomesOfItsName) {
  int told = 0;
  const auto count = [&] { ++told; };
  {
    const descriptor_store::waiting deposited(store_, name_of(one_, 0), count);
    const descriptor_store::waiting withdrawn(store_, name_of(one_, 1), count);
    const descriptor_store::waiting orphaned(store_, name_of(one_, 2), count);
    const descriptor_store::waiting unconcerned(store_, name_of(other_, 0), count);
    EXPECT_EQ(store_.read_statistics().waiting, 4U);
    deposit(name_of(one_, 0));
    EXPECT_EQ(told, 1);
    store_.withdraw(name_of(one_, 1));
    EXPECT_EQ(told, 2);
    host_.bury(one_);
    EXPECT_EQ(told, 5) << "all three of that depositor";
  }
  host_.bury(other_);
  EXPECT_EQ(told, 5) << "those who wait no longer are not told";
  EXPECT_EQ(store_.read_statistics().waiting, 0U);
}

// ---- deaths

TEST_F(DescriptorStore, WithoutAnAnchorItGoesWithItsDepositor) {
  const auto mine = name_of(one_, 0);
  deposit(mine);
  deposit(name_of(other_, 0));
  host_.bury(one_);
  EXPECT_EQ(look_up(mine), standing::gone);
  EXPECT_EQ(look_up(name_of(other_, 0)), standing::there);
  EXPECT_EQ(test::count_open(label), 1U);
}

TEST_F(DescriptorStore, TheNextProcessWithTheNumberHasNamesOfItsOwn) {
  const auto old = name_of(one_, 0);
  deposit(old);
  host_.bury(one_);
  ASSERT_EQ(host_.participants().enrol(), one_);
  EXPECT_FALSE(store_.fetch(old, deadline::never()));
  EXPECT_EQ(error_of([&] { deposit(old); }), errc::invalid_argument);
  deposit(name_of(one_, 0), "the other's");
  EXPECT_EQ(read(*store_.fetch(name_of(one_, 0), deadline::never())), "the other's");
}

TEST_F(DescriptorStore, WhatIsAnchoredOutlivesItsDepositorWhileSomebodyHoldsTheAnchor) {
  const auto name = name_of(one_, 0);
  auto anchor = host_.blocks().allocate_shared(100);
  deposit(name, "of the dead", anchor);
  host_.bury(one_);
  EXPECT_EQ(read(*store_.fetch(name, deadline::never())), "of the dead");
  anchor.reset();
  EXPECT_EQ(look_up(name), standing::there) << "nobody has said anything";
  store_.let_go(name);
  EXPECT_EQ(look_up(name), standing::gone);
  expect_empty();
  EXPECT_EQ(host_.blocks().read_statistics().holds, 0U);
}

TEST_F(DescriptorStore, WhatIsAnchoredIsFoundForlornAtTheNextDeath) {
  auto anchor = host_.blocks().allocate_shared(100);
  for (std::uint32_t number = 0; number < 3; ++number) deposit(name_of(one_, number), "several", anchor);
  host_.bury(one_);
  EXPECT_EQ(store_.read_statistics().kept, 3U);
  anchor.reset();
  host_.bury(other_);
  expect_empty();
  EXPECT_EQ(host_.blocks().read_statistics().holds, 0U);
}

TEST_F(DescriptorStore, AnAnchorOfADepositorIsHeldByOthersAsLongAsTheyLive) {
  const auto depositor = join(one_);
  const auto holder = join(other_);
  const auto name = name_of(one_, 0);
  const auto made = depositor->blocks().allocate_shared(100);
  const auto made_name = depositor->blocks().name_of(made);
  auto held = holder->blocks().borrow(made_name);
  holder->blocks().keep(held);
  {
    const auto borrowed = host_.blocks().borrow(made_name);  // as who answers for the depositor does
    deposit(name, "content", borrowed);
  }
  store_.let_go(name);
  EXPECT_EQ(look_up(name), standing::there) << "its depositor lives";
  host_.bury(one_);
  store_.let_go(name);
  EXPECT_EQ(look_up(name), standing::there);
  host_.bury(other_);
  expect_empty();
  EXPECT_EQ(host_.blocks().read_statistics().holds, 0U);
}

TEST_F(DescriptorStore, ALivingDepositorKeepsWhatNobodyElseHoldsTheAnchorOf) {
  deposit(name_of(one_, 0), "content", host_.blocks().allocate_shared(100));
  host_.bury(other_);
  store_.let_go(name_of(one_, 0));
  EXPECT_EQ(look_up(name_of(one_, 0)), standing::there);
  store_.withdraw(name_of(one_, 0));
  EXPECT_EQ(host_.blocks().read_statistics().holds, 0U);
}

TEST_F(DescriptorStore, AtADeathEachAnchorOfTheDeadIsShownOnce) {
  std::vector<std::string> seen;
  const auto registration = store_.on_depositor_death(
      [&](const shared_block& anchor) { seen.emplace_back(reinterpret_cast<const char*>(anchor.data() + 8)); });
  const auto anchor_with = [&](const char* content) {
    auto made = host_.blocks().allocate_shared(100);
    std::strcpy(reinterpret_cast<char*>(made.data() + 8), content);
    return made;
  };
  const auto common = anchor_with("common");
  deposit(name_of(one_, 0), "a", common);
  deposit(name_of(one_, 1), "b", common);
  deposit(name_of(one_, 2), "c", anchor_with("its own"));
  deposit(name_of(one_, 3), "d");
  deposit(name_of(other_, 0), "e", anchor_with("another's"));
  host_.bury(one_);
  EXPECT_THAT(seen, testing::UnorderedElementsAre("common", "its own"));
  EXPECT_EQ(store_.read_statistics().kept, 3U) << "what has an anchor that somebody holds, and another's";
  ASSERT_EQ(host_.participants().enrol(), one_);
  deposit(name_of(one_, 0), "f", anchor_with("of the next"));
  seen.clear();
  host_.bury(one_);
  EXPECT_THAT(seen, testing::ElementsAre("of the next"));
}

// ---- limits

TEST_F(DescriptorStore, KeepsSoManyOfEachAndSoManyOfAll) {
  descriptor_store small(host_.blocks(), host_.participants(), host_.recoveries(), {.each = 2, .all = 3});
  const auto deposit = [&](participant_id who, std::uint32_t number) {
    return error_of([&] { small.deposit(name_of(who, number), file_with("x"), {}); });
  };
  EXPECT_FALSE(deposit(one_, 0));
  EXPECT_FALSE(deposit(one_, 1));
  EXPECT_EQ(deposit(one_, 2), errc::out_of_memory);
  EXPECT_FALSE(deposit(other_, 0));
  EXPECT_EQ(deposit(other_, 1), errc::out_of_memory);
  EXPECT_EQ(test::count_open(label), 3U);
  small.withdraw(name_of(one_, 1));
  EXPECT_FALSE(deposit(one_, 2)) << "the same name as before";
  EXPECT_EQ(small.look_up(name_of(other_, 1)).what, standing::awaited);
}

TEST_F(DescriptorStore, ThousandsOfDepositsLeaveNothing) {
  for (std::uint32_t number = 0; number < 2000; ++number) {
    deposit(name_of(one_, number), "content", host_.blocks().allocate_shared(100));
    if (number >= 10) store_.withdraw(name_of(one_, number - 10));
    EXPECT_LE(store_.read_statistics().kept, 11U);
  }
  host_.bury(one_);
  expect_empty();
  const auto left = host_.blocks().read_statistics();
  EXPECT_EQ(left.holds + left.live_blocks, 0U);
}

TEST_F(DescriptorStore, ThreadsDoAllAtOnce) {
  constexpr std::uint32_t rounds = 300;
  std::vector<std::thread> threads;
  std::atomic<unsigned> found = 0;
  for (const auto who : {one_, other_}) {
    threads.emplace_back([&, who] {
      for (std::uint32_t number = 0; number < rounds; ++number) {
        deposit(name_of(who, number), "content", host_.blocks().allocate_shared(100));
        if (number % 3 == 0) store_.withdraw(name_of(who, number));
        store_.tidy();
      }
    });
    threads.emplace_back([&, who] {
      for (std::uint32_t number = 0; number < rounds; ++number) {
        if (store_.fetch(name_of(who, number), deadline::never())) ++found;
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_GE(found, 2 * rounds * 2 / 3);
  EXPECT_LE(found, 2 * rounds);
  EXPECT_EQ(store_.read_statistics().kept, 2 * rounds * 2 / 3);
}

// ---- processes

TEST_F(DescriptorStore, OfAForkedChildIsTheParents) {
  const auto name = store_.make_name();
  deposit(name);
  auto& exchange = host_.descriptors();
  const auto child = test::spawn(1, [&](std::size_t) {
    exchange.withdraw(name);
    exchange.let_go(name);
    const auto is_forked = [](const std::error_code& code) { return code == errc::forked; };
    return is_forked(error_of([&] { exchange.deposit(name, file_with("child"), {}); })) &&
                   is_forked(error_of([&] { static_cast<void>(exchange.fetch(name, deadline::never())); })) &&
                   is_forked(error_of([&] { static_cast<void>(host_.descriptors()); }))
               ? 0
               : 1;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  EXPECT_EQ(look_up(name), standing::there);
}

TEST_F(DescriptorStore, WhoHasNoConnectionToTheHostIsToldSo) {
  const auto joined = join(one_);
  try {
    static_cast<void>(joined->descriptors());
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_THAT(failure.what(), HasSubstr("no connection to the host"));
  }
}

}  // namespace
}  // namespace muster::descriptor_store_test
