// SPDX-License-Identifier: BSL-1.0
// Compiled as the kernels are: what is computed here goes into every element.
#include <cmath>
#include <type_traits>

#include "rule_kernel.hpp"

namespace muster::detail {

namespace {

// std::pow may give other bits on another processor. Squaring does not; its relative error grows with the exponent, but
// the power shrinks faster, and it is subtracted from 1.
double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result *= base;
    base *= base;
  }
  return result;
}

rule_numbers numbers(const assign_rule&, std::uint64_t) { return {}; }

rule_numbers numbers(const sgd& rule, std::uint64_t) {
  const auto moving = rule.nesterov ? rule_kind::nesterov : rule_kind::momentum;
  return {.kind = rule.momentum > 0 ? moving : rule_kind::plain,
          .rate = rule.rate,
          .momentum = rule.momentum,
          .weight_decay = rule.weight_decay};
}

rule_numbers numbers(const adam& rule, std::uint64_t step) {
  return {.kind = rule_kind::adam,
          .rate = rule.rate / (1 - power(rule.beta1, step)),
          .momentum = rule.beta1,
          .taken = 1 - rule.beta1,
          .decay = rule.beta2,
          .squared = 1 - rule.beta2,
          .root = std::sqrt(1 - power(rule.beta2, step)),
          .epsilon = rule.epsilon,
          .shrink = 1 - rule.rate * rule.weight_decay};
}

rule_numbers numbers(const adagrad& rule, std::uint64_t) {
  return {.kind = rule_kind::adagrad, .rate = rule.rate, .epsilon = rule.epsilon};
}

rule_numbers numbers(const rmsprop& rule, std::uint64_t) {
  return {.kind = rule.momentum > 0 ? rule_kind::rmsprop_momentum : rule_kind::rmsprop,
          .rate = rule.rate,
          .momentum = rule.momentum,
          .decay = rule.decay,
          .squared = 1 - rule.decay,
          .epsilon = rule.epsilon};
}

rule_numbers numbers(const adadelta& rule, std::uint64_t) {
  return {.kind = rule_kind::adadelta,
          .rate = rule.rate,
          .decay = rule.decay,
          .squared = 1 - rule.decay,
          .epsilon = rule.epsilon};
}

rule_numbers numbers(const adamax& rule, std::uint64_t step) {
  return {.kind = rule_kind::adamax,
          .rate = rule.rate / (1 - power(rule.beta1, step)),
          .momentum = rule.beta1,
          .taken = 1 - rule.beta1,
          .decay = rule.beta2,
          .epsilon = rule.epsilon};
}

}  // namespace

rule_numbers numbers_of(const update_rule& rule, std::uint64_t step) {
  return std::visit([step](const auto& each) { return numbers(each, step); }, rule.get());
}

}  // namespace muster::detail
