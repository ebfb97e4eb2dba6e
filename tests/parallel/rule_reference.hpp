// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a rule is to give, one number after the other in double, as its formulas are written.

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include <muster/parallel/rules.hpp>

namespace muster::test {

/// An element of a variable, with its states.
struct reference_element {
  double value = 0;
  std::array<double, 2> states = {0, 0};

  void update(const assign_rule&, double gradient, double) { value = gradient; }

  void update(const sgd& rule, double gradient, double) {
    gradient += rule.weight_decay * value;
    auto step = gradient;
    if (rule.momentum > 0) {
      states[0] = rule.momentum * states[0] + gradient;
      step = rule.nesterov ? gradient + rule.momentum * states[0] : states[0];
    }
    value -= rule.rate * step;
  }

  void update(const adam& rule, double gradient, double t) {
    value -= rule.rate * rule.weight_decay * value;
    states[0] = rule.beta1 * states[0] + (1 - rule.beta1) * gradient;
    states[1] = rule.beta2 * states[1] + (1 - rule.beta2) * gradient * gradient;
    const auto mean = states[0] / (1 - std::pow(rule.beta1, t));
    const auto square = states[1] / (1 - std::pow(rule.beta2, t));
    value -= rule.rate * mean / (std::sqrt(square) + rule.epsilon);
  }

  void update(const adagrad& rule, double gradient, double) {
    states[0] += gradient * gradient;
    value -= rule.rate * gradient / (std::sqrt(states[0]) + rule.epsilon);
  }

  void update(const rmsprop& rule, double gradient, double) {
    states[0] = rule.decay * states[0] + (1 - rule.decay) * gradient * gradient;
    auto step = gradient / (std::sqrt(states[0]) + rule.epsilon);
    if (rule.momentum > 0) step = states[1] = rule.momentum * states[1] + step;
    value -= rule.rate * step;
  }

  void update(const adadelta& rule, double gradient, double) {
    states[0] = rule.decay * states[0] + (1 - rule.decay) * gradient * gradient;
    const auto step = std::sqrt(states[1] + rule.epsilon) / std::sqrt(states[0] + rule.epsilon) * gradient;
    states[1] = rule.decay * states[1] + (1 - rule.decay) * step * step;
    value -= rule.rate * step;
  }

  void update(const adamax& rule, double gradient, double t) {
    states[0] = rule.beta1 * states[0] + (1 - rule.beta1) * gradient;
    states[1] = std::max(rule.beta2 * states[1], std::abs(gradient) + rule.epsilon);
    value -= rule.rate / (1 - std::pow(rule.beta1, t)) * states[0] / states[1];
  }

  void update(const update_rule& rule, double gradient, std::uint64_t t) {
    std::visit([&](const auto& each) { update(each, gradient, static_cast<double>(t)); }, rule.get());
  }
};

}  // namespace muster::test
