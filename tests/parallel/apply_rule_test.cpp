// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/apply_rule.hpp>

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "rule_reference.hpp"
#include "rule_support.hpp"

namespace muster::apply_rule_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    return failure.what();
  }
  return "nothing was thrown";
}

template <class T>
tensor ramp(const tensor_shape& shape, float first) {
  auto made = tensor::empty<T>(shape);
  for (auto& each : made.template span<T>()) {
    each = static_cast<T>(first);
    first += 0.25F;
  }
  return made;
}

template <class T>
double wide(T value) {
  if constexpr (std::is_same_v<T, double>) return value;
  return static_cast<double>(static_cast<float>(value));
}

bool same_bits(const tensor& one, const tensor& other) {
  return one.nbytes() == other.nbytes() && std::memcmp(one.data(), other.data(), one.nbytes()) == 0;
}

template <class T>
class ApplyRule : public testing::Test {};
using number_types = testing::Types<f16, bf16, float, double>;
TYPED_TEST_SUITE(ApplyRule, number_types);

TYPED_TEST(ApplyRule, GoesTheWayOfTheFormulas) {
  constexpr double tolerance = std::is_same_v<TypeParam, double> ? 1e-12 : sizeof(TypeParam) == 4 ? 1e-5 : 0.05;
  for (const auto& rule : test::optimizers()) {
    SCOPED_TRACE(rule.name());
    const auto value = ramp<TypeParam>({3, 5}, 0.5F);
    const auto states = make_states(rule, value);
    ASSERT_EQ(states.size(), rule.state_count());
    std::vector<test::reference_element> expected(value.size());
    for (std::size_t each = 0; each < value.size(); ++each) {
      expected[each].value = wide(value.template span<TypeParam>()[each]);
    }
    for (std::uint64_t step = 1; step <= 5; ++step) {
      const auto gradient = ramp<TypeParam>({3, 5}, static_cast<float>(step));
      apply(rule, value, gradient, states, step);
      for (std::size_t each = 0; each < value.size(); ++each) {
        const auto slope = wide(gradient.template span<TypeParam>()[each]);
        expected[each].update(rule, slope, step);
        const auto found = wide(value.template span<TypeParam>()[each]);
        EXPECT_NEAR(found, expected[each].value, tolerance * std::max(1.0, std::abs(expected[each].value)));
      }
    }
  }
}

TYPED_TEST(ApplyRule, SpansBecomeWhatTensorsBecomeAlsoInParts) {
  using state = rule_state<TypeParam>;
  constexpr std::size_t count = 1003;
  for (const auto& rule : test::optimizers()) {
    SCOPED_TRACE(rule.name());
    const auto value = ramp<TypeParam>({count}, -100);
    const auto gradient = ramp<TypeParam>({count}, -99);
    const auto own = value.clone();
    const auto states = make_states(rule, value);
    const auto own_states = make_states(rule, value);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      apply(rule, value, gradient, states, step);
      for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>(0, 500), {500, count}}) {
        std::vector<std::span<state>> parts;
        for (const auto& each : own_states) {
          parts.push_back(each.template span<state>().subspan(first, last - first));
        }
        apply<TypeParam>(rule, own.template span<TypeParam>().subspan(first, last - first),
                         gradient.template span<TypeParam>().subspan(first, last - first), parts, step);
      }
    }
    EXPECT_TRUE(same_bits(value, own));
    for (std::size_t each = 0; each < states.size(); ++each) EXPECT_TRUE(same_bits(states[each], own_states[each]));
  }
}

TEST(ApplyRuleTo, ElementsOfTheProgramsOwn) {
  std::vector<float> weights = {1, 2};
  std::vector<float> moved(2);
  const std::vector<float> gradient = {10, 20};
  const sgd plain{.rate = 0.1};
  apply<float>(plain, weights, gradient);
  EXPECT_THAT(weights, ElementsAre(0, 0));
  const std::array states = {std::span(moved)};
  for (std::uint64_t step = 1; step <= 2; ++step) {
    apply<float>(sgd{.rate = 0.5, .momentum = 0.5}, weights, gradient, states, step);
  }
  EXPECT_THAT(moved, ElementsAre(15, 30));
  EXPECT_THAT(weights, ElementsAre(-12.5F, -25));
}

TEST(ApplyRuleTo, AVariableOfAnyDtypeIsAssigned) {
  const auto value = tensor::zeros<std::int32_t>({3});
  apply(assign_rule{}, value, tensor::arange<std::int32_t>(5, 8));
  EXPECT_THAT(value.to_vector<std::int32_t>(), ElementsAre(5, 6, 7));
  const auto flags = tensor::full<bool>({2}, false);
  apply(assign_rule{}, flags, tensor::full<bool>({2}, true));
  EXPECT_TRUE(flags.at<bool>(1));
  apply(assign_rule{}, tensor::zeros<float>({0, 3}), tensor::zeros<float>({0, 3}));
}

TEST(ApplyRuleTo, GradientsMayBeColumnsAndTheVariableItself) {
  const auto value = tensor::zeros<float>({2, 1});
  const auto wide = tensor::arange<float>(0, 6).reshape({2, 3});
  apply(sgd{.rate = 1}, value, wide.slice(1, 2, 1));
  EXPECT_THAT(value.to_vector<float>(), ElementsAre(-1, -4));
  apply(sgd{.rate = 0.5}, value, value);
  EXPECT_THAT(value.to_vector<float>(), ElementsAre(-0.5F, -2));
}

TEST(ApplyRuleTo, AGradientThatOverlapsWhatIsWrittenIsReadAsItWasBefore) {
  const auto all = tensor::arange<float>(0, 1001);
  const auto expected = all.slice(1, 1001).clone();
  apply(sgd{.rate = 1}, expected, all.slice(0, 1000).clone());
  apply(sgd{.rate = 1}, all.slice(1, 1001), all.slice(0, 1000));
  EXPECT_EQ(all.slice(1, 1001).to_vector<float>(), expected.to_vector<float>());
  const update_rule rule = sgd{.rate = 1, .momentum = 0.5};
  const auto value = tensor::ones<float>({3});
  const std::array states = {tensor::full<float>({3}, 2)};
  apply(rule, value, states[0], states);
  const auto value_apart = tensor::ones<float>({3});
  const std::array states_apart = {tensor::full<float>({3}, 2)};
  apply(rule, value_apart, states_apart[0].clone(), states_apart);
  EXPECT_EQ(value.to_vector<float>(), value_apart.to_vector<float>());
  EXPECT_EQ(states[0].to_vector<float>(), states_apart[0].to_vector<float>());
}

TEST(ApplyRuleTo, AVariableAndStatesThatOverlapAreRefusedWithTheirRanges) {
  const update_rule rule = adam{};
  const auto all = tensor::ones<float>({10});
  const auto apart = tensor::zeros<float>({4});
  const auto refused = [&](const tensor& value, const std::array<tensor, 2>& states) {
    return refusal([&] { apply(rule, value, tensor::ones<float>({4}), states); });
  };
  EXPECT_THAT(refused(all.slice(2, 6), {apart, all.slice(5, 9)}),
              AllOf(HasSubstr("the variable lies at bytes 0 to 16, and state 1 at bytes 12 to 28")));
  EXPECT_THAT(refused(all.slice(6, 10), {all.slice(1, 5), all.slice(1, 5)}),
              AllOf(HasSubstr("state 0 lies at bytes 0 to 16, and state 1 at bytes 0 to 16")));
  EXPECT_THAT(all.to_vector<float>(), testing::Each(1));
}

TEST(ApplyRuleTo, WhatDoesNotFitIsRefusedAndNothingIsWritten) {
  const update_rule rule = adam{};
  const auto value = tensor::ones<float>({2, 3});
  const auto gradient = tensor::ones<float>({2, 3});
  const auto states = make_states(rule, value);
  const auto refused = [&](const tensor& slope, std::span<const tensor> remembered, std::uint64_t step = 1) {
    return refusal([&] { apply(rule, value, slope, remembered, step); });
  };
  EXPECT_THAT(refused(tensor::ones<float>({3, 2}), states),
              AllOf(HasSubstr("rule adam"), HasSubstr("the gradient is of f32 (3, 2)"), HasSubstr("f32 (2, 3)")));
  EXPECT_THAT(refused(tensor::ones<double>({2, 3}), states), HasSubstr("the gradient is of f64"));
  EXPECT_THAT(refused(gradient, {}), AllOf(HasSubstr("0 states were given"), HasSubstr("it has 2")));
  EXPECT_THAT(refused(gradient, std::array{states[0], tensor::zeros<double>({2, 3})}),
              AllOf(HasSubstr("a state is of f64"), HasSubstr("f32 (2, 3)")));
  EXPECT_THAT(refused(gradient, states, 0), HasSubstr("step 0"));
  EXPECT_THAT(refusal([&] { apply(rule, tensor::ones<float>({3, 2}).transpose(), gradient, states); }),
              HasSubstr("the variable of shape (2, 3) is not contiguous"));
  EXPECT_THAT(refusal([&] { apply(sgd{.rate = -1}, value, gradient); }), HasSubstr("rate"));
  EXPECT_THAT(refusal([&] { apply(sgd{.rate = 1}, tensor::ones<std::int32_t>({1}), tensor::ones<std::int32_t>({1})); }),
              HasSubstr("dtype i32"));
  EXPECT_THAT(refusal([&] { static_cast<void>(make_states(rule, tensor::ones<bool>({1}))); }), HasSubstr("dtype bool"));

  std::vector<float> own(3, 1);
  std::vector<float> state(3);
  EXPECT_THAT(refusal([&] { apply<float>(sgd{.rate = 1}, own, std::vector<float>(2)); }),
              AllOf(HasSubstr("gradient has 2 elements"), HasSubstr("variable 3")));
  std::vector<float> other(3);
  const std::array two = {std::span(state), std::span(other).first(2)};
  EXPECT_THAT(refusal([&] { apply<float>(rule, own, own, two); }), HasSubstr("state 1 has 2 elements"));
  const std::array three = {std::span(state), std::span(state), std::span(state)};
  EXPECT_THAT(refusal([&] { apply<float>(rule, own, own, three); }), HasSubstr("3 states were given"));
  EXPECT_THAT(own, ElementsAre(1, 1, 1));
  EXPECT_THAT(value.to_vector<float>(), testing::Each(1));
}

}  // namespace
}  // namespace muster::apply_rule_test
