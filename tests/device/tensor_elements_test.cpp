// SPDX-License-Identifier: BSL-1.0
// What tensors do with their elements.
#include <muster/device/tensor.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <span>
#include <vector>

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

TEST(TensorBroadcastTo, RepeatsWhatIsOneAndAddsDimensionsInFront) {
  const auto row = tensor::from<int>({1, 2, 3}, {3});
  EXPECT_THAT(values_of(row.broadcast_to({2, 3})), ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(values_of(row.reshape({3, 1}).broadcast_to({3, 2})), ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_THAT(values_of(counted({4, 6}).slice(5, 6, 1).broadcast_to({1, 4, 2})),
              ElementsAre(5, 5, 11, 11, 17, 17, 23, 23));
  EXPECT_EQ(tensor::full({}, 7).broadcast_to({0, 5}).shape(), (tensor_shape{0, 5}));
  EXPECT_EQ(row.broadcast_to({3}).strides(), row.strides());
  EXPECT_EQ(tensor().broadcast_to({2, 0}).size(), 0U);
}

TEST(TensorBroadcastTo, RepeatedElementsAreTheSameOnes) {
  const auto one = tensor::zeros<int>({});
  const auto many = one.broadcast_to({2, 2});
  many.slice(1, 2).fill(5);
  EXPECT_EQ(one.item<int>(), 5);
  EXPECT_EQ(many.at<int>(0, 0), 5);
}

TEST(TensorBroadcastTo, AShapeThatDoesNotHoldItIsRefused) {
  const auto made = counted({4, 6});
  expect_refused([&] { ignore(made.broadcast_to({6, 4})); }, "(4, 6)", "(6, 4)", "broadcast");
  expect_refused([&] { ignore(made.broadcast_to({6})); }, "(6,)");
  expect_refused([&] { ignore(made.broadcast_to({1, 6})); }, "(1, 6)");
  expect_refused([&] { ignore(made.broadcast_to({4, 6, 1})); }, "(4, 6, 1)");
  expect_refused([&] { ignore(tensor::zeros<int>({1}).broadcast_to({SIZE_MAX})); }, "must fit");
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

// Fills so many elements, beginning so many bytes into `room`: these and no others may change.
template <class T>
void expect_fills(std::vector<std::byte>& room, std::size_t first_byte, std::size_t count, T value) {
  const auto of_the_run = [&](std::size_t byte) { return byte >= first_byte && byte < first_byte + count * sizeof(T); };
  std::ranges::fill(room, std::byte{0xee});
  const auto run = std::span(room).subspan(first_byte, count * sizeof(T));
  tensor::over(storage::over(run, nullptr), dtype_of<T>, {count}).fill(value);
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  for (std::size_t byte = 0; byte < room.size(); ++byte) {
    const auto expected = of_the_run(byte) ? bytes[(byte - first_byte) % sizeof(T)] : std::byte{0xee};
    ASSERT_EQ(room[byte], expected) << "byte " << byte << " of " << count << " elements from " << first_byte;
  }
}

template <class T>
void expect_fills_short_runs(T value) {
  constexpr std::size_t most = 150;
  std::vector<std::byte> room(4 * alignof(T) + most * sizeof(T) + 64);
  for (std::size_t first = 0; first < 4 * alignof(T); first += alignof(T)) {
    for (std::size_t count = 0; count <= most; ++count) expect_fills(room, first, count, value);
  }
}

TEST(TensorFill, FillsRunsOfAnyLengthFromAnyPlaceAndNothingElse) {
  expect_fills_short_runs(std::uint8_t{7});
  expect_fills_short_runs(f16(0.1F));
  expect_fills_short_runs(1.1F);
  expect_fills_short_runs(1.1);
  expect_fills_short_runs(std::complex<double>(1.1, -2.2));
}

TEST(TensorFill, FillsLongRunsFromAnyPlaceAndNothingElse) {
  constexpr std::size_t bytes = std::size_t{8} << 20U;
  std::vector<std::byte> room(bytes + 4096);
  expect_fills(room, 0, bytes, std::uint8_t{7});
  expect_fills(room, 1, bytes + 67, std::uint8_t{7});
  expect_fills(room, 4, bytes / 4 + 3, 1.1F);
  expect_fills(room, 0, bytes / 16, std::complex<double>(1.1, -2.2));
  expect_fills(room, 8, bytes / 16 + 5, std::complex<double>(1.1, -2.2));
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

}  // namespace
}  // namespace muster::tensor_elements_test
