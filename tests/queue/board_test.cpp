// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/board.hpp>

#include <sys/stat.h>

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/text.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::board_test {
namespace {

using namespace std::chrono_literals;

TEST(Board, AnAttachedOneIsTheSame) {
  board made({.workers = 3, .task_slots = 64}, {.budget = 5us, .processors = 4});
  board attached(unique_fd(::dup(made.file().get())));
  EXPECT_EQ(attached.sizes().workers, 3U);
  EXPECT_EQ(attached.sizes().task_slots, 64U);
  EXPECT_EQ(attached.spin().budget, 5us);
  EXPECT_EQ(attached.spin().processors, 4U);
  made.slot(63).word = 77;
  made.line(2).finished = 5;
  made.sleeping().insert(2);
  EXPECT_EQ(attached.slot(63).word, 77U);
  EXPECT_EQ(attached.line(2).finished, 5U);
  EXPECT_EQ(attached.sleeping().count(), 1U);
}

TEST(Board, HasPagesFromTheStartAndWhenItIsRenewedWhereTheKernelNeverOvercommits) {
  const auto untouched_bytes = [](const board& which) {
    struct stat found{};
    EXPECT_EQ(::fstat(which.file().get(), &found), 0);
    return found.st_size - off_t{found.st_blocks} * 512;
  };
  board populated({.workers = 3, .task_slots = 1024}, {}, memfd_pages::at_once);
  EXPECT_EQ(untouched_bytes(populated), 0);
  populated.renew();
  EXPECT_EQ(untouched_bytes(populated), 0);
  EXPECT_GT(untouched_bytes(board({.workers = 3, .task_slots = 1024}, {}, memfd_pages::when_touched)), 0);
}

// Those that it has had are good as they are.
TEST(Board, ThatCannotHaveOthersKeepsItsPagesWhenItIsRenewed) {
  board populated({.workers = 1, .task_slots = 64}, {}, memfd_pages::at_once);
  populated.slot(63).word = 77;
  const test::refused_calls scope("fallocate", ENOSPC);
  populated.renew();
  EXPECT_EQ(populated.slot(63).word, 0U);
  EXPECT_EQ(populated.sizes().task_slots, 64U);
}

TEST(Board, TheNumberOfActiveWorkersIsTheParents) {
  board made({.workers = 5, .active = 2}, {});
  board attached(unique_fd(::dup(made.file().get())));
  EXPECT_EQ(attached.active(), 2U);
  made.set_active(4);
  EXPECT_EQ(attached.active(), 4U);
  made.set_active(1);
  EXPECT_EQ(attached.active(), 1U);
  EXPECT_EQ(made.used(), 4U);
  attached.set_active(3);  // as if somebody had overwritten it
  EXPECT_EQ(made.active(), 1U);
  EXPECT_TRUE(made.restore_header());
  EXPECT_EQ(attached.active(), 1U);
}

TEST(Board, LanesAndRingsAreSeparate) {
  board made({.workers = 2, .task_slots = 4}, {});
  for (std::size_t index = 0; index < board::shared_lanes + 2; ++index) {
    ASSERT_TRUE(made.lane_at(index).push(0, {.generation = 1, .slot = static_cast<std::uint16_t>(index)}));
  }
  for (std::size_t index = 0; index < board::shared_lanes + 2; ++index) {
    EXPECT_EQ(made.lane_at(index).look().hint.slot, index);
  }
  made.ring(0).push({.generation = 1, .slot = 1});
  made.ring(1).push({.generation = 2, .slot = 2});
  EXPECT_EQ(made.ring(0).read(0).slot, 1);
  EXPECT_EQ(made.ring(1).read(0).slot, 2);
}

TEST(Board, OfALargeBoardOnlyWhatHasEnteredSomethingIsRead) {
  board made({.workers = 1000, .active = 999}, {});
  EXPECT_EQ(made.groups(), 16U);
  EXPECT_EQ(made.has_news(), std::optional(false));
  made.enter(70, {.generation = 1, .slot = 1});
  made.enter(999, {.generation = 1, .slot = 1});  // it is not there
  EXPECT_EQ(made.has_news(), std::optional(true));
  EXPECT_EQ(made.take_news(0), 0U);
  EXPECT_EQ(made.take_news(1), 1U << 6U);
  EXPECT_EQ(made.take_news(15), 0U);
  EXPECT_EQ(made.has_news(), std::optional(false));
}

TEST(Board, OfASmallBoardEachRingThatWasEverUsedIsRead) {
  board made({.workers = 64, .active = 3}, {});
  made.enter(1, {.generation = 1, .slot = 1});
  EXPECT_EQ(made.has_news(), std::nullopt);
  EXPECT_EQ(made.groups(), 1U);
  EXPECT_EQ(made.take_news(0), 7U);
  made.set_active(64);
  EXPECT_EQ(made.take_news(0), ~std::uint64_t{0});
}

TEST(Board, ImpossibleSizesAreRefusedWithTheRange) {
  for (const board_sizes wrong :
       {board_sizes{.workers = 0}, board_sizes{.workers = most_workers + 1}, board_sizes{.workers = 2, .active = 3},
        board_sizes{.task_slots = 1000}, board_sizes{.task_slots = 65536}}) {
    try {
      const board made(wrong, {});
      ADD_FAILURE();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
      EXPECT_THAT(failure.what(), testing::HasSubstr(text("1 to ", most_workers, " workers")));
    }
  }
}

TEST(Board, AForeignFileIsRefused) { EXPECT_THROW(board(make_memfd("other", 65536)), error); }

// A process that sleeps as worker 1, and ends when it is woken.
std::unique_ptr<test::processes> spawn_sleeper(board& where) {
  return test::spawn(1, [&where](std::size_t) {
    auto& line = where.line(1);
    line.parked = 1;
    where.sleeping().insert(1);
    while (line.parked == 1) futex_wait(futex_address(line.parked), 1, futex_scope::shared);
    return 0;
  });
}

TEST(Board, WakesASleepingWorkerInAnotherProcess) {
  board made({.workers = 2}, {}, memfd_pages::when_touched, mapping::inherit::yes);
  const auto ranks = spawn_sleeper(made);
  EXPECT_TRUE(test::eventually([&] { return made.wake_any(); }));
  EXPECT_TRUE(ranks->wait(0).success());
  EXPECT_FALSE(made.wake_any());
}

TEST(Board, ABitOfNobodyIsNoSleeper) {
  board made({.workers = 2}, {});
  made.slot(0).word = 5;
  for (std::size_t nobody = 2; nobody < 64; ++nobody) made.sleeping().insert(nobody);
  EXPECT_FALSE(made.wake_any());
  EXPECT_EQ(made.sleeping().count(), 0U);
  EXPECT_EQ(made.slot(0).word, 5U);
}

TEST(Board, AWorkerIsWokenAlthoughWhoeverWasToWakeItDied) {
  board made({.workers = 2}, {}, memfd_pages::when_touched, mapping::inherit::yes);
  const auto ranks = spawn_sleeper(made);
  EXPECT_TRUE(test::eventually([&] { return made.sleeping().remove(1); }));  // as far as the waker got
  EXPECT_FALSE(made.wake_any());
  made.wake_all();
  EXPECT_TRUE(ranks->wait(0).success());
}

}  // namespace
}  // namespace muster::board_test
