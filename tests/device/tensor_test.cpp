// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor.hpp>

#include <cstdint>
#include <numeric>
#include <utility>

#include <muster/memory/domain.hpp>

#include "device_support.hpp"

namespace muster::tensor_test {
namespace {

using test::expect_refused;
using testing::ElementsAre;

template <class T>
void ignore(const T& /*value*/) {}

// 0 to 23
tensor counted(const tensor_shape& shape) { return tensor::arange<std::int32_t>(24).reshape(shape); }

TEST(Tensor, ADefaultOneHasNoElements) {
  const tensor none;
  EXPECT_EQ(none.size(), 0U);
  EXPECT_EQ(none.rows(), 0U);
  EXPECT_EQ(none.shape(), tensor_shape{0});
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(none.span<float>().empty());
}

TEST(Tensor, MemoryIsSharedUnlessAskedOtherwise) {
  EXPECT_TRUE(tensor::zeros<float>({3}).is_shared());
  EXPECT_FALSE(tensor::zeros<float>({3}, memory::local).is_shared());
}

TEST(Tensor, MemoryBeginsAligned) {
  for (const auto where : {memory::shared, memory::local}) {
    const auto made = tensor::empty<std::uint8_t>({1}, where);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.data()) % storage::alignment, 0U);
  }
}

TEST(Tensor, WithoutDimensionsHasOneElement) {
  const auto made = tensor::full<float>({}, 2.5F);
  EXPECT_EQ(made.dimensions(), 0U);
  EXPECT_EQ(made.size(), 1U);
  EXPECT_EQ(made.item<float>(), 2.5F);
  EXPECT_EQ(made.at<float>(), 2.5F);
  expect_refused([&] { ignore(made.rows()); }, "no rows");
}

TEST(Tensor, OfAnEmptyShapeHasNoElementsAndNoMemory) {
  const auto made = tensor::ones<float>({3, 0, 2});
  EXPECT_EQ(made.size(), 0U);
  EXPECT_EQ(made.rows(), 3U);
  EXPECT_EQ(made.storage(), nullptr);
  EXPECT_EQ(made.slice(1, 2).shape(), (tensor_shape{1, 0, 2}));
  EXPECT_TRUE(made.clone().is_contiguous());
  EXPECT_TRUE(equal(made, made.reshape({0}).reshape({3, 0, 2})));
}

TEST(Tensor, FromCopiesValuesInRowMajorOrder) {
  const std::vector<std::int32_t> values = {1, 2, 3, 4, 5, 6};
  const auto made = tensor::from(values, {2, 3});
  EXPECT_EQ(made.at<std::int32_t>(1, 0), 4);
  EXPECT_NE(made.data<std::int32_t>(), values.data());
  EXPECT_EQ(made.to_vector<std::int32_t>(), values);
  EXPECT_EQ(tensor::from(values).shape(), tensor_shape{6});
  EXPECT_EQ(tensor::from({1.0F, 2.0F}, {2, 1}).at<float>(1, 0), 2.0F);
}

TEST(Tensor, IsEmptyWhenMovedFrom) {
  auto made = tensor::ones<double>({4}, memory::local);
  auto taken = std::move(made);
  EXPECT_EQ(made.size(), 0U);  // NOLINT(bugprone-use-after-move): it says what it is then
  EXPECT_EQ(made.dtype(), dtype::f32);
  EXPECT_EQ(made.storage(), nullptr);
  EXPECT_EQ(made.data(), nullptr);
  made.fill(1.0F);
  made = std::move(taken);
  EXPECT_EQ(made.size(), 4U);
  EXPECT_FALSE(taken.is_shared());  // NOLINT(bugprone-use-after-move)
  auto& same = made;
  made = std::move(same);
  EXPECT_EQ(made.at<double>(3), 1.0);
}

TEST(Tensor, FromRefusesAnotherNumberOfValues) {
  expect_refused([] { ignore(tensor::from({1, 2, 3}, {2, 2})); }, "(2, 2)", "3 values", "4 elements");
}

TEST(Tensor, ArangeCountsUpDownAndInFractions) {
  EXPECT_THAT(tensor::arange<std::int64_t>(4).to_vector<std::int64_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT((tensor::arange<std::int8_t>(120, 127, 3).to_vector<std::int8_t>()), ElementsAre(120, 123, 126));
  EXPECT_THAT((tensor::arange<int>(3, -4, -3).to_vector<int>()), ElementsAre(3, 0, -3));
  EXPECT_THAT((tensor::arange(0.0, 1.0, 0.25).to_vector<double>()), ElementsAre(0, 0.25, 0.5, 0.75));
  EXPECT_EQ((tensor::arange<int>(3, 3).size()), 0U);
  EXPECT_EQ((tensor::arange<int>(3, 1).size()), 0U);
  EXPECT_THAT((tensor::arange<std::uint64_t>(UINT64_MAX - 2, UINT64_MAX).to_vector<std::uint64_t>()),
              ElementsAre(UINT64_MAX - 2, UINT64_MAX - 1));
}

TEST(Tensor, ArangeEndsBeforeItsLastAlsoWhereThatIsRounded) {
  EXPECT_EQ((tensor::arange(1.0, 1.3, 0.1).size()), 3U);
  EXPECT_EQ((tensor::arange(1.3, 1.0, -0.1).size()), 3U);
  EXPECT_EQ((tensor::arange(16777214.0F, 16777218.0F, 0.5F).size()), 8U);
  const auto wide = tensor::arange(-1e308, 1e308, 1e307).to_vector<double>();
  ASSERT_EQ(wide.size(), 20U);
  EXPECT_NEAR(wide.back(), 9e307, 1e293);
}

TEST(Tensor, ArangeRefusesWhatDoesNotEnd) {
  expect_refused([] { ignore(tensor::arange<int>(0, 1, 0)); }, "step");
  expect_refused([] { ignore(tensor::arange(0.0, 1.0, 0.0)); }, "step");
  expect_refused([] { ignore(tensor::arange(0.0, 1.0 / 0.0)); }, "finite");
  expect_refused([] { ignore(tensor::arange(0.0, 1.0, 1.0 / 0.0)); }, "finite");
  expect_refused([] { ignore(tensor::arange<std::int64_t>(INT64_MIN, INT64_MAX)); }, "shape");
}

TEST(Tensor, ShapesBeyondAllAddressesAreRefused) {
  const std::ptrdiff_t negative = -3;
  expect_refused([&] { ignore(tensor::empty<float>({static_cast<std::size_t>(negative), 2})); }, "negative");
  expect_refused([] { ignore(tensor::empty<float>({std::size_t{1} << 61U, 2})); }, "f32", "(2305843009213693952, 2)");
  expect_refused([] { ignore(tensor::empty<double>({std::size_t{1} << 32U, std::size_t{1} << 31U})); }, "f64");
  expect_refused([] { ignore(tensor::empty<double>({0, std::size_t{1} << 62U, 8})); }, "f64");
  expect_refused([] { ignore(tensor_shape{1, 2, 3, 4, 5, 6, 7, 8, 9}); }, "9 dimensions", "at most 8");
}

TEST(Tensor, TheErrorNamesTheAskedAndTheRealDtype) {
  const auto made = tensor::zeros<float>({2});
  expect_refused([&] { ignore(made.data<double>()); }, "f64", "f32", "(2,)");
  expect_refused([&] { ignore(made.span<int>()); }, "i32");
  expect_refused([&] { ignore(made.at<std::int64_t>(0)); }, "i64");
  expect_refused([&] { ignore(made.to_vector<f16>()); }, "f16");
}

TEST(Tensor, ElementsAreFoundByTheirIndices) {
  const auto made = counted({2, 3, 4});
  EXPECT_EQ(made.at<std::int32_t>(1, 2, 3), 23);
  made.at<std::int32_t>(0, 1, 2) = 100;
  EXPECT_EQ(made.span<std::int32_t>()[6], 100);
  expect_refused([&] { ignore(made.at<std::int32_t>(0, 3, 0)); }, "(0, 3, 0)", "(2, 3, 4)");
  expect_refused([&] { ignore(made.at<std::int32_t>(0, -1, 0)); }, "index");
  expect_refused([&] { ignore(made.at<std::int32_t>(0, 1)); }, "2 dimensions", "has 3");
  expect_refused([&] { ignore(made.item<std::int32_t>()); }, "one element");
}

TEST(Tensor, AViewReadsAndWritesTheElements) {
  const auto made = counted({4, 6}).slice(1, 5, 1);
  const auto view = made.view<std::int32_t, 2>();
  EXPECT_EQ(view.size(1), 4U);
  EXPECT_EQ(view.stride(0), 6);
  EXPECT_EQ(view(2, 3), 16);
  view(2, 3) = -1;
  EXPECT_EQ(made.at<std::int32_t>(2, 3), -1);
  expect_refused([&] { ignore(made.view<std::int32_t, 3>()); }, "3 dimensions", "(4, 4)");
}

TEST(Tensor, ConstElementsCanBeAskedFor) {
  const auto made = counted({24});
  const std::span<const std::int32_t> all = made.span<const std::int32_t>();
  EXPECT_EQ(all[23], 23);
}

TEST(Tensor, ASliceMayLeaveSomeOut) {
  const auto made = tensor::arange<std::int32_t>(21).reshape({7, 3});
  const auto part = made.slice(1, 7, 0, 3);
  EXPECT_EQ(part.to_vector<std::int32_t>(), (std::vector{3, 4, 5, 12, 13, 14}));
  EXPECT_EQ(made.slice(1, 7, 0, 2).slice(1, 3, 0, 2).to_vector<std::int32_t>(), (std::vector{9, 10, 11}));
  EXPECT_EQ(made.slice(0, 3, 1, 2).shape(), (tensor_shape{7, 2}));
  EXPECT_EQ(made.slice(2, 2, 0, 5).shape(), (tensor_shape{0, 3}));
  EXPECT_EQ(made.slice(2, 3, 0, 99).to_vector<std::int32_t>(), (std::vector{6, 7, 8}));
  EXPECT_EQ(made.slice(0, 7, 0, ~std::size_t{0}).rows(), 1U);
  expect_refused([&] { static_cast<void>(made.slice(0, 7, 0, 0)); }, "by 0", "0 < step");
}

TEST(Tensor, ItsDimensionsCanBePutInAnotherOrder) {
  const auto made = counted({2, 3, 4});
  const auto turned = made.permute({2, 0, 1});
  EXPECT_EQ(turned.shape(), (tensor_shape{4, 2, 3}));
  EXPECT_EQ(turned.at<std::int32_t>(3, 1, 2), made.at<std::int32_t>(1, 2, 3));
  EXPECT_FALSE(turned.is_contiguous());
  EXPECT_EQ(turned.contiguous().permute({1, 2, 0}).to_vector<std::int32_t>(), made.to_vector<std::int32_t>());
  turned.at<std::int32_t>(0, 0, 0) = 99;
  EXPECT_EQ(made.at<std::int32_t>(0, 0, 0), 99);
  EXPECT_EQ(made.transpose().shape(), (tensor_shape{4, 3, 2}));
  EXPECT_EQ(tensor::arange<std::int32_t>(6).reshape({2, 3}).transpose().to_vector<std::int32_t>(),
            (std::vector{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(tensor::zeros<float>({}).transpose().dimensions(), 0U);
}

TEST(Tensor, AnOrderThatIsNoneIsRefused) {
  const auto made = counted({2, 3, 4});
  for (const auto& order :
       {tensor_shape{0, 1}, tensor_shape{0, 1, 1}, tensor_shape{0, 1, 3}, tensor_shape{0, 1, 2, 3}}) {
    expect_refused([&] { static_cast<void>(made.permute(order)); }, "order", "(2, 3, 4)", "each of them once");
  }
}

}  // namespace
}  // namespace muster::tensor_test
