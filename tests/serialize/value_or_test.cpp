// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/value_or.hpp>

#include <string>

#include <gtest/gtest.h>

namespace muster::value_or_test {
namespace {

using either = detail::value_or<std::string, std::unique_ptr<int>>;

TEST(ValueOr, HasOneOrTheOther) {
  const either some(std::in_place, "text");
  EXPECT_TRUE(some.has_value());
  EXPECT_EQ(some.value(), "text");
  const either other(detail::other_tag(), std::make_unique<int>(3));
  EXPECT_FALSE(other.has_value());
  EXPECT_EQ(*other.other(), 3);
}

TEST(ValueOr, AssignmentChangesWhichOneItHas) {
  either some(std::in_place, "text");
  some = either(detail::other_tag(), std::make_unique<int>(3));
  ASSERT_FALSE(some.has_value());
  EXPECT_EQ(*some.other(), 3);
  some = either(std::in_place, "again");
  ASSERT_TRUE(some.has_value());
  EXPECT_EQ(some.value(), "again");
}

TEST(ValueOr, CopiesWhereBothCan) {
  using copied = detail::value_or<std::string, int>;
  static_assert(!std::copy_constructible<either> && std::copy_constructible<copied>);
  copied some(std::in_place, "text");
  copied other(some);
  EXPECT_EQ(other.value(), "text");
  other = copied(detail::other_tag(), 4);
  some = other;
  EXPECT_EQ(some.other(), 4);
}

struct throws_when_moved {
  explicit throws_when_moved(int value) : number(value) {}
  throws_when_moved(throws_when_moved&& /*from*/) noexcept(false) { throw 1; }
  throws_when_moved(const throws_when_moved& from) = default;
  int number;
};

TEST(ValueOr, HasAnEmptyOtherOneWhereAMoveThrew) {
  using thrower = detail::value_or<throws_when_moved, std::string>;
  thrower some(std::in_place, 1);
  thrower given(std::in_place, 2);
  EXPECT_ANY_THROW(some = std::move(given));
  ASSERT_FALSE(some.has_value());
  EXPECT_EQ(some.other(), "");
}

}  // namespace
}  // namespace muster::value_or_test
