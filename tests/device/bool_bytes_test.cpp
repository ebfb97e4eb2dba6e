// SPDX-License-Identifier: BSL-1.0
// Bools whose bytes others have written: any but 0 is true.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/dlpack.hpp>
#include <muster/serialize/archive.hpp>

#include "device_support.hpp"

namespace muster::bool_bytes_test {
namespace {

using test::expect_refused;
using testing::ElementsAre;
using testing::ElementsAreArray;

using bytes = std::vector<std::uint8_t>;

// A tensor over these very bytes.
tensor bools_over(bytes& values) {
  const std::span room(reinterpret_cast<std::byte*>(values.data()), values.size());
  return tensor::over(storage::over(room, nullptr), dtype::boolean, {values.size()});
}

bytes bytes_of(const tensor& what) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(what.data());
  return {first, first + what.nbytes()};
}

// More than a vector's, with some bytes of each kind.
bytes many() {
  bytes values(200);
  for (std::size_t index = 0; index < values.size(); ++index) values[index] = static_cast<std::uint8_t>(index * 37 % 5);
  return values;
}
bytes truths_of(const bytes& values) {
  bytes truths;
  for (const auto each : values) truths.push_back(each != 0 ? 1 : 0);
  return truths;
}

class BoolBytes : public testing::Test {
protected:
  bytes values_ = {2, 0, 255};
  tensor given_ = bools_over(values_);
};

TEST_F(BoolBytes, AreCountedAndLookedAtAsTruths) {
  EXPECT_EQ(count_nonzero(given_), 2U);
  EXPECT_TRUE(any(given_));
  EXPECT_FALSE(all(given_));
  EXPECT_TRUE(all(given_.slice(0, 3, 0, 2)));
  EXPECT_FALSE(any(given_.slice(1, 2)));
}

TEST_F(BoolBytes, AreEqualToOtherTruths) {
  const auto truths = tensor::from<bool>({true, false, true}, {3});
  EXPECT_TRUE(equal(given_, truths));
  EXPECT_TRUE(all_close(given_, truths));
  EXPECT_TRUE(all(compare(given_, comparison::equal, truths)));
  EXPECT_TRUE(all(compare(given_, comparison::less_equal, truths)));
  EXPECT_TRUE(all(is_close(truths, given_)));
  EXPECT_EQ(bytes_of(compare(given_, comparison::equal, true)), (bytes{1, 0, 1}));
}

TEST_F(BoolBytes, BecomeOnesAsNumbers) {
  EXPECT_THAT(convert(given_, dtype::i64).to_vector<std::int64_t>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(convert(given_, dtype::u8).to_vector<std::uint8_t>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(convert(given_, dtype::f32).to_vector<float>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(convert(given_, dtype::f16).to_vector<f16>(), ElementsAre(f16(1), f16(0), f16(1)));
  EXPECT_THAT(convert(given_, dtype::c128).to_vector<std::complex<double>>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(convert(given_.slice(0, 3, 0, 2), dtype::i32).to_vector<std::int32_t>(), ElementsAre(1, 1));
  auto all = many();
  EXPECT_EQ(convert(bools_over(all), dtype::u8).to_vector<std::uint8_t>(), truths_of(many()));
}

TEST_F(BoolBytes, AreJoinedAsTruths) {
  for (const auto op : {element_op::sum, element_op::max}) {
    bytes into = {0, 0, 4};
    accumulate(bools_over(into), given_, op);
    EXPECT_EQ(into, (bytes{1, 0, 1}));
  }
  for (const auto op : {element_op::prod, element_op::min}) {
    bytes into = {1, 1, 0};
    accumulate(bools_over(into), given_, op);
    EXPECT_EQ(into, (bytes{1, 0, 0}));
  }
}

TEST_F(BoolBytes, AreReadAsTruths) {
  EXPECT_THAT(given_.to_vector<bool>(), ElementsAre(true, false, true));
  std::array<bool, 3> room{};
  given_.copy_to(std::span<bool>(room));
  EXPECT_THAT(std::as_bytes(std::span(room)), ElementsAre(std::byte{1}, std::byte{0}, std::byte{1}));
  EXPECT_TRUE(given_.at<bool>(0));
  EXPECT_EQ(values_[0], 1);
  EXPECT_TRUE(given_.row(2).item<bool>());
  EXPECT_EQ(values_[2], 1);
  given_.at<bool>(2) = false;
  EXPECT_EQ(values_, (bytes{1, 0, 0}));
}

TEST_F(BoolBytes, ACopyHasZerosAndOnes) {
  EXPECT_EQ(bytes_of(given_.clone()), (bytes{1, 0, 1}));
  auto all = many();
  EXPECT_EQ(bytes_of(bools_over(all).clone()), truths_of(many()));
  const auto strided = bools_over(all).slice(1, 200, 0, 3);
  EXPECT_TRUE(std::ranges::all_of(bytes_of(strided.contiguous()), [](auto each) { return each <= 1; }));
  EXPECT_TRUE(equal(strided.contiguous(), strided));
  bytes flags = {7, 0, 9};
  convert_into<bool, bool>(std::span(reinterpret_cast<bool*>(flags.data()), 3),
                           std::span<const bool>(reinterpret_cast<const bool*>(flags.data()), 3));
  EXPECT_EQ(flags, (bytes{1, 0, 1}));
}

TEST_F(BoolBytes, AreSentAsTruths) {
  output_archive counter;
  given_.write_to(counter);
  std::vector<std::byte> frame(counter.written());
  output_archive out(frame);
  given_.write_to(out);
  input_archive in(frame);
  EXPECT_EQ(bytes_of(tensor::read_from(in)), (bytes{1, 0, 1}));
}

TEST_F(BoolBytes, ArePrintedAsTruths) {
  EXPECT_EQ((std::ostringstream() << given_).str(), "tensor([ True, False,  True], bool)");
}

// ---- DLPack

class ImportedBools : public testing::Test {
protected:
  ImportedBools() {
    managed_.dl_tensor.data = values_.data();
    managed_.dl_tensor.ndim = 1;
    managed_.dl_tensor.dtype = {.code = 6, .bits = 8, .lanes = 1};
    managed_.dl_tensor.shape = shape_.data();
    managed_.manager_ctx = this;
    managed_.deleter = [](dlpack_managed_tensor* left) {
      ++static_cast<ImportedBools*>(left->manager_ctx)->given_back_;
    };
  }

  bytes values_ = bytes(300, 1);
  std::array<std::int64_t, 1> shape_ = {300};
  std::array<std::int64_t, 1> strides_ = {2};
  dlpack_managed_tensor managed_;
  int given_back_ = 0;
};

TEST_F(ImportedBools, OtherBytesThanZeroAndOneAreRefusedAndLeftAsTheyAre) {
  values_[299] = 2;
  expect_refused([&] { static_cast<void>(from_dlpack(&managed_)); }, "has a bool whose byte is 2", "x != 0", "u8");
  EXPECT_EQ(values_[299], 2);
  EXPECT_EQ(given_back_, 0);
}

TEST_F(ImportedBools, OnlyTheTensorsOwnElementsAreLookedAt) {
  shape_ = {150};
  managed_.dl_tensor.strides = strides_.data();
  for (std::size_t index = 1; index < values_.size(); index += 2) values_[index] = 9;
  EXPECT_EQ(count_nonzero(from_dlpack(&managed_)), 150U);
  EXPECT_EQ(given_back_, 1);
  values_[298] = 9;
  expect_refused([&] { static_cast<void>(from_dlpack(&managed_)); }, "has a bool whose byte is 9");
}

// Its memory is shared: nobody asks the importer before the other library writes.
TEST_F(ImportedBools, WhatTheOtherLibraryWritesLaterIsTrue) {
  const auto made = from_dlpack(&managed_);
  std::ranges::fill(values_, std::uint8_t{86});
  values_[0] = 0;
  EXPECT_EQ(count_nonzero(made), 299U);
}

TEST_F(ImportedBools, WithoutElementsAreTaken) {
  shape_ = {0};
  managed_.dl_tensor.data = nullptr;
  EXPECT_EQ(from_dlpack(&managed_).size(), 0U);
}

}  // namespace
}  // namespace muster::bool_bytes_test
