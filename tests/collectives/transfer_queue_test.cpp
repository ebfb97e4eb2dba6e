// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/transfer.hpp>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::detail::transfer_queue_test {
namespace {

using testing::ElementsAre;

// Of no mailbox: only their order is asked for.
class TransferQueue : public testing::Test {
protected:
  static std::shared_ptr<transfer> number(std::size_t peer) {
    return std::make_shared<transfer>(nullptr, transfer::direction::receive, peer, 0, nullptr);
  }
  static std::size_t number_of(const transfer& what) { return what.source(); }
  static auto is(std::size_t peer) {
    return [peer](const transfer& each) { return number_of(each) == peer; };
  }
  static std::vector<std::size_t> take_all(transfer_queue& from) {
    std::vector<std::size_t> found;
    while (const auto each = from.take_first()) found.push_back(number_of(*each));
    return found;
  }

  TransferQueue() {
    for (std::size_t each = 1; each <= 4; ++each) queue_.push_back(number(each));
  }

  transfer_queue queue_;
};

TEST_F(TransferQueue, GivesThemInTheOrderInWhichTheyCame) {
  EXPECT_EQ(number_of(queue_.front()), 1U);
  EXPECT_THAT(take_all(queue_), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.take_first(), nullptr);
  queue_.push_back(number(5));
  EXPECT_THAT(take_all(queue_), ElementsAre(5));
}

TEST_F(TransferQueue, GivesTheFirstThatFitsAndKeepsTheOthers) {
  for (const std::size_t which : {4U, 1U, 3U}) EXPECT_EQ(number_of(*queue_.take_first_that(is(which))), which);
  EXPECT_EQ(queue_.take_first_that(is(4)), nullptr);
  queue_.push_back(number(6));  // behind the one that is last now
  EXPECT_THAT(take_all(queue_), ElementsAre(2, 6));
}

TEST_F(TransferQueue, GivesAllThatFitInOrder) {
  std::vector<std::size_t> found;
  const auto take_even = [&] {
    queue_.take_all_that([](const transfer& each) { return number_of(each) % 2 == 0; },
                         [&](const std::shared_ptr<transfer>& each) { found.push_back(number_of(*each)); });
  };
  take_even();
  take_even();
  EXPECT_THAT(found, ElementsAre(2, 4));
  queue_.push_back(number(5));
  EXPECT_THAT(take_all(queue_), ElementsAre(1, 3, 5));
}

TEST_F(TransferQueue, IsMovedWithAllThatAreInIt) {
  auto moved = std::move(queue_);
  queue_ = transfer_queue();
  queue_.push_back(number(7));
  EXPECT_THAT(take_all(moved), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(take_all(queue_), ElementsAre(7));
}

TEST_F(TransferQueue, OfVeryManyEndsWithoutAFrameForEach) {
  for (std::size_t each = 0; each < 500'000; ++each) queue_.push_back(number(each));
}

}  // namespace
}  // namespace muster::detail::transfer_queue_test
