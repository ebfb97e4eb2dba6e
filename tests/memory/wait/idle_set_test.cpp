// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/idle_set.hpp>

#include <array>

#include <gtest/gtest.h>

namespace muster::idle_set_test {
namespace {

class IdleSet : public testing::Test {
protected:
  std::array<std::atomic<std::uint64_t>, 4> words_{};
  idle_set set_{words_};
};

TEST_F(IdleSet, TheLowestIsTakenFirst) {
  set_.insert(200);
  set_.insert(5);
  set_.insert(70);
  EXPECT_EQ(set_.count(), 3U);
  EXPECT_EQ(set_.remove_first(), 5U);
  EXPECT_EQ(set_.remove_first(), 70U);
  EXPECT_EQ(set_.remove_first(), 200U);
  EXPECT_EQ(set_.remove_first(), std::nullopt);
}

TEST_F(IdleSet, InsertingTwiceIsOnce) {
  set_.insert(3);
  set_.insert(3);
  EXPECT_TRUE(set_.remove(3));
  EXPECT_FALSE(set_.remove(3));
  EXPECT_FALSE(set_.check_any());
}

TEST_F(IdleSet, LetsOneInWhereNobodyIsToBeBeside) {
  EXPECT_EQ(set_.peek_first(), std::nullopt);
  EXPECT_TRUE(set_.insert_alone(7));
  EXPECT_EQ(set_.peek_first(), 7U);
  EXPECT_FALSE(set_.insert_alone(8));
  EXPECT_FALSE(set_.insert_alone(7)) << "nor the same one twice";
  EXPECT_TRUE(set_.remove(7));
  EXPECT_TRUE(set_.insert_alone(8));
  EXPECT_FALSE(set_.insert_alone(64)) << "only the first 64";
}

TEST_F(IdleSet, KnowsWhetherThereIsAny) {
  EXPECT_FALSE(set_.check_any());
  set_.insert(255);
  EXPECT_TRUE(set_.check_any());
}

TEST_F(IdleSet, AWorkerBeyondItsRoomIsNeverInIt) {
  std::array<std::atomic<std::uint64_t>, 1> words{};
  idle_set set(words);
  EXPECT_FALSE(set.remove(64));
  EXPECT_FALSE(set.remove(255));
}

}  // namespace
}  // namespace muster::idle_set_test
