// SPDX-License-Identifier: BSL-1.0
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/parallel/row_range.hpp>
#include <muster/parallel/row_selection.hpp>

namespace muster::row_selection_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    return failure.what();
  }
  return "nothing was thrown";
}

TEST(RowRange, PartsAreTheWholeInOrderAndDifferByOneRowAtMost) {
  for (std::size_t length = 0; length < 40; ++length) {
    for (std::size_t parts = 1; parts < 50; ++parts) {
      std::size_t at = 7;
      for (std::size_t index = 0; index < parts; ++index) {
        const auto part = part_of({.first = 7, .last = 7 + length}, index, parts);
        EXPECT_EQ(part.first, at);
        EXPECT_GE(part.size(), length / parts);
        EXPECT_LE(part.size(), length / parts + 1);
        at = part.last;
      }
      EXPECT_EQ(at, 7 + length);
    }
  }
}

TEST(RowRange, EdgesAreRoundedDown) {
  const row_range hundred{.first = 0, .last = 100};
  EXPECT_EQ(part_of(hundred, 0, 3), (row_range{.first = 0, .last = 33}));
  EXPECT_EQ(part_of(hundred, 1, 3), (row_range{.first = 33, .last = 66}));
  EXPECT_EQ(part_of(hundred, 2, 3), (row_range{.first = 66, .last = 100}));
}

TEST(RowRange, LengthsThatWouldOverflowAreDealtOut) {
  const row_range huge{.first = 0, .last = SIZE_MAX};
  EXPECT_EQ(part_of(huge, 2, 3).last, SIZE_MAX);
  EXPECT_EQ(part_of(huge, 0, 3).size(), SIZE_MAX / 3);
}

TEST(RowSelection, OfEverythingIsWhateverThereIs) {
  const row_selection all;
  EXPECT_TRUE(all.is_all());
  EXPECT_EQ(all.range(9), (row_range{.first = 0, .last = 9}));
  EXPECT_EQ(all.count(0), 0U);
  EXPECT_NO_THROW(all.require_within(0, "x"));
}

TEST(RowSelection, OfANumberIsTheFirstRows) {
  const row_selection some = 5;
  EXPECT_EQ(some.range(9), (row_range{.first = 0, .last = 5}));
  EXPECT_EQ(some.count(9), 5U);
  EXPECT_NO_THROW(some.require_within(5, "x"));
  EXPECT_EQ(row_selection(5U).count(9), 5U);
  EXPECT_EQ(row_selection(std::size_t{5}).count(9), 5U);
}

TEST(RowSelection, OfARangeIsThat) {
  const row_selection some = row_range{.first = 2, .last = 4};
  EXPECT_EQ(some.range(9), (row_range{.first = 2, .last = 4}));
  EXPECT_EQ(some.count(9), 2U);
}

TEST(RowSelection, OfAListKeepsOrderAndRepeats) {
  const row_selection some = std::vector<int>{7, 3, 7};
  ASSERT_TRUE(some.is_list());
  EXPECT_THAT(some.list(), testing::ElementsAre(7, 3, 7));
  EXPECT_EQ(some.count(9), 3U);
}

TEST(RowSelection, WhatSelectsNothingIsRefusedWhereItIsUsedWithTheLength) {
  const auto refused = [](const row_selection& what) {
    const auto within = refusal([&] { what.require_within(9, "input 'x'"); });
    EXPECT_EQ(refusal([&] { what.require_possible(9, "input 'x'"); }), within);
    EXPECT_THAT(within, AllOf(testing::StartsWith("input 'x': "), HasSubstr("its 9")));
    return within;
  };
  EXPECT_THAT(refused(0), HasSubstr("first 0 rows"));
  EXPECT_THAT(refused(-3), HasSubstr("first -3 rows"));
  EXPECT_THAT(refused(INT64_MIN), HasSubstr("first -9223372036854775808 rows"));
  EXPECT_THAT(refused(row_range{.first = 3, .last = 1}), HasSubstr("rows 3 to before 1"));
  EXPECT_THAT(refused(row_range{.first = 3, .last = 3}), HasSubstr("rows 3 to before 3"));
  EXPECT_THAT(refused(std::vector<int>{}), HasSubstr("empty list"));
  EXPECT_THAT(refusal([] { row_selection(std::vector<int>{4, 5, -1}).require_possible(2, "input 'x'"); }),
              AllOf(HasSubstr("input 'x'"), HasSubstr("no row -1"), HasSubstr("place 2"), HasSubstr("has 2 rows")));
  static_assert(!std::is_constructible_v<row_selection, bool>);
}

TEST(RowSelection, OfWhatHoldsJustTheSelectedRowsMayHaveAnyNumbers) {
  EXPECT_NO_THROW(row_selection(std::vector<int>{4, 900}).require_possible(2, "input 'x'"));
  EXPECT_NO_THROW(row_selection(row_range{.first = 500, .last = 502}).require_possible(2, "input 'x'"));
}

TEST(RowSelection, RowsThatAreNotThereAreNamedWithTheirPlaceAndTheLength) {
  EXPECT_THAT(refusal([] { row_selection(std::vector<int>{4, 9, 12}).require_within(9, "input 'x'"); }),
              AllOf(HasSubstr("input 'x'"), HasSubstr("no row 9"), HasSubstr("place 1"), HasSubstr("has 9 rows")));
  EXPECT_THAT(refusal([] { row_selection(std::vector<int>{100, -1}).require_within(9, "input 'x'"); }),
              AllOf(HasSubstr("no row 100"), HasSubstr("place 0")));
  EXPECT_THAT(refusal([] { row_selection(std::vector<int>{8, -1, 100}).require_within(9, "input 'x'"); }),
              AllOf(HasSubstr("no row -1"), HasSubstr("place 1")));
}

TEST(RowSelection, OfARangeTheFirstRowThatIsNotThereIsNamedAndWhatWasAskedFor) {
  EXPECT_THAT(refusal([] { row_selection(row_range{.first = 5, .last = 100}).require_within(10, "input 'x'"); }),
              AllOf(testing::StartsWith("input 'x': "), HasSubstr("rows 5 to before 100"), HasSubstr("no row 10;"),
                    HasSubstr("has 10 rows")));
  EXPECT_THAT(refusal([] { row_selection(row_range{.first = 12, .last = 20}).require_within(10, "input 'x'"); }),
              HasSubstr("no row 12;"));
  EXPECT_THAT(refusal([] { row_selection(row_range{.first = 3, .last = 5}).require_within(0, "input 'x'"); }),
              AllOf(HasSubstr("no row 3;"), HasSubstr("has 0 rows")));
  EXPECT_THAT(refusal([] { row_selection(10).require_within(9, "input 'x'"); }),
              AllOf(HasSubstr("the first 10 rows"), HasSubstr("no row 9;")));
  EXPECT_THAT(refusal([] { row_selection(SIZE_MAX).require_within(9, "input 'x'"); }), HasSubstr("has 9 rows"));
  EXPECT_THAT(refusal([] { row_selection(row_range{.first = 0, .last = 2}).require_within(1, "input 'x'"); }),
              AllOf(HasSubstr("no row 1"), HasSubstr("has 1 row,")));
}

}  // namespace
}  // namespace muster::row_selection_test
