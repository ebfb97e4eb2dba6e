// SPDX-License-Identifier: BSL-1.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/parallel/detail/tensor_accumulator.hpp>

namespace muster::detail::tensor_accumulator_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
tensor joined(output_op op, std::initializer_list<std::pair<std::vector<T>, double>> values) {
  tensor_accumulator all(op, "output 'y'");
  for (const auto& [value, weight] : values) all.add(tensor::from(value), weight);
  return all.value();
}

TEST(TensorAccumulator, AveragesAreWeightedByRows) {
  const auto mean = joined<float>(output_op::avg, {{{1, 10}, 1}, {{4, 40}, 2}});
  EXPECT_THAT(mean.to_vector<float>(), ElementsAre(3, 30));
}

TEST(TensorAccumulator, TheMeanOfRowsIsExactHoweverTheyAreCut) {
  for (std::size_t cuts = 1; cuts <= 101; ++cuts) {
    tensor_accumulator all(output_op::avg, "output 'y'");
    for (std::size_t index = 0; index < cuts; ++index) {
      const std::size_t first = 101 * index / cuts;
      const std::size_t last = 101 * (index + 1) / cuts;
      const auto middle = static_cast<float>(first + last - 1) / 2;
      all.add(tensor::full<float>({}, middle), static_cast<double>(last - first));
    }
    EXPECT_EQ(all.value().item<float>(), 50.0F) << cuts;
  }
}

TEST(TensorAccumulator, SumsOfFloatsAreRoundedOnce) {
  tensor_accumulator all(output_op::sum, "output 'y'");
  all.add(tensor::full<float>({}, 16777216), 1);  // 2^24, to which a float cannot add 1
  for (int each = 0; each < 4; ++each) all.add(tensor::full<float>({}, 1), 1);
  EXPECT_EQ(all.value().item<float>(), 16777220.0F);
}

// As two ranks join what each has of its slices, and the caller what the ranks have.
template <class T>
tensor joined_twice(output_op op, const std::vector<std::vector<T>>& ranks) {
  tensor_accumulator all(op, "output 'y'");
  for (const auto& slices : ranks) {
    tensor_accumulator own(op, "output 'y'");
    for (const auto& each : slices) own.add(tensor::full<T>({2}, each), 1);
    all.add(own.unrounded(), own.weight(), own.result_dtype());
  }
  return all.value();
}

TEST(TensorAccumulator, WhatIsJoinedOnceMoreIsRoundedOnce) {
  const auto large = f16(40000);
  EXPECT_EQ(joined_twice<f16>(output_op::sum, {{large, large}, {f16(-40000), f16(-40000)}}).at<f16>(1), f16(0));
  EXPECT_EQ(joined_twice<float>(output_op::sum, {{16777216, 1}, {1}}).at<float>(1), 16777218.0F);
  EXPECT_EQ(joined_twice<float>(output_op::sum, {{1}, {16777216, 1}}).at<float>(1), 16777218.0F);
  EXPECT_EQ(joined_twice<float>(output_op::avg, {{16777216, 16777218, 1}, {3}}).at<float>(1), 8388609.5F);
  const std::complex<float> power(16777216, 1);
  EXPECT_EQ((joined_twice<std::complex<float>>(output_op::sum, {{power, 1}, {1}}).at<std::complex<float>>(1)),
            std::complex<float>(16777218, 1));
}

TEST(TensorAccumulator, WhatIsJoinedOnceMoreHasItsDtypeAlsoIfItIsTheOnlyOne) {
  EXPECT_EQ(joined_twice<f16>(output_op::sum, {{f16(1), f16(2)}}).dtype(), dtype::f16);
  EXPECT_EQ(joined_twice<std::complex<float>>(output_op::avg, {{1, 2}}).dtype(), dtype::c64);
  EXPECT_EQ(joined_twice<int>(output_op::sum, {{1, 2}, {3}}).dtype(), dtype::i32);
  EXPECT_EQ(joined_twice<int>(output_op::avg, {{1, 2}, {3}}).at<double>(0), 2);
}

TEST(TensorAccumulator, SumsThatAreStillToBeRoundedToDifferentTypesAreNotJoined) {
  tensor_accumulator all(output_op::sum, "output 'y'");
  all.add(tensor::ones<double>({2}), 1, dtype::f32);
  EXPECT_THROW(all.add(tensor::ones<double>({2}), 1), error);
  all.add(tensor::ones<float>({2}), 1);
  EXPECT_EQ(all.value().at<float>(1), 2.0F);
}

TEST(TensorAccumulator, IntegersKeepTheirTypeButInAverages) {
  EXPECT_THAT(joined<int>(output_op::sum, {{{1, 2}, 1}, {{3, 4}, 1}}).to_vector<int>(), ElementsAre(4, 6));
  EXPECT_THAT(joined<int>(output_op::prod, {{{1, 2}, 1}, {{3, 4}, 1}, {{5, 5}, 1}}).to_vector<int>(),
              ElementsAre(15, 40));
  EXPECT_THAT(joined<int>(output_op::min, {{{1, 8}, 1}, {{3, 4}, 1}}).to_vector<int>(), ElementsAre(1, 4));
  EXPECT_THAT(joined<int>(output_op::max, {{{1, 8}, 1}, {{3, 4}, 1}}).to_vector<int>(), ElementsAre(3, 8));
  EXPECT_THAT(joined<int>(output_op::avg, {{{1, 2}, 1}, {{2, 4}, 1}}).to_vector<double>(), ElementsAre(1.5, 3));
  EXPECT_THAT(joined<int>(output_op::avg, {{{1, 2}, 3}}).to_vector<double>(), ElementsAre(1, 2));
}

TEST(TensorAccumulator, AllTypesWithFractionsAreAveragedInTheirType) {
  EXPECT_EQ(joined<f16>(output_op::avg, {{{f16(1)}, 1}, {{f16(2)}, 1}}).item<f16>(), f16(1.5F));
  EXPECT_EQ(joined<bf16>(output_op::avg, {{{bf16(1)}, 1}, {{bf16(2)}, 1}}).item<bf16>(), bf16(1.5F));
  const auto mean = joined<std::complex<float>>(output_op::avg, {{{{1, 2}}, 1}, {{{3, 5}}, 1}});
  EXPECT_EQ(mean.item<std::complex<float>>(), std::complex<float>(2, 3.5F));
}

TEST(TensorAccumulator, AnOnlyValueIsNotCopied) {
  const auto only = tensor::from({1.0F, 2.0F}, {2});
  tensor_accumulator all(output_op::avg, "output 'y'");
  all.add(only, 5);
  EXPECT_EQ(all.value().data(), only.data());
  EXPECT_TRUE(all.is_borrowed());
}

TEST(TensorAccumulator, ValuesThatWereGivenAreNotWrittenTo) {
  const auto first = tensor::from({1, 2}, {2});
  tensor_accumulator all(output_op::max, "output 'y'");
  all.add(first, 1);
  all.add(tensor::from({7, 8}, {2}), 1);
  all.add(tensor::from({9, 0}, {2}), 1);
  EXPECT_THAT(first.to_vector<int>(), ElementsAre(1, 2));
  EXPECT_THAT(all.value().to_vector<int>(), ElementsAre(9, 8));
}

// As of a function that keeps one tensor, and writes each slice's value into it.
template <class T>
tensor joined_in_one_place(output_op op) {
  tensor_accumulator all(op, "output 'y'");
  const auto place = tensor::full<T>({2}, T(3));
  all.add(place, 1);
  for (const int next : {5, 4}) {
    all.make_own();
    place.fill(static_cast<T>(next));
    all.add(place, 1);
  }
  all.make_own();
  place.fill(T(0));
  return all.value();
}

TEST(TensorAccumulator, WhatWasGivenMayChangeAfterwards) {
  EXPECT_THAT(joined_in_one_place<float>(output_op::sum).to_vector<float>(), ElementsAre(12, 12));
  EXPECT_THAT(joined_in_one_place<float>(output_op::avg).to_vector<float>(), ElementsAre(4, 4));
  EXPECT_THAT(joined_in_one_place<float>(output_op::prod).to_vector<float>(), ElementsAre(60, 60));
  EXPECT_THAT(joined_in_one_place<float>(output_op::min).to_vector<float>(), ElementsAre(3, 3));
  EXPECT_THAT(joined_in_one_place<int>(output_op::sum).to_vector<int>(), ElementsAre(12, 12));
  EXPECT_THAT(joined_in_one_place<int>(output_op::avg).to_vector<double>(), ElementsAre(4, 4));
  EXPECT_THAT(joined_in_one_place<int>(output_op::max).to_vector<int>(), ElementsAre(5, 5));
}

TEST(TensorAccumulator, AnOnlyValueThatHasChangedSinceIsAsItWas) {
  for (const auto op : {output_op::sum, output_op::avg, output_op::max}) {
    tensor_accumulator all(op, "output 'y'");
    EXPECT_TRUE(all.is_empty());
    all.make_own();
    const auto place = tensor::full<float>({2}, 3);
    all.add(place, 5);
    all.make_own();
    place.fill(0.0F);
    EXPECT_FALSE(all.is_borrowed());
    EXPECT_THAT(all.value().to_vector<float>(), ElementsAre(3, 3));
  }
}

TEST(TensorAccumulator, ValuesInStridesAreRead) {
  const auto table = tensor::from({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  tensor_accumulator all(output_op::sum, "output 'y'");
  all.add(table.slice(0, 1, 1), 1);
  all.add(table.slice(1, 2, 1), 1);
  EXPECT_THAT(all.value().to_vector<float>(), ElementsAre(3, 7));
}

TEST(TensorAccumulator, ShapesAndTypesThatDifferAreNamed) {
  tensor_accumulator all(output_op::sum, "output 'y'");
  all.add(tensor::from({1.0F, 2.0F}, {2}), 1);
  try {
    all.add(tensor::from({1.0F, 2.0F, 3.0F}, {3}), 1);
    ADD_FAILURE() << "it was accepted";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_THAT(failure.what(),
                AllOf(HasSubstr("output 'y'"), HasSubstr("(3,)"), HasSubstr("(2,)"), HasSubstr("gather")));
  }
}

TEST(TensorAccumulator, WhatATypeHasNoOperationForIsRefused) {
  EXPECT_THROW(joined<std::complex<float>>(output_op::max, {{{{1, 2}}, 1}}), error);
  tensor_accumulator all(output_op::avg, "output 'y'");
  EXPECT_THROW(all.add(tensor::full<bool>({2}, true), 1), error);
}

}  // namespace
}  // namespace muster::detail::tensor_accumulator_test
