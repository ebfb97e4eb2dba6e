// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/rules.hpp>

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include <muster/serialize/archive.hpp>

#include "../device/device_support.hpp"

namespace muster::rules_test {
namespace {

using test::expect_refused;

constexpr auto infinite = std::numeric_limits<double>::infinity();
constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST(UpdateRule, IsAssignmentUnlessToldOtherwise) {
  EXPECT_EQ(update_rule(), update_rule(assign_rule{}));
  EXPECT_NE(update_rule(), update_rule(adam{}));
  EXPECT_EQ(update_rule(sgd{.rate = 0.5}), update_rule(sgd{.rate = 0.5}));
  EXPECT_NE(update_rule(sgd{.rate = 0.5}), update_rule(sgd{.rate = 0.25}));
}

TEST(UpdateRule, HasAName) {
  EXPECT_EQ(update_rule().name(), "assign");
  EXPECT_EQ(update_rule(sgd{.rate = 1}).name(), "sgd");
  EXPECT_EQ(update_rule(adam{}).name(), "adam");
  EXPECT_EQ(update_rule(adagrad{}).name(), "adagrad");
  EXPECT_EQ(update_rule(rmsprop{}).name(), "rmsprop");
  EXPECT_EQ(update_rule(adadelta{}).name(), "adadelta");
  EXPECT_EQ(update_rule(adamax{}).name(), "adamax");
}

TEST(UpdateRule, NeedsNoMoreStatesThanItUses) {
  EXPECT_EQ(update_rule().state_count(), 0U);
  EXPECT_EQ(update_rule(sgd{.rate = 1}).state_count(), 0U);
  EXPECT_EQ(update_rule(sgd{.rate = 1, .momentum = 0.9}).state_count(), 1U);
  EXPECT_EQ(update_rule(adam{}).state_count(), 2U);
  EXPECT_EQ(update_rule(adagrad{}).state_count(), 1U);
  EXPECT_EQ(update_rule(rmsprop{}).state_count(), 1U);
  EXPECT_EQ(update_rule(rmsprop{.momentum = 0.9}).state_count(), 2U);
  EXPECT_EQ(update_rule(adadelta{}).state_count(), 2U);
  EXPECT_EQ(update_rule(adamax{}).state_count(), 2U);
}

TEST(UpdateRule, KeepsStatesInWhatItComputesIn) {
  for (const auto type : {dtype::f16, dtype::bf16, dtype::f32}) EXPECT_EQ(update_rule::state_type(type), dtype::f32);
  EXPECT_EQ(update_rule::state_type(dtype::f64), dtype::f64);
}

TEST(UpdateRule, TakesTheDefaultsAndTheEdgesOfWhatIsAllowed) {
  for (const update_rule& rule : std::initializer_list<update_rule>{
           assign_rule{}, sgd{.rate = 1e-3}, sgd{.rate = 100, .momentum = 0.9, .nesterov = true, .weight_decay = 2},
           adam{}, adam{.beta1 = 0, .beta2 = 0}, adagrad{}, rmsprop{}, rmsprop{.decay = 0}, adadelta{},
           adamax{.beta1 = 0, .beta2 = 0}}) {
    EXPECT_NO_THROW(rule.require()) << rule.name();
    EXPECT_NO_THROW(rule.require(dtype::f32, reduction_op::avg)) << rule.name();
  }
}

TEST(UpdateRule, NamesTheFieldThatIsWrongAndWhatIsAllowed) {
  const auto refused = [](const update_rule& rule, auto... parts) {
    expect_refused([&] { rule.require(); }, parts...);
  };
  refused(sgd{}, "sgd", "the rate 0", "finite and above 0");
  refused(sgd{.rate = -1}, "the rate -1");
  refused(sgd{.rate = infinite}, "the rate inf");
  refused(sgd{.rate = not_a_number}, "the rate nan");
  refused(sgd{.rate = 1, .momentum = 1}, "sgd", "the momentum 1", "at least 0 and less than 1");
  refused(sgd{.rate = 1, .momentum = 0.9, .weight_decay = -1}, "the weight_decay -1", "finite and at least 0");
  refused(sgd{.rate = 1, .nesterov = true}, "sgd", "nesterov", "momentum above 0");
  refused(adam{.rate = 0}, "adam", "the rate 0");
  refused(adam{.beta1 = 1}, "adam", "the beta1 1", "less than 1");
  refused(adam{.beta2 = -0.1}, "adam", "the beta2 -0.1");
  refused(adam{.epsilon = 0}, "adam", "the epsilon 0");
  refused(adam{.weight_decay = infinite}, "adam", "the weight_decay inf");
  refused(adagrad{.rate = not_a_number}, "adagrad", "the rate nan");
  refused(adagrad{.epsilon = -1}, "adagrad", "the epsilon -1");
  refused(rmsprop{.decay = 1.5}, "rmsprop", "the decay 1.5");
  refused(rmsprop{.epsilon = infinite}, "rmsprop", "the epsilon inf");
  refused(rmsprop{.momentum = not_a_number}, "rmsprop", "the momentum nan");
  refused(adadelta{.rate = 0}, "adadelta", "the rate 0");
  refused(adadelta{.decay = 1}, "adadelta", "the decay 1");
  refused(adadelta{.epsilon = 0}, "adadelta", "the epsilon 0");
  refused(adamax{.rate = -1}, "adamax", "the rate -1");
  refused(adamax{.beta1 = 1}, "adamax", "the beta1 1");
  refused(adamax{.beta2 = 2}, "adamax", "the beta2 2");
  refused(adamax{.epsilon = 0}, "adamax", "the epsilon 0");
}

TEST(UpdateRule, OfAnOptimizerTakesFloatingPointSumsAndAverages) {
  for (const update_rule& rule :
       std::initializer_list<update_rule>{sgd{.rate = 1}, adam{}, adagrad{}, rmsprop{}, adadelta{}, adamax{}}) {
    for (const auto type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
      EXPECT_NO_THROW(rule.require(type, reduction_op::sum));
      EXPECT_NO_THROW(rule.require(type, reduction_op::avg));
    }
    for (const auto type : {dtype::boolean, dtype::i32, dtype::u64, dtype::c64, static_cast<dtype>(99)}) {
      expect_refused([&] { rule.require(type, reduction_op::sum); }, "f16, bf16, f32 and f64", "assign_rule");
    }
    expect_refused([&] { rule.require(dtype::f32, reduction_op::max); }, "by max", "sum and avg", "assign_rule");
  }
  expect_refused([] { update_rule(adam{.rate = 0}).require(dtype::f32, reduction_op::sum); }, "the rate 0");
}

TEST(UpdateRule, OfAssignmentTakesWhatCanBeReduced) {
  const update_rule rule;
  for (std::uint8_t number = 0; number < dtype_count; ++number) {
    EXPECT_NO_THROW(rule.require(static_cast<dtype>(number), reduction_op::sum));
  }
  EXPECT_NO_THROW(rule.require(dtype::i64, reduction_op::bxor));
  EXPECT_NO_THROW(rule.require(dtype::c128, reduction_op::avg));
  expect_refused([&] { rule.require(dtype::i32, reduction_op::avg); }, "i32", "avg", "give sum");
  expect_refused([&] { rule.require(dtype::c64, reduction_op::max); }, "c64", "max");
  expect_refused([&] { rule.require(dtype::f32, reduction_op::band); }, "f32", "band");
  expect_refused([&] { rule.require(dtype::f32, reduction_op::custom); }, "custom");
}

TEST(UpdateRule, ThatFloatCannotHoldIsForDoubleAlone) {
  const update_rule fine = adam{.epsilon = 1e-60};
  EXPECT_NO_THROW(fine.require(dtype::f64, reduction_op::sum));
  expect_refused([&] { fine.require(dtype::f32, reduction_op::sum); }, "epsilon 1e-60", "in f32");
  expect_refused([] { update_rule(sgd{.rate = 1e39}).require(dtype::f16, reduction_op::sum); }, "the rate 1e+39");
}

TEST(UpdateRule, TravelsAsItsBytes) {
  static_assert(detail::plain_type<update_rule>);
  const update_rule sent = rmsprop{.rate = 0.5, .momentum = 0.25};
  update_rule received;
  std::memcpy(&received, &sent, sizeof sent);
  EXPECT_EQ(received, sent);
}

TEST(UpdateRule, OfBytesThatAreNoneIsRefused) {
  update_rule forged;
  std::memset(static_cast<void*>(&forged), 0x77, sizeof forged);
  EXPECT_EQ(forged.name(), "unknown");
  EXPECT_EQ(forged.state_count(), 0U);
  expect_refused([&] { forged.require(); }, "a rule of kind");
}

}  // namespace
}  // namespace muster::rules_test
