// SPDX-License-Identifier: BSL-1.0
// MXNet's bits, and its numbers.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/gradient_compression.hpp>

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;
using bits = gradient_compression::bits;

constexpr gradient_compression one{.kind = bits::one, .threshold = 0};
constexpr gradient_compression two{.kind = bits::two, .threshold = 0.5};

tensor nothing_left(std::size_t count) { return tensor::zeros<float>({count}); }

TEST(GradientCompression, TheFirstNumberIsInTheHighestBits) {
  const auto four = two.compress(tensor::from({1.0F, -1.0F, 0.0F, 1.0F}, {4}), nothing_left(4));
  EXPECT_THAT(four.to_vector<std::uint8_t>(), ElementsAre(0xE3, 0, 0, 0));
  const auto eight =
      one.compress(tensor::from({1.0F, -1.0F, 1.0F, 1.0F, -1.0F, -1.0F, -1.0F, 1.0F}, {8}), nothing_left(8));
  EXPECT_THAT(eight.to_vector<std::uint8_t>(), ElementsAre(0xB1, 0, 0, 0));
}

TEST(GradientCompression, SizesAreWholeWords) {
  EXPECT_EQ(two.bytes_of(16), 4U);
  EXPECT_EQ(two.bytes_of(17), 8U);
  EXPECT_EQ(one.bytes_of(32), 4U);
  EXPECT_EQ(one.bytes_of(33), 8U);
  EXPECT_EQ(one.bytes_of(0), 0U);
}

TEST(GradientCompression, WhatIsLostIsSentLater) {
  const auto left = nothing_left(3);
  const auto pushed = [&](float value) {
    return two.expand(two.compress(tensor::full<float>({3}, value), left), {3}).to_vector<float>();
  };
  EXPECT_THAT(pushed(0.4F), Each(0));
  EXPECT_THAT(pushed(0.1F), Each(0.5F));
  EXPECT_THAT(pushed(0.2F), Each(0));
  EXPECT_THAT(pushed(0.3F), Each(0.5F));
  EXPECT_THAT(left.to_vector<float>(), Each(0));
}

// Against what is said in words, number by number.
TEST(GradientCompression, AnyNumbersBecomeWhatTheWordsSay) {
  std::mt19937 random(3);
  std::normal_distribution<float> number(0, 1);
  for (const auto& how : {one, two}) {
    for (const std::size_t count : {1U, 3U, 31U, 33U, 1000U}) {
      const auto left = nothing_left(count);
      std::vector<float> expected_left(count, 0);
      for (int round = 0; round < 5; ++round) {
        std::vector<float> numbers(count);
        for (auto& each : numbers) each = number(random);
        const auto found = how.expand(how.compress(tensor::from(numbers), left), {count}).to_vector<float>();
        for (std::size_t each = 0; each < count; ++each) {
          const float sum = expected_left[each] + numbers[each];
          const float sent = how.kind == bits::one ? (sum > 0 ? 1.0F : -1.0F)
                             : sum >= 0.5F         ? 0.5F
                             : sum <= -0.5F        ? -0.5F
                                                   : 0.0F;
          expected_left[each] = sum - sent;
          ASSERT_EQ(found[each], sent);
        }
        ASSERT_EQ(left.to_vector<float>(), expected_left);
      }
    }
  }
}

TEST(GradientCompression, WhatIsNotFiniteIsNotKept) {
  const auto left = nothing_left(2);
  static_cast<void>(two.compress(tensor::from({std::nanf(""), std::numeric_limits<float>::infinity()}, {2}), left));
  EXPECT_THAT(left.to_vector<float>(), Each(0));
}

TEST(GradientCompression, BadInputIsSaid) {
  EXPECT_THROW(static_cast<void>(gradient_compression::of("2bit", 0)), error);
  EXPECT_THROW(static_cast<void>(gradient_compression::of("1bit", NAN)), error);
  EXPECT_THROW(static_cast<void>(gradient_compression::of("3bit", 1)), error);
  EXPECT_EQ(gradient_compression::of("none", 0).kind, bits::all);
  EXPECT_THROW(static_cast<void>(one.compress(tensor::zeros<double>({2}), tensor::zeros<double>({2}))), error);
  EXPECT_THROW(static_cast<void>(one.compress(tensor::zeros<float>({2}), tensor::zeros<float>({3}))), error);
  EXPECT_THROW(static_cast<void>(one.expand(tensor::zeros<std::uint8_t>({8}), {2})), error);
}

}  // namespace
}  // namespace muster
