// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_compare.hpp>

#include <cmath>
#include <limits>
#include <sstream>

#include "device_support.hpp"

namespace muster::tensor_elements_test {
namespace {

using test::expect_refused;
using testing::ElementsAre;

template <class T>
void ignore(const T& /*value*/) {}

// 0 to 23
tensor counted(const tensor_shape& shape) { return tensor::arange<std::int32_t>(24).reshape(shape); }
std::vector<std::int32_t> values_of(const tensor& what) { return what.to_vector<std::int32_t>(); }

TEST(TensorSlice, AlongAnInnerDimensionIsNotContiguous) {
  const auto part = counted({4, 6}).slice(4, 6, 1);
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_THAT(values_of(part), ElementsAre(4, 5, 10, 11, 16, 17, 22, 23));
  expect_refused([&] { ignore(part.span<std::int32_t>()); }, "contiguous()", "(6, 1)");
}

TEST(TensorSlice, OutOfRangeIsRefused) {
  const auto made = counted({4, 6});
  expect_refused([&] { ignore(made.slice(0, 5)); }, "slice 0 to 5", "(4, 6)");
  expect_refused([&] { ignore(made.slice(3, 2)); }, "slice 3 to 2");
  expect_refused([&] { ignore(made.slice(0, 1, 2)); }, "dimension 2");
  expect_refused([&] { ignore(tensor::zeros<float>({}).slice(0, 0)); }, "dimension 0", "()");
  EXPECT_EQ(made.slice(4, 4).size(), 0U);
}

TEST(TensorRow, HasOneDimensionLess) {
  const auto row = counted({2, 3, 4}).row(1);
  EXPECT_EQ(row.shape(), (tensor_shape{3, 4}));
  EXPECT_EQ(row.at<std::int32_t>(0, 0), 12);
  EXPECT_EQ(row.row(2).row(3).item<std::int32_t>(), 23);
  expect_refused([&] { ignore(row.row(3)); }, "row 3", "(3, 4)");
}

TEST(TensorReshape, KeepsOrderAndElements) {
  const auto made = counted({4, 6});
  const auto other = made.reshape({2, 2, 6, 1});
  EXPECT_EQ(other.data(), made.data());
  EXPECT_EQ(other.at<std::int32_t>(1, 0, 5, 0), 17);
  EXPECT_EQ(made.slice(1, 2, 1).slice(0, 1).reshape({}).item<std::int32_t>(), 1);
}

TEST(TensorReshape, ToAnotherNumberOfElementsIsRefused) {
  expect_refused([] { ignore(counted({24}).reshape({5, 5})); }, "(24,)", "24 elements", "(5, 5)", "25");
  expect_refused([] { ignore(counted({4, 6}).slice(0, 3, 1).reshape({12})); }, "contiguous()");
}

TEST(TensorClone, IsContiguousAndItsOwn) {
  const auto part = counted({4, 6}).slice(4, 6, 1);
  for (const auto where : {memory::shared, memory::local}) {
    const auto copy = part.clone(where);
    EXPECT_TRUE(copy.is_contiguous());
    EXPECT_TRUE(equal(copy, part));
    copy.fill(0);
    EXPECT_EQ(part.at<std::int32_t>(0, 0), 4);
  }
}

TEST(TensorContiguous, CopiesOnlyWhatIsNot) {
  const auto made = counted({4, 6});
  EXPECT_EQ(made.contiguous().data(), made.data());
  EXPECT_THAT(values_of(made.slice(0, 1, 1).contiguous()), ElementsAre(0, 6, 12, 18));
}

TEST(TensorFill, ConvertsToTheDtype) {
  const auto half = tensor::empty<f16>({2});
  half.fill(0.1);
  EXPECT_EQ(half.at<f16>(1).bits(), 0x2e66U);
  const auto bytes = tensor::empty<std::uint8_t>({2});
  bytes.fill(255.0);
  EXPECT_EQ(bytes.at<std::uint8_t>(1), 255);
  const auto complex = tensor::empty<std::complex<double>>({2});
  complex.fill(3);
  EXPECT_EQ(complex.at<std::complex<double>>(0), 3.0);
}

TEST(TensorFill, RefusesWhatTheDtypeCannotHold) {
  const auto bytes = tensor::zeros<std::uint8_t>({2});
  expect_refused([&] { bytes.fill(256); }, "u8", "256");
  expect_refused([&] { bytes.fill(-1); }, "-1");
  expect_refused([&] { bytes.fill(0.5); }, "0.5");
  expect_refused([&] { bytes.fill(std::nan("")); }, "nan");
  expect_refused([&] { tensor::zeros<std::int64_t>({1}).fill(0x1p63); }, "i64");
  expect_refused([&] { tensor::zeros<bool>({1}).fill(2); }, "bool");
  expect_refused([&] { tensor::zeros<float>({1}).fill(std::complex<float>(1, 1)); }, "f32", "(1,1)");
  EXPECT_TRUE(equal(bytes, tensor::zeros<std::uint8_t>({2})));
}

TEST(TensorCopy, FromAndToSpansAndTensors) {
  const auto made = tensor::zeros<std::int32_t>({4, 6});
  const auto part = made.slice(1, 3, 1);
  part.copy_from(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(made.at<std::int32_t>(3, 2), 8);
  EXPECT_EQ(made.at<std::int32_t>(3, 3), 0);
  std::vector<std::int32_t> out(8);
  part.copy_to(std::span(out));
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  made.slice(3, 5, 1).copy_from(part);
  EXPECT_EQ(made.at<std::int32_t>(3, 4), 8);
}

TEST(TensorCopy, OfAnotherShapeTypeOrLengthIsRefused) {
  const auto made = counted({4, 6});
  expect_refused([&] { made.copy_from(counted({6, 4})); }, "(6, 4)", "(4, 6)");
  expect_refused([&] { made.copy_from(tensor::zeros<float>({4, 6})); }, "f32", "i32");
  expect_refused([&] { made.copy_from(std::vector<std::int32_t>(23)); }, "23 values", "24");
  expect_refused([&] { made.copy_from(std::vector<double>(24)); }, "f64");
  std::vector<std::int32_t> out(25);
  expect_refused([&] { made.copy_to(std::span(out)); }, "25 values");
}

TEST(TensorOver, SeesMemoryOfSomebodyElseAndGivesItBack) {
  std::array<float, 6> theirs = {1, 2, 3, 4, 5, 6};
  int given_back = 0;
  {
    const std::shared_ptr<void> keeper(theirs.data(), [&](void*) { ++given_back; });
    const auto all = tensor::over(storage::over(std::as_writable_bytes(std::span(theirs)), keeper), dtype::f32, {2, 3});
    const auto column = all.slice(2, 3, 1);
    column.fill(0);
    EXPECT_EQ(theirs[5], 0.0F);
    EXPECT_FALSE(all.is_shared());
  }
  EXPECT_EQ(given_back, 1);
}

TEST(TensorOver, GoesBackwardsAndStandsStill) {
  std::array<std::int32_t, 6> theirs = {1, 2, 3, 4, 5, 6};
  const auto bytes = storage::over(std::as_writable_bytes(std::span(theirs)), nullptr);
  EXPECT_THAT(values_of(tensor::over(bytes, dtype::i32, {3}, {-2}, 20)), ElementsAre(6, 4, 2));
  EXPECT_THAT(values_of(tensor::over(bytes, dtype::i32, {2, 2}, {0, 1}, 0)), ElementsAre(1, 2, 1, 2));
}

TEST(TensorOver, PastItsMemoryIsRefused) {
  const auto bytes = storage::allocate(64, memory::local);
  const auto make = [&](const tensor_shape& shape, const tensor_strides& strides, std::size_t offset) {
    return [=] { ignore(tensor::over(bytes, dtype::i32, shape, strides, offset)); };
  };
  expect_refused(make({17}, {1}, 0), "(17,)", "64 bytes");
  expect_refused(make({16}, {1}, 4), "byte 4");
  expect_refused(make({2}, {16}, 0), "strides (16,)");
  expect_refused(make({2}, {-1}, 0), "strides (-1,)");
  expect_refused(make({2}, {PTRDIFF_MAX}, 0), "64 bytes");
  expect_refused(make({2}, {PTRDIFF_MIN}, 0), "64 bytes");
  expect_refused(make({2, 2, 2}, {PTRDIFF_MIN / 4, PTRDIFF_MIN / 4, PTRDIFF_MIN / 4}, 0), "64 bytes");
  expect_refused(make({1}, {1}, SIZE_MAX), "64 bytes");
  expect_refused(make({1}, {1}, 2), "multiples of 4");
  expect_refused(make({1, 1}, {1}, 0), "1 strides", "2 dimensions");
  expect_refused([] { ignore(tensor::over(nullptr, dtype::f32, {1})); }, "0 bytes");
}

TEST(Equal, ComparesTypeShapeAndElements) {
  EXPECT_TRUE(equal(counted({4, 6}), counted({4, 6})));
  EXPECT_FALSE(equal(counted({4, 6}), counted({6, 4})));
  EXPECT_FALSE(equal(counted({4, 6}), tensor::arange<std::int64_t>(24).reshape({4, 6})));
  EXPECT_TRUE(equal(counted({4, 6}).slice(1, 3, 1), counted({4, 6}).slice(1, 3, 1).clone()));
  const auto large = tensor::full<std::int64_t>({1}, INT64_MAX);
  EXPECT_FALSE(equal(large, tensor::full<std::int64_t>({1}, INT64_MAX - 1)));
  const auto nan = tensor::full<float>({1}, std::nanf(""));
  EXPECT_FALSE(equal(nan, nan));
}

TEST(AllClose, AllowsSmallDifferences) {
  const auto ones = tensor::ones<double>({3});
  EXPECT_TRUE(all_close(tensor::full({3}, 1.000001), ones));
  EXPECT_FALSE(all_close(tensor::full({3}, 1.0001), ones));
  EXPECT_TRUE(all_close(tensor::full({3}, 1.0001), ones, {.relative = 1e-3}));
  const auto infinite = tensor::full({2}, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(all_close(infinite, infinite));
  EXPECT_FALSE(all_close(tensor::ones<double>({2}), infinite));
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
  const auto nan = tensor::full({1}, std::nanf(""));
  EXPECT_FALSE(compare(nan, comparison::equal, nan).item<bool>());
  EXPECT_TRUE(compare(nan, comparison::not_equal, nan).item<bool>());
  EXPECT_FALSE(compare(nan, comparison::less_equal, nan).item<bool>());
  EXPECT_TRUE(all(nan)) << "not zero";
}

TEST(Compare, WhatCannotBeComparedIsRefused) {
  const auto refused = [](const tensor& a, comparison how, const tensor& b, const auto&... parts) {
    expect_refused([&] { ignore(compare(a, how, b)); }, parts...);
  };
  refused(tensor::zeros<int>({2}), comparison::less, tensor::zeros<int>({3}), "(2,)", "(3,)", "less");
  refused(tensor::zeros<int>({2}), comparison::equal, tensor::zeros<float>({2}), "i32", "f32", "convert");
  refused(tensor::zeros(dtype::c64, {2}), comparison::greater_equal, tensor::zeros(dtype::c64, {2}), "no order");
}

TEST(AnyAndAll, OfAnEmptyTensor) {
  const auto none = tensor::zeros<int>({0, 3});
  EXPECT_FALSE(any(none));
  EXPECT_TRUE(all(none));
  EXPECT_EQ(count_nonzero(none), 0U);
}

std::string printed(const tensor& what) {
  std::ostringstream out;
  out << what;
  return out.str();
}

TEST(TensorPrint, IsShapedByBrackets) {
  EXPECT_EQ(printed(tensor::arange<int>(8, 12).reshape({2, 2})), "tensor([[ 8,  9],\n        [10, 11]], i32)");
  EXPECT_EQ(printed(tensor::zeros<bool>({2, 1, 1})), "tensor([[[false]],\n\n        [[false]]], bool)");
  EXPECT_EQ(printed(tensor::full({}, 0.5F)), "tensor(0.5, f32)");
  EXPECT_EQ(printed(tensor::full({1}, std::complex<double>(1, -2))), "tensor([1.-2.j], c128)");
  EXPECT_EQ(printed(tensor::full<std::uint8_t>({1}, 65)), "tensor([65], u8)");
  EXPECT_EQ(printed(tensor()), "tensor([], f32, shape (0,))");
}

// dlpack_numpy.py compares more of them with NumPy's own.
TEST(TensorPrint, NumbersAreWrittenAsNumPyDoes) {
  const auto row = [](auto... values) {
    auto made = tensor::empty<std::common_type_t<decltype(values)...>>({sizeof...(values)});
    std::size_t index = 0;
    ((made.slice(index, index + 1).fill(values), ++index), ...);
    return printed(made);
  };
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
  constexpr auto infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(row(1.0, 2.5, -3.25), "tensor([ 1.  ,  2.5 , -3.25], f64)");
  EXPECT_EQ(row(0.1F, 1.0F / 3), "tensor([0.1       , 0.33333334], f32)");
  EXPECT_EQ(row(f16(0.1F), f16(3.0F)), "tensor([0.1, 3. ], f16)");
  EXPECT_EQ(row(bf16(0.1F), bf16(300.0F)), "tensor([1.e-01, 3.e+02], bf16)");
  EXPECT_EQ(row(1e-5, 123456.0), "tensor([1.00000e-05, 1.23456e+05], f64)");
  EXPECT_EQ(row(nan, 1.5, -infinite), "tensor([ nan,  1.5, -inf], f64)");
  EXPECT_EQ(row(1e100, 1.0), "tensor([1.e+100, 1.e+000], f64)");
  EXPECT_EQ(row(-0.0, 0.0), "tensor([-0.,  0.], f64)");
}

TEST(TensorPrint, AbbreviatesWhatIsLarge) {
  EXPECT_EQ(printed(tensor::arange<int>(2000)),
            "tensor([   0,    1,    2, ..., 1997, 1998, 1999], i32, shape (2000,))");
  EXPECT_THAT(printed(tensor::zeros<std::int8_t>({1000, 2})),
              testing::StartsWith("tensor([[0, 0],\n        [0, 0],\n        [0, 0],\n        ...,\n        [0, 0],"));
}

}  // namespace
}  // namespace muster::tensor_elements_test
