// SPDX-License-Identifier: BSL-1.0
#pragma once

// What tensors do wherever their elements lie: on_host of places.hpp, on_gpu of gpu_fixture.hpp.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>

#include "device_support.hpp"

namespace muster::test {

template <class Place>
class TensorConformance : public Place::fixture {
protected:
  static constexpr device where = Place::where;

  // 0 to 23
  static tensor counted(const tensor_shape& shape) { return tensor::arange<std::int32_t>(24).reshape(shape).to(where); }
  static std::vector<std::int32_t> elements(const tensor& of) { return of.to(device::cpu()).to_vector<std::int32_t>(); }
};
TYPED_TEST_SUITE_P(TensorConformance);

TYPED_TEST_P(TensorConformance, HasThePlaceShapeAndTypeAskedFor) {
  const auto made = tensor::zeros<double>({3, 4, 5}, TypeParam::where);
  EXPECT_EQ(made.device(), TypeParam::where);
  EXPECT_EQ(made.dtype(), dtype::f64);
  EXPECT_EQ(made.shape(), (tensor_shape{3, 4, 5}));
  EXPECT_EQ(made.strides(), (tensor_strides{20, 5, 1}));
  EXPECT_EQ(made.size(), 60U);
  EXPECT_EQ(made.nbytes(), 480U);
  EXPECT_EQ(made.rows(), 3U);
  EXPECT_TRUE(made.is_contiguous());
  EXPECT_EQ(made.slice(1, 3, 1).device(), TypeParam::where);
  EXPECT_EQ(made.clone().device(), TypeParam::where);
}

TYPED_TEST_P(TensorConformance, ZerosAreZeroEvenInMemoryThatWasUsedBefore) {
  static_cast<void>(tensor::full<std::int32_t>({100}, -1, TypeParam::where));
  EXPECT_TRUE(equal(tensor::zeros<std::int32_t>({100}, TypeParam::where),
                    tensor::full<std::int32_t>({100}, 0, TypeParam::where)));
}

TYPED_TEST_P(TensorConformance, OfAnEmptyShapeHasNoElements) {
  const auto made = tensor::ones<float>({3, 0, 2}, TypeParam::where);
  EXPECT_EQ(made.device(), TypeParam::where);
  EXPECT_EQ(made.size(), 0U);
  EXPECT_EQ(made.rows(), 3U);
  EXPECT_EQ(made.slice(1, 2).shape(), (tensor_shape{1, 0, 2}));
  EXPECT_TRUE(made.clone().is_contiguous());
  EXPECT_TRUE(equal(made, made.reshape({0}).reshape({3, 0, 2})));
}

TYPED_TEST_P(TensorConformance, WithoutDimensionsHasOneElement) {
  const auto made = tensor::full<float>({}, 2.5F, TypeParam::where);
  EXPECT_EQ(made.dimensions(), 0U);
  EXPECT_EQ(made.size(), 1U);
  EXPECT_EQ(made.to(device::cpu()).template item<float>(), 2.5F);
  expect_refused([&] { static_cast<void>(made.rows()); }, "no rows");
}

TYPED_TEST_P(TensorConformance, ShapesBeyondAllAddressesAreRefused) {
  const auto make = [](const tensor_shape& shape) {
    static_cast<void>(tensor::empty(dtype::f64, shape, TypeParam::where));
  };
  const std::ptrdiff_t negative = -3;
  expect_refused([&] { make({static_cast<std::size_t>(negative), 2}); }, "negative");
  expect_refused([&] { make({std::size_t{1} << 60U, 2}); }, "f64", "(1152921504606846976, 2)");
  expect_refused([&] { make({0, std::size_t{1} << 62U, 8}); }, "f64");
}

TYPED_TEST_P(TensorConformance, ASliceSharesTheElements) {
  const auto made = this->counted({6, 4});
  const auto part = made.slice(2, 5);
  EXPECT_EQ(part.shape(), (tensor_shape{3, 4}));
  EXPECT_TRUE(part.is_contiguous());
  part.fill(-1);
  const auto now = this->elements(made);
  EXPECT_EQ(now[7], 7);
  EXPECT_EQ(now[8], -1);
  EXPECT_EQ(now[19], -1);
  EXPECT_EQ(now[20], 20);
}

TYPED_TEST_P(TensorConformance, ASliceMayLeaveSomeOut) {
  const auto made = tensor::arange<std::int32_t>(21).reshape({7, 3}).to(TypeParam::where);
  EXPECT_EQ(this->elements(made.slice(1, 7, 0, 3)), (std::vector{3, 4, 5, 12, 13, 14}));
  EXPECT_EQ(this->elements(made.slice(1, 7, 0, 2).slice(1, 3, 0, 2)), (std::vector{9, 10, 11}));
  EXPECT_EQ(made.slice(0, 3, 1, 2).shape(), (tensor_shape{7, 2}));
  EXPECT_EQ(this->elements(made.slice(2, 3, 0, 99)), (std::vector{6, 7, 8}));
  expect_refused([&] { static_cast<void>(made.slice(0, 7, 0, 0)); }, "by 0", "0 < step");
}

TYPED_TEST_P(TensorConformance, ASliceKeepsTheMemory) {
  const auto part = this->counted({6, 4}).slice(5, 6);
  EXPECT_THAT(this->elements(part), testing::ElementsAre(20, 21, 22, 23));
}

TYPED_TEST_P(TensorConformance, ItsDimensionsCanBePutInAnotherOrder) {
  const auto made = this->counted({2, 3, 4});
  const auto turned = made.permute({2, 0, 1});
  EXPECT_EQ(turned.shape(), (tensor_shape{4, 2, 3}));
  EXPECT_FALSE(turned.is_contiguous());
  EXPECT_EQ(turned.to(device::cpu()).template at<std::int32_t>(3, 1, 2), 23);
  EXPECT_EQ(this->elements(turned.contiguous().permute({1, 2, 0})), this->elements(made));
  turned.slice(0, 1).fill(99);
  EXPECT_EQ(this->elements(made)[20], 99);
  EXPECT_EQ(this->elements(made)[21], 21);
  for (const auto& order : {tensor_shape{0, 1}, tensor_shape{0, 1, 1}, tensor_shape{0, 1, 3}}) {
    expect_refused([&] { static_cast<void>(made.permute(order)); }, "order", "(2, 3, 4)", "each of them once");
  }
}

TYPED_TEST_P(TensorConformance, EveryDtypeIsCopiedFilledAndConverted) {
  for (std::size_t number = 0; number < dtype_count; ++number) {
    const auto type = static_cast<dtype>(number);
    const auto here = convert(tensor::arange<std::int32_t>(100), type);
    const auto there = here.to(TypeParam::where);
    EXPECT_TRUE(equal(there.to(device::cpu()), here)) << type;
    EXPECT_TRUE(equal(there.clone(), here)) << type;
    EXPECT_TRUE(equal(convert(tensor::arange<std::int32_t>(100).to(TypeParam::where), type), here)) << type;
    EXPECT_FALSE(any(tensor::zeros(type, {100}, TypeParam::where))) << type;
  }
}

TYPED_TEST_P(TensorConformance, ArithmeticIsDoneInPlace) {
  const auto made = tensor::arange<double>(10).to(TypeParam::where);
  accumulate(made, tensor::ones<double>({10}, TypeParam::where));
  scale(made, 2);
  axpy(-1, tensor::arange<double>(10).to(TypeParam::where), made);
  for (std::size_t each = 0; each < 10; ++each) {
    EXPECT_EQ(made.to(device::cpu()).template at<double>(each), static_cast<double>(each) + 2);
  }
  accumulate(made, made);
  EXPECT_EQ(made.to(device::cpu()).template at<double>(9), 22) << "of itself";
  expect_refused([&] { accumulate(made, tensor::ones<double>({9}, TypeParam::where)); });
}

REGISTER_TYPED_TEST_SUITE_P(TensorConformance, HasThePlaceShapeAndTypeAskedFor,
                            ZerosAreZeroEvenInMemoryThatWasUsedBefore, OfAnEmptyShapeHasNoElements,
                            WithoutDimensionsHasOneElement, ShapesBeyondAllAddressesAreRefused, ASliceSharesTheElements,
                            ASliceMayLeaveSomeOut, ASliceKeepsTheMemory, ItsDimensionsCanBePutInAnotherOrder,
                            EveryDtypeIsCopiedFilledAndConverted, ArithmeticIsDoneInPlace);

}  // namespace muster::test
