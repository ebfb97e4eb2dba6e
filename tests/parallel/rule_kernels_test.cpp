// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/rule_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "../device/device_support.hpp"
#include "quick_random.hpp"
#include "rule_kernel.hpp"
#include "rule_reference.hpp"
#include "rule_support.hpp"

namespace muster::detail::rule_kernels_test {
namespace {

using test::all_kernels;
using test::at;
using test::column;
using test::optimizers;
using test::random_gradients;
using test::replicas;
using test::variable;
using test::wide_of;

template <class T>
double reduced(const std::vector<column<T>>& gradients, const std::vector<double>& weights, std::size_t index) {
  double sum = 0;
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) sum += weights[rank] * double(gradients[rank][index]);
  return sum;
}

template <class T>
class RuleKernels : public testing::Test {
protected:
  // Every step rounds.
  static void expect_near(const variable<T>& found, std::size_t index, const test::reference_element& expected) {
    const auto tolerance = precision() * static_cast<double>(found.step) * 4;
    EXPECT_NEAR(double(found.values[index]), expected.value, tolerance) << found.rule.name() << " step " << found.step;
    for (std::size_t state = 0; state < found.states.size(); ++state) {
      const auto scale = std::max(1.0, std::abs(expected.states[state]));
      EXPECT_NEAR(double(found.states[state][index]), expected.states[state], scale * tolerance) << found.rule.name();
    }
  }

  static double precision() {
    if constexpr (std::is_same_v<T, f16>) return 0x1p-11;
    if constexpr (std::is_same_v<T, bf16>) return 0x1p-8;
    return std::numeric_limits<wide_of<T>>::epsilon() * 4;
  }
};

using optimizable = testing::Types<f16, bf16, float, double>;

struct dtype_names {
  template <class T>
  static std::string GetName(int) {
    return std::string(dtype_name(dtype_of<T>));
  }
};

TYPED_TEST_SUITE(RuleKernels, optimizable, dtype_names);

TYPED_TEST(RuleKernels, FollowTheFormulasOverManySteps) {
  constexpr std::size_t count = 101;
  const std::vector<double> weights = {0.25, 0.5, 0.25};
  for (const auto& rule : optimizers()) {
    variable<TypeParam> found(rule, count);
    std::vector<test::reference_element> expected(count);
    for (std::size_t index = 0; index < count; ++index) expected[index].value = double(found.values[index]);
    for (; found.step <= 8; ++found.step) {
      const auto gradients = random_gradients<TypeParam>(3, count, static_cast<unsigned>(found.step));
      found.update(all_kernels().back(), gradients, weights, 0, count);
      for (std::size_t index = 0; index < count; ++index) {
        expected[index].update(rule, reduced(gradients, weights, index), found.step);
        this->expect_near(found, index, expected[index]);
      }
    }
  }
}

TYPED_TEST(RuleKernels, GiveTheSameBitsInEveryInstructionSetAndHoweverTheRangeIsCut) {
  constexpr std::size_t count = 5000;
  for (const auto& rule : optimizers()) {
    variable<TypeParam> whole(rule, count);
    const std::vector<double> weights = {0.3, 0.1, 0.6};
    std::vector<variable<TypeParam>> others(all_kernels().size(), whole);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const auto gradients = random_gradients<TypeParam>(3, count, static_cast<unsigned>(step));
      whole.step = step;
      whole.update(baseline_rule_kernel, gradients, weights, 0, count);
      for (std::size_t each = 0; each < others.size(); ++each) {
        others[each].step = step;
        for (std::size_t first = 0, length = 1; first < count; first += length, length = length * 2 + 1) {
          length = std::min(length, count - first);
          others[each].update(all_kernels()[each], gradients, weights, first, first + length);
        }
      }
    }
    for (const auto& each : others) EXPECT_EQ(each, whole) << rule.name();
  }
}

TYPED_TEST(RuleKernels, GiveTheSameBitsForNumbersOfAnyMagnitude) {
  constexpr std::size_t count = 3000;
  test::quick_random random(7);
  std::vector<column<TypeParam>> gradients(2, column<TypeParam>(count));
  for (auto& each : gradients) {
    for (auto& value : each) {
      const auto exponent = static_cast<int>(random() % 60) - 40;
      const auto number = std::ldexp(random.between(-1, 1), exponent);
      value = TypeParam(static_cast<wide_of<TypeParam>>(number));
    }
  }
  for (const auto& rule : optimizers()) {
    variable<TypeParam> baseline(rule, count);
    auto best = baseline;
    baseline.update(baseline_rule_kernel, gradients, {1, 1}, 0, count);
    best.update(all_kernels().back(), gradients, {1, 1}, 0, count);
    EXPECT_EQ(baseline, best) << rule.name();
  }
}

TYPED_TEST(RuleKernels, AverageOfEqualGradientsIsThatGradient) {
  constexpr std::size_t count = 40;
  const auto gradient = random_gradients<TypeParam>(1, count, 1)[0];
  for (const auto kernels : all_kernels()) {
    for (const auto& weights : {std::vector<double>{0.25, 0.75}, {0.5, 0.125, 0.375}, {1.0 / 3, 1.0 / 3, 1.0 / 3}}) {
      const std::vector<column<TypeParam>> gradients(weights.size(), gradient);
      variable<TypeParam> found(assign_rule{}, count);
      found.update(kernels, gradients, weights, 0, count);
      for (std::size_t index = 0; index < count; ++index) {
        const auto expected = double(gradient[index]);
        EXPECT_NEAR(double(found.values[index]), expected, std::abs(expected) * this->precision() * 2);
      }
    }
  }
}

TYPED_TEST(RuleKernels, WeightsAreOfTheirRanks) {
  using T = TypeParam;
  const std::vector<column<T>> gradients = {{T(1), T(2)}, {T(3), T(-8)}};
  variable<T> found(assign_rule{}, 2);
  found.update(all_kernels().back(), gradients, {0.75, 0.25}, 0, 2);
  EXPECT_EQ(double(found.values[0]), 1.5);
  EXPECT_EQ(double(found.values[1]), -0.5);
}

TYPED_TEST(RuleKernels, GiveEveryRankTheSameHoweverItIsStored) {
  constexpr std::size_t count = 2500;
  const auto gradients = random_gradients<TypeParam>(2, count, 5);
  for (const auto& rule : optimizers()) {
    const variable<TypeParam> old(rule, count);
    auto expected = old;
    expected.update(baseline_rule_kernel, gradients, {1, 1}, 0, count);
    for (const auto how : {stores::normal, stores::streaming}) {
      replicas<TypeParam> found(old);
      found.become(old, gradients, {1, 1}, how);
      found.expect(expected);
    }
  }
}

TYPED_TEST(RuleKernels, TouchNothingWhereThereAreNoElements) {
  for (const auto& rule : optimizers()) {
    variable<TypeParam> found(rule, 3);
    const auto before = found;
    found.update(all_kernels().back(), random_gradients<TypeParam>(2, 3, 1), {1, 1}, 1, 1);
    EXPECT_EQ(found, before);
  }
}

// Every number of 16 bits, and what it is after a multiplication.
template <class T>
void expect_conversions(rule_kernels kernels, float weight) {
  std::vector<column<T>> all(1);
  for (std::uint32_t bits = 0; bits < 0x1'0000U; ++bits) {
    all[0].push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  }
  variable<T> found(sgd{.rate = 1}, all[0].size());
  std::ranges::fill(found.values, T(-0.0F));
  found.update(kernels, all, {weight}, 0, all[0].size());
  for (std::size_t bits = 0; bits < all[0].size(); ++bits) {
    const T expected(-0.0F - weight * float(all[0][bits]));
    if (std::isnan(float(expected))) {
      EXPECT_TRUE(std::isnan(float(found.values[bits]))) << bits;
    } else {
      EXPECT_EQ(found.values[bits].bits(), expected.bits()) << bits << " times " << weight;
    }
  }
}

TEST(RuleKernelsOf16Bits, ConvertAsTheTypesDo) {
  for (const auto kernels : all_kernels()) {
    for (const auto weight : {1.0F, -1.0F, 1.0F / 3, 1.37e-3F, 3.1e-7F, 900.1F, 1e-39F, 1e30F}) {
      expect_conversions<f16>(kernels, weight);
      expect_conversions<bf16>(kernels, weight);
    }
  }
}

TEST(RuleKernelsOfAdam, TakeAStepOfTheRateAtFirst) {
  for (const auto kernels : all_kernels()) {
    variable<double> found(adam{.rate = 0.125}, 2);
    found.values = {1, 1};
    found.update(kernels, {{1e-3, -1e6}}, {1}, 0, 2);
    EXPECT_NEAR(found.values[0], 0.875, 2e-6);  // for epsilon
    EXPECT_NEAR(found.values[1], 1.125, 1e-12);
    EXPECT_NEAR(found.states[0][0], 1e-4, 1e-18);
    EXPECT_NEAR(found.states[1][0], 1e-9, 1e-22);
  }
}

TEST(RuleKernelsOfAdam, CorrectNothingAfterManySteps) {
  variable<double> found(adam{.rate = 0.125}, 1);
  found.values = {1};
  found.states = {{3}, {4}};
  found.step = std::numeric_limits<std::uint64_t>::max();
  found.update(all_kernels().back(), {{3}}, {1}, 0, 1);
  EXPECT_NEAR(found.values[0], 1 - 0.125 * 3 / (std::sqrt(4 * 0.999 + 9 * 0.001) + 1e-8), 1e-14);
}

template <class T>
column<T> assigned(reduction_op op, const std::vector<column<T>>& gradients, const std::vector<double>& weights) {
  column<T> found(gradients[0].size());
  std::vector<const std::byte*> from;
  for (const auto& each : gradients) from.push_back(at(each, 0));
  auto* const to = at(found, 0);
  apply(assign_rule{}, {.type = dtype_of<T>,
                        .op = op,
                        .gradients = from,
                        .weights = weights,
                        .new_values = std::span(&to, 1),
                        .count = found.size()});
  return found;
}

template <class T>
class RuleKernelsOfAssignment : public testing::Test {};

using every_number =
    testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                   std::uint64_t, f16, bf16, float, double, std::complex<float>, std::complex<double>>;

TYPED_TEST_SUITE(RuleKernelsOfAssignment, every_number, dtype_names);

TYPED_TEST(RuleKernelsOfAssignment, TakeTheReducedValue) {
  using T = TypeParam;
  EXPECT_EQ(assigned<T>(reduction_op::sum, {{T(1), T(5)}, {T(2), T(6)}, {T(4), T(7)}}, {1, 1, 1}),
            (column<T>{T(7), T(18)}));
  EXPECT_EQ(assigned<T>(reduction_op::prod, {{T(3), T(5)}, {T(2), T(6)}}, {}), (column<T>{T(6), T(30)}));
  if constexpr (std::is_arithmetic_v<T>) {
    EXPECT_EQ(assigned<T>(reduction_op::max, {{T(3), T(5)}, {T(2), T(6)}}, {}), (column<T>{T(3), T(6)}));
  }
}

TEST(RuleKernelsOfAssignmentOf, BoolsAndBits) {
  using bools = column<std::uint8_t>;
  EXPECT_EQ(assigned<std::uint8_t>(reduction_op::bor, {{1, 4}, {2, 4}}, {}), (bools{3, 4}));
  const bools one = {0, 1};
  const std::byte* const from = at(one, 0);
  bools found = {1, 0};
  auto* const to = at(found, 0);
  const double weight = 1;
  apply(assign_rule{}, {.type = dtype::boolean,
                        .gradients = std::span(&from, 1),
                        .weights = std::span(&weight, 1),
                        .new_values = std::span(&to, 1),
                        .count = 2});
  EXPECT_EQ(found, one);
}

TEST(RuleKernelsOfAssignmentOf, ComplexNumbersAverageByParts) {
  using complex = std::complex<double>;
  EXPECT_EQ(assigned<complex>(reduction_op::avg, {{{1, 2}, {0, 4}}, {{5, 6}, {8, 0}}}, {0.75, 0.25}),
            (column<complex>{{2, 3}, {2, 3}}));
}

TEST(RuleKernelsOfAny, RefuseWhatTheRuleRefuses) {
  const std::byte* const none = nullptr;
  const double weight = 1;
  std::byte* to = nullptr;
  const auto refused = [&](const update_rule& rule, dtype type, reduction_op op, auto... parts) {
    const rule_pass pass = {.type = type,
                            .op = op,
                            .gradients = std::span(&none, 1),
                            .weights = std::span(&weight, 1),
                            .new_values = std::span(&to, 1)};
    test::expect_refused([&] { apply(rule, pass); }, parts...);
  };
  refused(sgd{.rate = 0}, dtype::f32, reduction_op::sum, "the rate 0");
  refused(sgd{.rate = 1}, dtype::i32, reduction_op::sum, "i32");
  refused(adam{}, dtype::f32, reduction_op::min, "min");
  refused(assign_rule{}, dtype::u8, reduction_op::avg, "avg");
}

}  // namespace
}  // namespace muster::detail::rule_kernels_test
