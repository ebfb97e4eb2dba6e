// SPDX-License-Identifier: BSL-1.0
#include "range_list.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "seed.hpp"

namespace muster::range_list_test {
namespace {

using detail::range_list;

TEST(RangeList, BeginsWithAllFree) {
  const range_list all(1000);
  EXPECT_TRUE(all.is_all_free());
  EXPECT_EQ(all.free_bytes(), 1000U);
}

TEST(RangeList, GivesTheSmallestRangeThatFits) {
  range_list some(1000);
  const auto a = some.take(100);
  const auto b = some.take(300);
  const auto c = some.take(600);
  some.give_back(*b, 300);
  some.give_back(*a, 100);  // joined with the one behind it
  EXPECT_EQ(some.take(400), *a);
  some.give_back(*a, 400);
  some.give_back(*c, 600);
  EXPECT_TRUE(some.is_all_free());
}

TEST(RangeList, SaysWhenNothingFits) {
  range_list some(1000);
  EXPECT_EQ(some.take(1001), std::nullopt);
  EXPECT_EQ(some.take(1000), 0U);
  EXPECT_EQ(some.take(1), std::nullopt);
}

TEST(RangeList, NeverGivesTheSameByteTwice) {
  std::mt19937_64 random(test::seed());
  range_list some(100'000);
  struct piece {
    std::size_t offset;
    std::size_t bytes;
  };
  std::vector<piece> taken;
  std::vector<bool> used(100'000);
  const auto mark = [&](const piece& which, bool now) {
    for (std::size_t at = which.offset; at < which.offset + which.bytes; ++at) {
      ASSERT_NE(used[at], now);
      used[at] = now;
    }
  };
  for (int times = 0; times < 5000; ++times) {
    const auto bytes = 1 + random() % 5000;
    if (const auto offset = random() % 3 != 0 ? some.take(bytes) : std::nullopt) {
      taken.push_back({*offset, bytes});
      mark(taken.back(), true);
    } else if (!taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      mark(taken.back(), false);
      some.give_back(taken.back().offset, taken.back().bytes);
      taken.pop_back();
    }
  }
  for (const auto& each : taken) some.give_back(each.offset, each.bytes);
  EXPECT_TRUE(some.is_all_free());
}

}  // namespace
}  // namespace muster::range_list_test
