// SPDX-License-Identifier: BSL-1.0
// Which call waits for which, and circles of them.
#include <muster/rpc/detail/wait_graph.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/rpc/detail/call_word.hpp>

namespace muster::detail::wait_graph_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A group's memory, in this process alone.
class WaitGraph : public testing::Test {
protected:
  [[nodiscard]] call_id begin(std::uint32_t member, std::uint32_t slot) const {
    auto& word = table_.calls_of(member)[slot].word;
    return {.member = member, .slot = slot, .generation = call_word::queue(word)};
  }
  void end(const call_id& which) const {
    call_word::release(table_.calls_of(which.member)[which.slot].word, which.generation);
  }

private:
  static constexpr std::align_val_t alignment{64};
  struct deleter {
    void operator()(std::byte* bytes) const noexcept { ::operator delete[](bytes, alignment); }
  };
  table_shape shape_{.members = 3, .named = 3, .names = 4, .calls = 4, .inbox = 4, .timeout = {}};
  std::unique_ptr<std::byte[], deleter> bytes_{new (alignment) std::byte[shape_.total_bytes()]};
  group_table table_ = group_table::make({bytes_.get(), shape_.total_bytes()}, shape_, "test");

protected:
  wait_graph waits_{table_};
};

TEST_F(WaitGraph, WhatWaitsForNothingIsInNoCircle) {
  const auto a = begin(0, 0);
  EXPECT_EQ(waits_.next(a), std::nullopt);
  EXPECT_THAT(waits_.circle_of(a), IsEmpty());
}

TEST_F(WaitGraph, ACircleIsFoundFromEachOfItsCalls) {
  const auto a = begin(0, 1);
  const auto b = begin(1, 2);
  const auto c = begin(2, 3);
  waits_.set(a, b);
  waits_.set(b, c);
  EXPECT_THAT(waits_.circle_of(a), IsEmpty());
  waits_.set(c, a);
  EXPECT_THAT(waits_.circle_of(a), ElementsAre(a, b, c));
  EXPECT_THAT(waits_.circle_of(c), ElementsAre(c, a, b));
}

TEST_F(WaitGraph, ACallThatWaitsForItselfIsACircle) {
  const auto a = begin(0, 0);
  waits_.set(a, a);
  EXPECT_THAT(waits_.circle_of(a), ElementsAre(a));
}

TEST_F(WaitGraph, WhatLeadsIntoACircleIsNotInIt) {
  const auto outside = begin(0, 0);
  const auto a = begin(1, 0);
  const auto b = begin(2, 0);
  waits_.set(outside, a);
  waits_.set(a, b);
  waits_.set(b, a);
  EXPECT_THAT(waits_.circle_of(outside), IsEmpty());
}

TEST_F(WaitGraph, AnEdgeEndsWithEitherOfItsCalls) {
  const auto a = begin(0, 0);
  const auto b = begin(1, 0);
  waits_.set(a, b);
  waits_.set(b, a);
  end(b);
  const auto next = begin(1, 0);
  EXPECT_EQ(waits_.next(a), std::nullopt) << "the word is another call's";
  EXPECT_EQ(waits_.next(next), std::nullopt) << "the edge was the one's before";
  EXPECT_THAT(waits_.circle_of(a), IsEmpty());
}

TEST_F(WaitGraph, ThoseBehindAWithdrawnCallWaitForThoseBeforeIt) {
  const auto first = begin(0, 0);
  const auto second = begin(0, 1);
  const auto third = begin(0, 2);
  waits_.set(second, first);
  waits_.set(third, second);
  end(second);
  waits_.set(first, third);
  EXPECT_THAT(waits_.circle_of(first), ElementsAre(first, third, second));
}

TEST_F(WaitGraph, WhatWasOverwrittenIsNoEdge) {
  const auto a = begin(0, 0);
  waits_.set(a, {.member = 2000, .slot = 7, .generation = 1});
  EXPECT_EQ(waits_.next(a), std::nullopt);
  waits_.set({.member = 9, .slot = 9, .generation = 9}, a);  // no such line
  EXPECT_EQ(waits_.next({.member = 9, .slot = 9, .generation = 9}), std::nullopt);
}

}  // namespace
}  // namespace muster::detail::wait_graph_test
