// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_compare.hpp>

#include <limits>

#include "device_support.hpp"

namespace muster::tensor_compare_test {
namespace {

using test::expect_refused;
using testing::ElementsAre;

constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
constexpr auto infinite = std::numeric_limits<float>::infinity();

template <class T>
void ignore(const T& /*value*/) {}

// 0 to 23
tensor counted() { return tensor::arange<std::int32_t>(24).reshape({4, 6}); }

TEST(Equal, ComparesTypeShapeAndElements) {
  EXPECT_TRUE(equal(counted(), counted()));
  EXPECT_FALSE(equal(counted(), counted().reshape({6, 4})));
  EXPECT_FALSE(equal(counted(), tensor::arange<std::int64_t>(24).reshape({4, 6})));
  EXPECT_TRUE(equal(counted().slice(1, 3, 1), counted().slice(1, 3, 1).clone()));
  const auto large = tensor::full<std::int64_t>({1}, INT64_MAX);
  EXPECT_FALSE(equal(large, tensor::full<std::int64_t>({1}, INT64_MAX - 1)));
}

TEST(AllClose, AllowsSmallDifferences) {
  const auto ones = tensor::ones<double>({3});
  EXPECT_TRUE(all_close(tensor::full({3}, 1.000001), ones));
  EXPECT_FALSE(all_close(tensor::full({3}, 1.0001), ones));
  EXPECT_TRUE(all_close(tensor::full({3}, 1.0001), ones, {.relative = 1e-3}));
  const auto endless = tensor::full({2}, double{infinite});
  EXPECT_TRUE(all_close(endless, endless));
  EXPECT_FALSE(all_close(tensor::ones<double>({2}), endless));
  EXPECT_TRUE(all_close(tensor::ones<std::complex<float>>({2}), tensor::full({2}, std::complex<float>(1, 1e-7F))));
}

TEST(Compare, SaysItOfEachElement) {
  const auto a = tensor::from<int>({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto b = tensor::from<int>({1, 0, 3, 9, 5, 0}, {3, 2}).reshape({2, 3});
  const auto found = [&](comparison how) { return compare(a, how, b).to_vector<bool>(); };
  EXPECT_THAT(found(comparison::equal), ElementsAre(true, false, true, false, true, false));
  EXPECT_THAT(found(comparison::not_equal), ElementsAre(false, true, false, true, false, true));
  EXPECT_THAT(found(comparison::less), ElementsAre(false, false, false, true, false, false));
  EXPECT_THAT(found(comparison::less_equal), ElementsAre(true, false, true, true, true, false));
  EXPECT_THAT(found(comparison::greater), ElementsAre(false, true, false, false, false, true));
  EXPECT_THAT(found(comparison::greater_equal), ElementsAre(true, true, true, false, true, true));
  EXPECT_EQ(compare(a, comparison::equal, b).shape(), (tensor_shape{2, 3}));
}

TEST(Equal, NansAreTheSameIfAskedFor) {
  const auto some = tensor::from<float>({1, nan}, {2});
  EXPECT_FALSE(equal(some, some));
  EXPECT_TRUE(equal(some, some, nans::same));
  EXPECT_FALSE(equal(some, tensor::from<float>({1, 1}, {2}), nans::same));
  EXPECT_TRUE(all_close(some, some, {.nans = nans::same}));
  const auto half = tensor::full({1}, std::complex<float>(1, nan));
  EXPECT_TRUE(equal(half, tensor::full({1}, std::complex<float>(nan, 2)), nans::same)) << "as NumPy has it";
  EXPECT_TRUE(equal(counted(), counted(), nans::same));
}

TEST(IsClose, SaysItOfEachElement) {
  const auto a = tensor::from<double>({1.000001, 1.0001, infinite, -infinite, nan, 0}, {6});
  const auto b = tensor::from<double>({1, 1, infinite, infinite, nan, 1e-9}, {6});
  EXPECT_THAT(is_close(a, b).to_vector<bool>(), ElementsAre(true, false, true, false, false, true));
  EXPECT_THAT(is_close(a, b, {.relative = 1e-3, .absolute = 0, .nans = nans::same}).to_vector<bool>(),
              ElementsAre(true, true, true, false, true, false));
}

TEST(IsClose, BroadcastsAndIsExactForLargeIntegers) {
  const auto a = tensor::from<std::int64_t>({INT64_MAX, INT64_MAX - 1}, {2, 1});
  const auto b = tensor::from<std::int64_t>({INT64_MAX, INT64_MAX - 2, 0}, {3});
  const auto found = is_close(a, b, {.relative = 0, .absolute = 1});
  EXPECT_EQ(found.shape(), (tensor_shape{2, 3}));
  EXPECT_THAT(found.to_vector<bool>(), ElementsAre(true, false, false, true, true, false));
}

TEST(Compare, BroadcastsBothSides) {
  const auto column = tensor::arange<int>(3).reshape({3, 1});
  const auto row = tensor::from<int>({1, 2}, {2});
  const auto found = compare(column, comparison::less, row);
  EXPECT_EQ(found.shape(), (tensor_shape{3, 2}));
  EXPECT_THAT(found.to_vector<bool>(), ElementsAre(true, true, false, true, false, false));
  EXPECT_EQ(compare(tensor::full({}, 3), comparison::less, tensor::zeros<int>({4, 1, 2})).shape(),
            (tensor_shape{4, 1, 2}));
  EXPECT_EQ(compare(tensor::zeros<int>({1, 5}), comparison::less, tensor::zeros<int>({0, 1})).shape(),
            (tensor_shape{0, 5}));
}

TEST(Compare, WithANumberTakesOneThatTheDtypeHolds) {
  EXPECT_THAT(compare(tensor::arange<double>(3), comparison::greater_equal, 1).to_vector<bool>(),
              ElementsAre(false, true, true));
  expect_refused([] { ignore(compare(tensor::zeros<std::uint8_t>({2}), comparison::less, -1)); }, "u8", "-1");
}

TEST(Compare, OfOneElementIsWithThatAndViewsAreHeeded) {
  const auto a = tensor::arange<double>(6).reshape({2, 3});
  EXPECT_THAT(compare(a, comparison::greater, tensor::full({}, 3.0)).to_vector<bool>(),
              ElementsAre(false, false, false, false, true, true));
  EXPECT_THAT(compare(a.transpose(), comparison::equal, tensor::full({1}, 3.0)).to_vector<bool>(),
              ElementsAre(false, true, false, false, false, false));
  EXPECT_THAT(compare(a, comparison::less, a.slice(1, 2, 1).slice(0, 1)).to_vector<bool>(),
              ElementsAre(true, false, false, false, false, false));
  EXPECT_EQ(compare(tensor::zeros<int>({0, 3}), comparison::equal, tensor::zeros<int>({1})).size(), 0U);
  EXPECT_TRUE(compare(tensor::full({}, 1), comparison::equal, tensor::full({}, 1)).item<bool>());
}

TEST(Compare, KnowsEveryDtype) {
  for (std::size_t number = 0; number < dtype_count; ++number) {
    const auto zeros = tensor::zeros(static_cast<dtype>(number), {3});
    const auto some = zeros.clone();
    some.slice(1, 2).fill(1);
    EXPECT_THAT(compare(some, comparison::equal, zeros).to_vector<bool>(), ElementsAre(true, false, true)) << some;
    EXPECT_EQ(count_nonzero(some), 1U);
    EXPECT_TRUE(any(some) && !all(some) && !any(zeros) && all(some.slice(1, 2))) << some;
  }
  const auto none = tensor::full({1}, nan);
  EXPECT_FALSE(compare(none, comparison::equal, none).item<bool>());
  EXPECT_TRUE(compare(none, comparison::not_equal, none).item<bool>());
  EXPECT_FALSE(compare(none, comparison::less_equal, none).item<bool>());
  EXPECT_TRUE(all(none)) << "not zero";
}

TEST(Compare, WhatCannotBeComparedIsRefused) {
  const auto refused = [](const tensor& a, comparison how, const tensor& b, const auto&... parts) {
    expect_refused([&] { ignore(compare(a, how, b)); }, parts...);
  };
  refused(tensor::zeros<int>({2}), comparison::less, tensor::zeros<int>({3}), "(2,)", "(3,)", "less");
  refused(tensor::zeros<int>({2}), comparison::equal, tensor::zeros<float>({2}), "i32", "f32", "convert");
  refused(tensor::zeros<int>({2, 3}), comparison::equal, tensor::zeros<int>({2, 1, 2}), "(2, 3)", "(2, 1, 2)",
          "must be the same, or one of them be 1");
  expect_refused([] { ignore(is_close(tensor::zeros<int>({2}), tensor::zeros<int>({3}))); }, "is_close", "(3,)");
  constexpr auto huge = std::size_t{1} << 40U;
  const auto one = tensor::zeros<bool>({1});
  refused(one.broadcast_to({huge, 1}), comparison::equal, one.broadcast_to({huge}), "must fit");
  refused(tensor::zeros(dtype::c64, {2}), comparison::greater_equal, tensor::zeros(dtype::c64, {2}), "no order");
}

TEST(AnyAndAll, OfAnEmptyTensor) {
  const auto none = tensor::zeros<int>({0, 3});
  EXPECT_FALSE(any(none));
  EXPECT_TRUE(all(none));
  EXPECT_EQ(count_nonzero(none), 0U);
}

}  // namespace
}  // namespace muster::tensor_compare_test
