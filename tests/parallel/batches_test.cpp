// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/parallel/batches.hpp>

namespace muster::batches_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::int64_t> rows_of(const std::vector<row_selection>& all) {
  std::vector<std::int64_t> rows;
  for (const auto& each : all) rows.insert(rows.end(), each.list().begin(), each.list().end());
  return rows;
}

TEST(Batches, HaveEachRowOnceAndComeOutEvenButForTheLast) {
  for (std::size_t rows = 0; rows < 40; ++rows) {
    for (std::size_t batch = 1; batch < 45; ++batch) {
      const auto made = batches(rows, batch, 7);
      ASSERT_EQ(made.size(), (rows + batch - 1) / batch);
      for (std::size_t index = 0; index < made.size(); ++index) {
        EXPECT_EQ(made[index].list().size(), std::min(batch, rows - index * batch));
      }
      auto found = rows_of(made);
      std::ranges::sort(found);
      std::vector<std::int64_t> all(rows);
      std::iota(all.begin(), all.end(), std::int64_t{0});
      EXPECT_EQ(found, all);
    }
  }
}

TEST(Batches, AreTheSameForTheSameSeedAndOthersForAnother) {
  EXPECT_EQ(rows_of(batches(1000, 32, 1)), rows_of(batches(1000, 32, 1)));
  EXPECT_EQ(rows_of(batches(1000, 32, 1)), rows_of(batches(1000, 100, 1)));
  EXPECT_NE(rows_of(batches(1000, 32, 1)), rows_of(batches(1000, 32, 2)));
}

TEST(Batches, AreTheSameOnEveryMachine) { EXPECT_THAT(rows_of(batches(8, 3, 0)), ElementsAre(3, 7, 5, 4, 2, 0, 6, 1)); }

// Each place gets each row as often as another, but for chance: 6000 orders of 6 rows.
TEST(Batches, GiveEveryOrderItsChance) {
  std::vector<std::size_t> counts(36);
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const auto order = rows_of(batches(6, 6, seed));
    for (std::size_t place = 0; place < 6; ++place) ++counts[place * 6 + static_cast<std::size_t>(order[place])];
  }
  for (const auto count : counts) EXPECT_NEAR(static_cast<double>(count), 1000, 160);  // the same in every run
}

TEST(Batches, OfNoRowsAreNoneAndWithNoRowsAreRefused) {
  EXPECT_THAT(batches(0, 5, 1), IsEmpty());
  try {
    static_cast<void>(batches(5, 0, 1));
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), HasSubstr("0 rows of 5"));
  }
}

}  // namespace
}  // namespace muster::batches_test
