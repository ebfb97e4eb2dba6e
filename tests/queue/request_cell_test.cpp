// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/request_cell.hpp>

#include <thread>

#include <gtest/gtest.h>

namespace muster::request_cell_test {
namespace {

using word = std::atomic<std::uint64_t>;

TEST(RequestCell, AWordKeepsItsParts) {
  constexpr cell_word made(1234567, cell_flag::abandoned | cell_flag::block_arguments, cell_state::posted);
  static_assert(made.generation() == 1234567 && made.state() == cell_state::posted);
  static_assert(made.has(cell_flag::abandoned) && made.has(cell_flag::block_arguments));
  static_assert(!made.has(cell_flag::waiter) && made.is_with_parent());
}

TEST(RequestCell, WhatTheParentHasAcceptedIsNotTakenBack) {
  word cell = 0;
  cell_protocol::publish(cell, 7, cell_flag::block_arguments);
  const auto accepted = cell_protocol::try_accept(cell);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->generation(), 7U);
  EXPECT_TRUE(accepted->has(cell_flag::block_arguments));
  EXPECT_FALSE(cell_protocol::try_take_back(cell, 7));
}

TEST(RequestCell, WhatWasTakenBackIsNotAccepted) {
  word cell = 0;
  cell_protocol::publish(cell, 7, cell_flag::none);
  EXPECT_FALSE(cell_protocol::try_take_back(cell, 6));
  EXPECT_TRUE(cell_protocol::try_take_back(cell, 7));
  EXPECT_FALSE(cell_protocol::try_accept(cell));
}

TEST(RequestCell, AnAnswerTellsOfAWaiter) {
  word cell = 0;
  cell_protocol::publish(cell, 7, cell_flag::none);
  ASSERT_TRUE(cell_protocol::try_accept(cell));
  cell_protocol::request(cell, cell_flag::waiter);
  const auto before = cell_protocol::answer(cell, 7, cell_flag::failed);
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->has(cell_flag::waiter));
  EXPECT_EQ(cell_protocol::read(cell), cell_word(7, cell_flag::failed, cell_state::answered));
}

TEST(RequestCell, AnAbandonedRequestIsFreedByItsAnswer) {
  word cell = 0;
  cell_protocol::publish(cell, 7, cell_flag::none);
  ASSERT_TRUE(cell_protocol::try_accept(cell));
  ASSERT_TRUE(cell_protocol::pass_on(cell, 7, cell_state::accepted, cell_state::posted));
  cell_protocol::request(cell, cell_flag::abandoned);
  ASSERT_TRUE(cell_protocol::answer(cell, 7, cell_flag::block_reply));
  EXPECT_EQ(cell_protocol::read(cell), cell_word(7, cell_flag::none, cell_state::free));
}

TEST(RequestCell, AnAnswerToAnotherGenerationChangesNothing) {
  word cell = cell_word(8, cell_flag::none, cell_state::posted).bits();
  EXPECT_FALSE(cell_protocol::answer(cell, 7, cell_flag::none));
  EXPECT_EQ(cell_protocol::read(cell), cell_word(8, cell_flag::none, cell_state::posted));
}

TEST(RequestCell, OfWorkerAndParentExactlyOneGetsARequest) {
  constexpr std::uint64_t rounds = 20000;
  word cell = 0;
  std::atomic<std::uint64_t> accepted = 0;
  std::uint64_t taken_back = 0;
  std::atomic<bool> stop = false;
  std::thread parent([&] {
    while (!stop) {
      const auto got = cell_protocol::try_accept(cell);
      if (!got) continue;
      ++accepted;
      EXPECT_TRUE(cell_protocol::answer(cell, got->generation(), cell_flag::none));
    }
  });
  std::uint64_t round = 0;
  while (round < rounds || accepted == 0) {
    ++round;
    cell_protocol::publish(cell, round, cell_flag::none);
    if (cell_protocol::try_take_back(cell, round)) {
      ++taken_back;
    } else {
      while (cell_protocol::read(cell).state() != cell_state::answered) std::this_thread::yield();
      cell_protocol::retire(cell, round);
    }
  }
  stop = true;
  parent.join();
  EXPECT_EQ(accepted + taken_back, round);
}

}  // namespace
}  // namespace muster::request_cell_test
