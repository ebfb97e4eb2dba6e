// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/combine.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "../device/device_support.hpp"
#include "combine_kernel.hpp"
#include "combine_reference.hpp"
#include "float_states.hpp"
#include "quick_random.hpp"

namespace muster::detail::combine_test {
namespace {

using test::bytes_of;
using test::column;
using test::random_values;
using test::reference;

// What `combine` may be made of on this machine.
std::vector<combine_kernels> all_kernels() {
  std::vector<combine_kernels> found = {baseline_kernel};
  if (has_avx2()) found.push_back(avx2_kernel);
  return found;
}

/// Arrays of T that begin `offset` elements after a multiple of 64 bytes, with guards around them.
template <class T>
class arrays {
public:
  arrays(std::size_t how_many, std::size_t count, std::size_t offset) : count_(count), offset_(offset) {
    for (std::size_t each = 0; each < how_many; ++each) {
      // One line before, one for the offset, one for what begins a line, one after.
      const auto needed = bytes() / sizeof(line) + 4;
      lines_.push_back(std::make_unique<line[]>(needed));
      std::memset(lines_.back().get(), 0xa5, needed * sizeof(line));
    }
  }

  std::byte* operator[](std::size_t each) const {
    return reinterpret_cast<std::byte*>(lines_[each].get()) + sizeof(line) + offset_ * sizeof(T);
  }

  void set(std::size_t each, const column<T>& values) {
    if (count_ != 0) std::memcpy((*this)[each], values.data(), bytes());
  }

  // Bits, because NaNs are different from themselves.
  bool holds(std::size_t each, const column<T>& values) const {
    return count_ == 0 || std::memcmp((*this)[each], values.data(), bytes()) == 0;
  }

  bool guards_are_whole(std::size_t each) const {
    const auto untouched = [](std::byte byte) { return byte == std::byte{0xa5}; };
    const auto* const begin = (*this)[each];
    return std::all_of(begin - sizeof(line), begin, untouched) &&
           std::all_of(begin + bytes(), begin + bytes() + sizeof(line), untouched);
  }

private:
  struct alignas(64) line {
    std::byte bytes[64];
  };

  std::size_t bytes() const { return count_ * sizeof(T); }

  std::size_t count_;
  std::size_t offset_;
  std::vector<std::unique_ptr<line[]>> lines_;
};

template <class T>
using values = std::vector<column<T>>;

struct placement {
  stores how;
  std::size_t input_offset;
  std::size_t output_offset;
  std::size_t outputs;
  bool in_place;
};

std::vector<placement> placements() {
  std::vector<placement> all;
  for (const auto how : {stores::normal, stores::streaming}) {
    for (const std::size_t outputs : {1U, 2U, 3U}) {
      all.insert(all.end(), {{how, 0, 0, outputs, false}, {how, 1, 0, outputs, false}, {how, 1, 1, outputs, false}});
      all.insert(all.end(), {{how, 0, 0, outputs, true}, {how, 1, 0, outputs, true}, {how, 0, 1, outputs, true}});
    }
  }
  return all;
}

// In place, the first output is the last input; the others are apart.
template <class T>
void expect_combined(combine_kernels kernels, const reduction& how, const values<T>& inputs, const column<T>& expected,
                     const placement& where) {
  const auto count = expected.size();
  arrays<T> sources(inputs.size(), count, where.input_offset);
  arrays<T> results(where.outputs, count, where.output_offset);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t each = 0; each < inputs.size(); ++each) {
    sources.set(each, inputs[each]);
    from.push_back(sources[each]);
  }
  for (std::size_t each = 0; each < where.outputs; ++each) to.push_back(results[each]);
  if (where.in_place) to[0] = sources[inputs.size() - 1];
  combine_by(kernels, how, dtype_of<T>, from, to, count, where.how);
  for (std::size_t each = 0; each < inputs.size(); ++each) {
    const bool is_output = where.in_place && each + 1 == inputs.size();
    EXPECT_TRUE(sources.holds(each, is_output ? expected : inputs[each])) << "input " << each;
    EXPECT_TRUE(sources.guards_are_whole(each)) << "input " << each;
  }
  for (std::size_t each = where.in_place ? 1 : 0; each < where.outputs; ++each) {
    EXPECT_TRUE(results.holds(each, expected)) << "output " << each;
    EXPECT_TRUE(results.guards_are_whole(each)) << "output " << each;
  }
}

template <class T>
void expect_combined_anywhere(reduction_op op, std::size_t ranks, std::size_t count) {
  const auto inputs = random_values<T>(ranks, count);
  const auto expected = reference<T>(op, inputs);
  for (const auto kernels : all_kernels()) {
    for (const auto& where : placements()) {
      SCOPED_TRACE(testing::Message() << op << ", " << ranks << " inputs, " << count << " elements, AVX2 "
                                      << (kernels == avx2_kernel) << ", streaming " << (where.how == stores::streaming)
                                      << ", " << where.outputs << " outputs, offsets " << where.input_offset << " and "
                                      << where.output_offset << ", in place " << where.in_place);
      expect_combined<T>(kernels, op, inputs, expected, where);
    }
  }
}

template <class T>
class Combine : public testing::Test {
protected:
  static std::vector<reduction_op> ops() {
    std::vector<reduction_op> possible;
    for (unsigned number = 0; number < static_cast<unsigned>(reduction_op::custom); ++number) {
      const auto op = static_cast<reduction_op>(number);
      try {
        reduction(op).require(dtype_of<T>);
        possible.push_back(op);
      } catch (const error&) {  // NOLINT(bugprone-empty-catch): there is none
      }
    }
    return possible;
  }
};

using every_dtype =
    testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                   std::uint32_t, std::uint64_t, f16, bf16, float, double, std::complex<float>, std::complex<double>>;

struct dtype_names {
  template <class T>
  static std::string GetName(int) {
    return std::string(dtype_name(dtype_of<T>));
  }
};

TYPED_TEST_SUITE(Combine, every_dtype, dtype_names);

TYPED_TEST(Combine, GivesWhatOneElementAfterTheOtherGives) {
  for (const auto op : this->ops()) {
    for (const std::size_t ranks : {1U, 2U, 3U, 5U}) {
      for (const std::size_t count : {0U, 1U, 7U, 31U, 4096U + 3U}) {
        expect_combined_anywhere<TypeParam>(op, ranks, count);
      }
    }
  }
}

TYPED_TEST(Combine, GivesTheSameHoweverTheRangeIsCut) {
  constexpr std::size_t count = 5000;
  for (const auto op : this->ops()) {
    for (const std::size_t ranks : {2U, 3U}) {
      const auto inputs = random_values<TypeParam>(ranks, count);
      const auto expected = reference<TypeParam>(op, inputs);
      column<TypeParam> result(count);
      for (std::size_t first = 0, length = 1; first < count; first += length, length = length * 2 + 1) {
        const auto here = std::min(length, count - first);
        std::vector<const std::byte*> from;
        for (const auto& each : inputs) from.push_back(bytes_of(each) + first * sizeof(TypeParam));
        auto* const to = reinterpret_cast<std::byte*>(result.data() + first);
        combine(op, dtype_of<TypeParam>, from, std::span(&to, 1), here, stores::streaming);
      }
      EXPECT_EQ(std::memcmp(result.data(), expected.data(), count * sizeof(TypeParam)), 0) << op << ' ' << ranks;
    }
  }
}

// ---- rounding and NaNs

template <class T>
column<T> combined(const reduction& how, const values<T>& inputs, combine_kernels kernels) {
  std::vector<const std::byte*> from;
  for (const auto& each : inputs) from.push_back(bytes_of(each));
  column<T> result(inputs[0].size());
  auto* const to = reinterpret_cast<std::byte*>(result.data());
  combine_by(kernels, how, dtype_of<T>, from, std::span(&to, 1), result.size(), stores::normal);
  return result;
}

template <class T>
class CombineHalves : public testing::Test {};

using halves = testing::Types<f16, bf16>;
TYPED_TEST_SUITE(CombineHalves, halves, dtype_names);

TYPED_TEST(CombineHalves, RoundsASumOfManyOnce) {
  const auto small = TypeParam(0.001F);
  const values<TypeParam> inputs(1000, {small});
  float sum = 0;
  for (int each = 0; each < 1000; ++each) sum += static_cast<float>(small);
  for (const auto kernels : all_kernels()) {
    EXPECT_EQ(combined<TypeParam>(reduction_op::sum, inputs, kernels)[0].bits(), TypeParam(sum).bits());
  }
}

// Among them subnormal ones, infinities, NaNs and what overflows.
TYPED_TEST(CombineHalves, AddsAnyTwoValuesAsFloatsDo) {
  constexpr std::size_t count = std::size_t{1} << 18U;
  test::quick_random random(7);
  values<TypeParam> inputs(2);
  std::vector<TypeParam> expected;
  for (std::size_t each = 0; each < count; ++each) {
    const auto a = TypeParam::from_bits(static_cast<std::uint16_t>(each));
    const auto b = TypeParam::from_bits(static_cast<std::uint16_t>(random()));
    inputs[0].push_back(a);
    inputs[1].push_back(b);
    expected.push_back(TypeParam(static_cast<float>(a) + static_cast<float>(b)));
  }
  for (const auto kernels : all_kernels()) {
    const auto found = combined<TypeParam>(reduction_op::sum, inputs, kernels);
    for (std::size_t each = 0; each < count; ++each) {
      const bool both_are_nan =
          std::isnan(static_cast<float>(found[each])) && std::isnan(static_cast<float>(expected[each]));
      ASSERT_TRUE(found[each].bits() == expected[each].bits() || both_are_nan) << each;
    }
  }
}

TYPED_TEST(CombineHalves, TakesTheLeastOfAnyTwoValues) {
  values<TypeParam> inputs(2);
  for (unsigned bits = 0; bits <= UINT16_MAX; ++bits) {
    inputs[0].push_back(TypeParam(std::numeric_limits<float>::infinity()));
    inputs[1].push_back(TypeParam::from_bits(static_cast<std::uint16_t>(bits)));
  }
  for (const auto kernels : all_kernels()) {
    const auto found = combined<TypeParam>(reduction_op::min, inputs, kernels);
    for (std::size_t bits = 0; bits <= UINT16_MAX; ++bits) {
      ASSERT_EQ(found[bits].bits(), TypeParam(static_cast<float>(inputs[1][bits])).bits()) << bits;
    }
  }
}

template <class T>
class CombineFloats : public testing::Test {};

using floats = testing::Types<f16, bf16, float, double>;
TYPED_TEST_SUITE(CombineFloats, floats, dtype_names);

TYPED_TEST(CombineFloats, GivesNaNWhereAnyIsOne) {
  const auto nan = TypeParam(std::numeric_limits<float>::quiet_NaN());
  const auto one = TypeParam(1.0F);
  for (const auto op :
       {reduction_op::sum, reduction_op::avg, reduction_op::prod, reduction_op::min, reduction_op::max}) {
    for (const auto kernels : all_kernels()) {
      for (std::size_t place = 0; place < 3; ++place) {
        values<TypeParam> inputs(3, std::vector<TypeParam>(9, one));
        inputs[place][4] = nan;
        const auto found = combined<TypeParam>(op, inputs, kernels);
        for (std::size_t each = 0; each < found.size(); ++each) {
          EXPECT_EQ(std::isnan(static_cast<double>(found[each])), each == 4) << op << ' ' << place << ' ' << each;
        }
      }
    }
  }
}

TEST(CombineOrder, KeepsTheFirstNaNAndTheFirstOfEqualZeros) {
  const auto nan = [](std::uint32_t bits) { return std::bit_cast<float>(0x7fc0'0000U | bits); };
  const values<float> inputs = {{1, nan(1), 0.0F, -0.0F}, {nan(2), nan(2), -0.0F, 0.0F}, {nan(3), 2, 0.0F, -0.0F}};
  const std::vector<float> expected = {nan(2), nan(1), 0.0F, -0.0F};
  for (const auto op : {reduction_op::min, reduction_op::max}) {
    for (const auto kernels : all_kernels()) {
      const auto found = combined<float>(op, inputs, kernels);
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), sizeof(float) * expected.size()), 0) << op;
    }
  }
}

TEST(CombineAverage, OfIntegersDoesNotWrapAroundAndTruncatesTowardsZero) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  for (const auto kernels : all_kernels()) {
    EXPECT_EQ(combined<std::int64_t>(reduction_op::avg, {{most, -7}, {most, 2}}, kernels),
              (std::vector<std::int64_t>{most, -2}));
    EXPECT_EQ(combined<std::uint64_t>(reduction_op::avg, {{UINT64_MAX}, {UINT64_MAX}, {UINT64_MAX - 1}}, kernels),
              std::vector<std::uint64_t>{UINT64_MAX - 1});
    EXPECT_EQ(combined<std::int8_t>(reduction_op::avg, {{-128, 127}, {-128, 127}, {-127, 126}}, kernels),
              (std::vector<std::int8_t>{-127, 126}));
  }
}

// ---- bools whose bytes others have written

// Every pair of these, and more than a vector's of them.
column<bool> bytes_of_bools(std::size_t seed) {
  constexpr std::array<std::uint8_t, 5> given = {0, 1, 2, 255, 128};
  column<bool> made;
  for (std::size_t index = 0; index < 1000; ++index) made.push_back(given[index / (seed == 0 ? 1 : 5 * seed) % 5]);
  return made;
}

TEST(CombineBools, EveryByteButZeroIsTrueAndResultsAreZeroOrOne) {
  for (const auto op : {reduction_op::sum, reduction_op::prod, reduction_op::min, reduction_op::max, reduction_op::band,
                        reduction_op::bor, reduction_op::bxor}) {
    for (const std::size_t ranks : {1U, 2U, 3U}) {
      values<bool> given;
      values<bool> truths;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        given.push_back(bytes_of_bools(rank));
        truths.push_back(given.back());
        for (auto& each : truths.back()) each = each != 0 ? 1 : 0;
      }
      const auto expected = reference<bool>(op, truths);
      for (const auto kernels : all_kernels()) {
        for (const auto& where : placements()) expect_combined<bool>(kernels, op, given, expected, where);
      }
    }
  }
}

TEST(CombineBools, AFunctionIsGivenTruths) {
  const auto how = reduction::custom<bool>("differ", [](bool a, bool b) { return a != b; });
  EXPECT_EQ(combined<bool>(how, {{2, 2, 0, 255}, {1, 0, 7, 4}}, baseline_kernel), (column<bool>{0, 1, 1, 0}));
}

// ---- the thread's floating-point state

TEST(CombineState, TheThreadsHasNoPartInResultsAndStays) {
  constexpr float tiny = 3e-39F;  // below the least normal one
  const values<float> inputs = {{1.0F / 3, tiny, 1e-30F, 3e38F}, {0.7F, tiny, 1e-9F, 3e38F}, {0.1F, -tiny, 0.3F, -1}};
  for (const auto op : {reduction_op::sum, reduction_op::avg, reduction_op::prod, reduction_op::max}) {
    for (const auto kernels : all_kernels()) {
      const auto usual = combined<float>(op, inputs, kernels);
      for (const auto state : test::floats_here()) {
        column<float> found;
        {
          const test::floats_scope set(state);
          found = combined<float>(op, inputs, kernels);
          EXPECT_TRUE(set.is_unchanged()) << op << ' ' << state;
        }
        EXPECT_EQ(std::memcmp(found.data(), usual.data(), sizeof(float) * usual.size()), 0) << op << ' ' << state;
      }
    }
  }
}

// ---- functions of the program's own

TEST(CombineFunction, IsCalledInTheOrderOfTheInputsWithWhatThatGaveSoFar) {
  const auto how = reduction::custom<double>("ten times", [](double sum, double next) { return sum * 10 + next; });
  constexpr std::size_t count = 3000;
  values<double> inputs;
  for (const double rank : {1.0, 2.0, 3.0, 4.0}) inputs.emplace_back(count, rank);
  EXPECT_EQ(combined<double>(how, inputs, baseline_kernel), std::vector<double>(count, 1234.0));
  inputs.resize(1);
  EXPECT_EQ(combined<double>(how, inputs, baseline_kernel), std::vector<double>(count, 1.0));
}

TEST(CombineFunction, WorksForEveryDtypeAndPlacement) {
  const auto how = reduction::custom<f16>("first", [](f16 a, f16) { return a; });
  const auto inputs = random_values<f16>(3, 4099);
  for (const auto& where : placements()) expect_combined<f16>(baseline_kernel, how, inputs, inputs[0], where);
}

TEST(CombineFunction, ThatThrowsLeavesWholeResultsUpToSomePlaceAndNothingAfterIt) {
  constexpr std::size_t count = 5000;
  constexpr int last = 4000;
  const auto how = reduction::custom<int>("picky", [](int sum, int next) {
    if (sum == last) throw std::runtime_error("no more");
    return sum + next;
  });
  std::vector<int> numbers(count);
  for (std::size_t each = 0; each < count; ++each) numbers[each] = static_cast<int>(each);
  std::vector<int> result(count, -1);
  const std::vector<const std::byte*> from(3, bytes_of(numbers));
  auto* const to = reinterpret_cast<std::byte*>(result.data());
  EXPECT_THROW(combine(how, dtype::i32, from, std::span(&to, 1), count, stores::streaming), std::runtime_error);
  const auto end = std::ranges::find(result, -1);
  ASSERT_LE(end - result.begin(), last);
  EXPECT_TRUE(std::all_of(end, result.end(), [](int each) { return each == -1; }));
  for (auto each = result.begin(); each != end; ++each) EXPECT_EQ(*each, 3 * (each - result.begin()));
}

// ---- refusals and copies

TEST(CombineRefusal, WritesNothing) {
  const std::vector<float> one = {1, 2};
  std::vector<float> result = {5, 5};
  const std::vector<const std::byte*> from(2, bytes_of(one));
  auto* const to = reinterpret_cast<std::byte*>(result.data());
  test::expect_refused([&] { combine(reduction_op::bxor, dtype::f32, from, std::span(&to, 1), 2, stores::normal); },
                       "dtype f32", "bxor");
  EXPECT_EQ(result, (std::vector<float>{5, 5}));
}

TEST(CombineAny, NeedsNoOutput) {
  const std::vector<float> one = {1, 2};
  const std::vector<const std::byte*> from(2, bytes_of(one));
  combine(reduction_op::sum, dtype::f32, from, {}, 2, stores::streaming);
}

TEST(Copy, CopiesWhateverTheAlignmentAndNothingElse) {
  for (const auto how : {stores::normal, stores::streaming}) {
    for (const std::size_t offset : {0U, 1U, 15U, 33U}) {
      for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 1000U, 70000U}) {
        const auto values = random_values<std::uint8_t>(1, count)[0];
        arrays<std::uint8_t> result(1, count, offset);
        copy(result[0], bytes_of(values), count, how);
        EXPECT_TRUE(result.holds(0, values)) << offset << ' ' << count;
        EXPECT_TRUE(result.guards_are_whole(0)) << offset << ' ' << count;
      }
    }
  }
}

TEST(Copy, ToTheSamePlaceLeavesItAsItIs) {
  auto values = random_values<std::uint8_t>(1, 300)[0];
  const auto before = values;
  auto* const place = reinterpret_cast<std::byte*>(values.data());
  copy(place, place, values.size(), stores::streaming);
  EXPECT_EQ(values, before);
}

}  // namespace
}  // namespace muster::detail::combine_test
