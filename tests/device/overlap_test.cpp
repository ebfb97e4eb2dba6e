// SPDX-License-Identifier: BSL-1.0
#include <muster/device/overlap.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/tensor_compare.hpp>

#include "device_support.hpp"

namespace muster::overlap_test {
namespace {

tensor numbers(std::size_t count) { return tensor::arange<float>(0, static_cast<float>(count)); }

// ---- what programs have

TEST(Overlap, TheSameElementsAreTheSame) {
  const auto all = numbers(12).reshape({3, 4});
  EXPECT_EQ(overlap_of(all, all), overlap::same);
  EXPECT_EQ(overlap_of(all, all.slice(0, 3)), overlap::same);
  EXPECT_EQ(overlap_of(all.slice(0, 3, 0, 2), all.slice(0, 3, 0, 2)), overlap::same);
  EXPECT_EQ(overlap_of(all.slice(1, 2).reshape({4}), all.row(1)), overlap::same);
}

TEST(Overlap, ShiftedSlicesOverlapInPart) {
  const auto all = numbers(12);
  EXPECT_EQ(overlap_of(all.slice(0, 11), all.slice(1, 12)), overlap::partial);
  EXPECT_EQ(overlap_of(all, all.slice(3, 4)), overlap::partial);
  EXPECT_EQ(overlap_of(all.slice(0, 6), all.slice(6, 12)), overlap::none);
}

TEST(Overlap, AnotherShapeOfTheSameElementsIsPartial) {
  const auto all = numbers(12);
  EXPECT_EQ(overlap_of(all.reshape({3, 4}), all.reshape({4, 3})), overlap::partial);
  const auto square = numbers(9).reshape({3, 3});
  EXPECT_EQ(overlap_of(square, square.transpose()), overlap::partial);
}

TEST(Overlap, ColumnsOfOneMatrixDoNotOverlap) {
  const auto all = numbers(1000).reshape({100, 10});
  EXPECT_EQ(overlap_of(all.slice(0, 10, 1, 2), all.slice(1, 10, 1, 2)), overlap::none);
  EXPECT_EQ(overlap_of(all.slice(0, 5, 1), all.slice(5, 10, 1)), overlap::none);
  EXPECT_EQ(overlap_of(all.slice(0, 6, 1), all.slice(5, 10, 1)), overlap::partial);
  EXPECT_EQ(overlap_of(all.slice(0, 5, 1).transpose(), all.slice(5, 10, 1).transpose()), overlap::none);
  EXPECT_EQ(overlap_of(all.slice(3, 4, 1), all.row(7)), overlap::partial);
  EXPECT_EQ(overlap_of(all.slice(0, 100, 0, 2), all.slice(1, 100, 0, 2)), overlap::none);
}

TEST(Overlap, BlocksOfABatchDoNotOverlap) {
  const auto all = numbers(8 * 3 * 16 * 16).reshape({8, 3, 16, 16});
  const auto left = all.slice(0, 8, 3);
  const auto right = all.slice(8, 16, 3);
  EXPECT_EQ(overlap_of(left, right), overlap::none);
  EXPECT_EQ(overlap_of(left.slice(0, 8, 2), left.slice(8, 16, 2)), overlap::none);
  EXPECT_EQ(overlap_of(all.slice(0, 1, 1), all.slice(1, 3, 1)), overlap::none);
  EXPECT_EQ(overlap_of(left.slice(0, 9, 2), left.slice(8, 16, 2)), overlap::partial);
  EXPECT_EQ(overlap_of(all.permute({3, 2, 1, 0}).slice(0, 8), all.permute({3, 2, 1, 0}).slice(8, 16)), overlap::none);
}

TEST(Overlap, TensorsOfDifferentMemoryDoNotOverlapAndNothingOverlapsNothing) {
  const auto all = numbers(12);
  EXPECT_EQ(overlap_of(all, all.clone()), overlap::none);
  EXPECT_EQ(overlap_of(all, all.slice(5, 5)), overlap::none);
  EXPECT_EQ(overlap_of(tensor(), tensor()), overlap::none);
}

TEST(Overlap, TwoStoragesOverTheSameBytesAreLookedAtByAddress) {
  alignas(8) std::array<std::byte, 64> bytes{};
  const auto one = tensor::over(storage::over(bytes, nullptr), dtype::f32, {8});
  const auto other = tensor::over(storage::over(std::span(bytes).subspan(16), nullptr), dtype::f32, {8});
  EXPECT_EQ(overlap_of(one, other), overlap::partial);
  EXPECT_EQ(overlap_of(one.slice(4, 8), other.slice(0, 4)), overlap::same);
  EXPECT_EQ(overlap_of(one.slice(0, 4), other), overlap::none);
}

TEST(Overlap, AnotherTypeOfTheSameBytesIsPartial) {
  const auto all = numbers(12);
  const auto halves = tensor::over(all.storage(), dtype::i16, {12}, {2}, 0);
  EXPECT_EQ(overlap_of(all, halves), overlap::partial);
  const auto high = tensor::over(all.storage(), dtype::i16, {12}, {2}, 2);
  EXPECT_EQ(overlap_of(halves, high), overlap::none);
}

TEST(Overlap, ElementsThatRepeatAreFound) {
  const auto all = numbers(64);
  EXPECT_FALSE(repeats_elements(all));
  EXPECT_FALSE(repeats_elements(all.reshape({8, 8}).transpose()));
  EXPECT_FALSE(repeats_elements(all.reshape({8, 8}).slice(0, 8, 1, 3)));
  EXPECT_TRUE(repeats_elements(all.slice(0, 1).broadcast_to({5})));
  EXPECT_TRUE(repeats_elements(all.reshape({8, 8}).row(0).broadcast_to({3, 8})));
  EXPECT_FALSE(repeats_elements(all.slice(0, 1).broadcast_to({1, 1})));
  const auto windows = tensor::over(all.storage(), dtype::f32, {10, 4}, {1, 1}, 0);
  EXPECT_TRUE(repeats_elements(windows));
  const auto coprime = tensor::over(all.storage(), dtype::f32, {3, 5}, {5, 3}, 0);
  EXPECT_FALSE(repeats_elements(coprime)) << "5 times 3 comes first at the sixth";
  EXPECT_TRUE(repeats_elements(tensor::over(all.storage(), dtype::f32, {4, 6}, {5, 3}, 0)));
}

TEST(Overlap, WhatWouldTakeTooLongCountsAsPartial) {
  const auto bytes = storage::allocate(std::size_t{1} << 24U, memory::local);
  const auto one = tensor::over(bytes, dtype::u8, {40, 41, 43, 40}, {10'007 * 6, 1009 * 6, 101 * 6, 13 * 6}, 0);
  const auto other = tensor::over(bytes, dtype::u8, {40, 41, 43, 40}, {10'009 * 6, 1013 * 6, 103 * 6, 17 * 6}, 3);
  EXPECT_EQ(overlap_of(one, other), overlap::none) << "what all steps have in common tells at once";
  const auto third = tensor::over(bytes, dtype::u8, {400, 100}, {30'030, 2310}, 0);
  const auto fourth = tensor::over(bytes, dtype::u8, {400, 100}, {30'031, 2309}, 1);
  static_cast<void>(overlap_of(third, fourth));  // it ends
}

TEST(Overlap, TextsNameBothRanges) {
  const auto all = numbers(100);
  EXPECT_EQ(describe_overlap("the input", all.slice(1, 11), "the output", all.slice(0, 10)),
            "the input, f32 (10,), lies at bytes 4 to 44, and the output, f32 (10,), at bytes 0 to 40 of the same "
            "memory");
  EXPECT_EQ(describe_repetition("the output", all.slice(0, 4).broadcast_to({3, 4})),
            "the output, f32 (3, 4) with strides (0, 1), has several elements in one place");
}

// ---- against every byte

class made_at_random {
public:
  static constexpr std::size_t bytes = 512;

  [[nodiscard]] tensor layout(dtype type) { return layout(type, shape()); }
  [[nodiscard]] tensor_shape shape() {
    tensor_shape made;
    for (auto left = below(4); left != 0; --left) made.push_back(1 + below(4));
    return made;
  }
  [[nodiscard]] tensor layout(dtype type, const tensor_shape& shape) {
    for (;;) {
      tensor_strides strides;
      for (std::size_t each = 0; each < shape.size(); ++each) {
        strides.push_back(static_cast<std::ptrdiff_t>(below(19)) - 9);
      }
      const auto offset = below(bytes / dtype_size(type)) * dtype_size(type);
      try {
        return tensor::over(memory_, type, shape, strides, offset);
      } catch (const error&) {  // it does not fit there
      }
    }
  }
  [[nodiscard]] std::size_t below(std::size_t limit) { return random_() % limit; }
  void fill() {
    for (auto& each : memory_->bytes()) each = static_cast<std::byte>(below(7));
  }

private:
  std::shared_ptr<const storage> memory_ = storage::allocate(bytes, memory::local);
  std::minstd_rand random_{1};
};

// How many elements lie in each byte.
std::vector<int> bytes_of(const tensor& which) {
  std::vector<int> found(made_at_random::bytes);
  const auto size = static_cast<std::ptrdiff_t>(dtype_size(which.dtype()));
  const auto begin = which.data() - which.storage()->bytes().data();
  std::vector<std::ptrdiff_t> at{begin};
  for (std::size_t dimension = 0; dimension < which.dimensions(); ++dimension) {
    std::vector<std::ptrdiff_t> more;
    for (const auto each : at) {
      for (std::size_t index = 0; index < which.shape()[dimension]; ++index) {
        more.push_back(each + static_cast<std::ptrdiff_t>(index) * which.strides()[dimension] * size);
      }
    }
    at = more;
  }
  for (const auto first : at) {
    for (auto byte = first; byte < first + size; ++byte) ++found[static_cast<std::size_t>(byte)];
  }
  return found;
}

TEST(Overlap, OfThousandsMadeAtRandomEveryByteSaysTheSame) {
  made_at_random made;
  constexpr std::array types = {dtype::u8, dtype::i16, dtype::f32, dtype::f64};
  std::size_t overlapping = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto a = made.layout(types[made.below(types.size())]);
    const auto b = made.layout(types[made.below(types.size())]);
    const auto of_a = bytes_of(a);
    const auto of_b = bytes_of(b);
    const auto both = std::inner_product(of_a.begin(), of_a.end(), of_b.begin(), 0);
    ASSERT_EQ(overlap_of(a, b) != overlap::none, both != 0) << a.shape() << a.strides() << b.shape() << b.strides();
    ASSERT_EQ(repeats_elements(a), std::ranges::any_of(of_a, [](int each) { return each > 1; }))
        << a.shape() << a.strides();
    overlapping += both != 0 ? 1 : 0;
  }
  EXPECT_GT(overlapping, 2'000U);
  EXPECT_LT(overlapping, 18'000U);
}

// ---- what reads and writes

// Calls `pass(to, from)` with tensors that overlap, and with a copy of what is read.
template <class Pass>
void expect_as_if_copied(dtype to_type, dtype from_type, const Pass& pass) {
  made_at_random made;
  for (int round = 0; round < 2'000; ++round) {
    const auto shape = made.shape();
    const auto to = made.layout(to_type, shape);
    const auto from = made.layout(from_type, shape);
    if (repeats_elements(to)) continue;
    made.fill();
    const auto before = to.clone();
    const auto expected = before.clone();
    const auto source = from.clone();
    pass(expected, source);
    pass(to, from);
    ASSERT_TRUE(equal(to, expected)) << to.strides() << from.strides() << shape;
  }
}

TEST(OverlappingTensors, AreCopiedAsIfTheSourceHadBeenCopiedFirst) {
  expect_as_if_copied(dtype::i16, dtype::i16, [](const tensor& to, const tensor& from) { to.copy_from(from); });
}

TEST(OverlappingTensors, AreAccumulatedAsIfTheSourceHadBeenCopiedFirst) {
  expect_as_if_copied(dtype::i32, dtype::i32, [](const tensor& to, const tensor& from) { accumulate(to, from); });
}

TEST(OverlappingTensors, AreConvertedAsIfTheSourceHadBeenCopiedFirst) {
  expect_as_if_copied(dtype::i32, dtype::i16, [](const tensor& to, const tensor& from) { convert_into(to, from); });
  expect_as_if_copied(dtype::u8, dtype::i32, [](const tensor& to, const tensor& from) { convert_into(to, from); });
}

TEST(OverlappingTensors, AreSteppedAsIfTheSourceHadBeenCopiedFirst) {
  const auto all = numbers(1000);
  for (const auto& [to, from] :
       {std::pair(all.slice(1, 1000), all.slice(0, 999)), std::pair(all.slice(0, 999), all.slice(1, 1000)),
        std::pair(all.slice(0, 500), all.slice(0, 1000, 0, 2))}) {
    const auto expected = to.clone();
    axpy(2, from.clone(), expected);
    axpy(2, from, to);
    EXPECT_TRUE(equal(to, expected));
  }
}

TEST(OverlappingTensors, ValuesAreReadAndWrittenFromAndToTheirOwnMemory) {
  const auto all = numbers(64).reshape({8, 8});
  const auto expected = all.transpose().to_vector<float>();
  all.transpose().copy_to(all.span<float>());
  EXPECT_EQ(all.to_vector<float>(), expected);
  const auto again = all.transpose().to_vector<float>();
  all.copy_from(all.transpose());
  EXPECT_EQ(all.to_vector<float>(), again);
}

TEST(OverlappingSpans, AreReadAsTheyWereBefore) {
  std::vector<float> numbers(1000);
  const auto expect = [&](const auto& pass) {
    for (const bool forwards : {false, true}) {
      std::iota(numbers.begin(), numbers.end(), 1.0F);
      auto copy = numbers;
      const std::span<float> to(numbers.data() + (forwards ? 1 : 0), 999);
      const std::span<const float> from(numbers.data() + (forwards ? 0 : 1), 999);
      pass(std::span<float>(copy.data() + (forwards ? 1 : 0), 999), std::vector<float>(from.begin(), from.end()));
      pass(to, from);
      EXPECT_EQ(numbers, copy);
    }
  };
  expect([](std::span<float> to, std::span<const float> from) { accumulate<float>(to, from); });
  expect([](std::span<float> to, std::span<const float> from) { axpy<float>(3, from, to); });
  expect([](std::span<float> to, std::span<const float> from) {
    const std::span<const std::int32_t> others(reinterpret_cast<const std::int32_t*>(from.data()), from.size());
    convert_into<float, std::int32_t>(to, others);
  });
}

}  // namespace
}  // namespace muster::overlap_test
