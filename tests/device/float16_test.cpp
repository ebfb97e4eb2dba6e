// SPDX-License-Identifier: BSL-1.0
#include <muster/device/float16.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace muster::float16_test {
namespace {

template <class T>
class Float16 : public testing::Test {
protected:
  static constexpr std::uint16_t infinity = std::is_same_v<T, f16> ? 0x7c00 : 0x7f80;
  static constexpr std::uint16_t quiet = std::is_same_v<T, f16> ? 0x0200 : 0x0040;
};

using both = testing::Types<f16, bf16>;
TYPED_TEST_SUITE(Float16, both);

TYPED_TEST(Float16, EveryValueComesBackFromFloatUnchangedAndNaNsComeBackQuiet) {
  for (unsigned number = 0; number <= UINT16_MAX; ++number) {
    const auto bits = static_cast<std::uint16_t>(number);
    const bool is_nan = (bits & 0x7fffU) > this->infinity;
    const auto value = static_cast<float>(TypeParam::from_bits(bits));
    EXPECT_EQ(std::isnan(value), is_nan) << number;
    EXPECT_EQ(TypeParam(value).bits(), is_nan ? bits | this->quiet : bits) << number;
  }
}

// Between any two neighbours: what is below the middle goes down, what is above goes up, the middle goes to the even.
TYPED_TEST(Float16, EveryRoundingIsToTheNearestAndOfATieToTheEven) {
  for (std::uint16_t lower = 0; lower + 1 < this->infinity; ++lower) {
    const auto upper = static_cast<std::uint16_t>(lower + 1);
    const auto from = static_cast<float>(TypeParam::from_bits(lower));
    const auto to = static_cast<float>(TypeParam::from_bits(upper));
    const auto middle = static_cast<float>((static_cast<double>(from) + static_cast<double>(to)) / 2);
    const auto even = lower % 2 == 0 ? lower : upper;
    ASSERT_EQ(TypeParam(middle).bits(), even) << lower;
    ASSERT_EQ(TypeParam(std::nextafter(middle, from)).bits(), lower) << lower;
    ASSERT_EQ(TypeParam(std::nextafter(middle, to)).bits(), upper) << lower;
    ASSERT_EQ(TypeParam(-middle).bits(), even | 0x8000U) << lower;
  }
}

TYPED_TEST(Float16, ValuesGrowWithTheirBits) {
  for (std::uint16_t bits = 0; bits < this->infinity; ++bits) {
    EXPECT_LT(static_cast<float>(TypeParam::from_bits(bits)),
              static_cast<float>(TypeParam::from_bits(static_cast<std::uint16_t>(bits + 1))));
  }
}

TYPED_TEST(Float16, WhatIsTooLargeIsInfinite) {
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::infinity()).bits(), this->infinity);
  EXPECT_EQ(TypeParam(-std::numeric_limits<float>::max()).bits(), this->infinity | 0x8000U);
}

TEST(F16, HasTheValuesOfTheStandard) {
  EXPECT_EQ(f16(1.0F).bits(), 0x3c00U);
  EXPECT_EQ(f16(-2.0F).bits(), 0xc000U);
  EXPECT_EQ(f16(65504.0F).bits(), 0x7bffU);
  EXPECT_EQ(f16(65519.996F).bits(), 0x7bffU);
  EXPECT_EQ(f16(65520.0F).bits(), 0x7c00U);
  EXPECT_EQ(f16(0x1p-24F).bits(), 1U);
  EXPECT_EQ(f16(0x1p-25F).bits(), 0U);
  EXPECT_EQ(f16(0.1F).bits(), 0x2e66U);
}

TEST(Bf16, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(bf16(1.0F).bits(), 0x3f80U);
  EXPECT_EQ(bf16(3.14159265F).bits(), 0x4049U);
  EXPECT_EQ(static_cast<float>(bf16::from_bits(0x4049)), 3.140625F);
}

TEST(F16, ComputesAsFloat) {
  const f16 a(1.5F);
  const f16 b(2.25F);
  EXPECT_EQ(a * b + 1, 4.375F);
  EXPECT_TRUE(a < b);
}

static_assert(f16(0.5F).bits() == 0x3800 && static_cast<float>(bf16(0.5F)) == 0.5F,
              "conversions are for constants too");

}  // namespace
}  // namespace muster::float16_test
