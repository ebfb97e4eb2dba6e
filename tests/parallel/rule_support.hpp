// SPDX-License-Identifier: BSL-1.0
#pragma once

// Variables on their way through updates, for tests of the kernels of rules.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <muster/parallel/detail/rule_kernels.hpp>

#include "quick_random.hpp"
#include "rule_kernel.hpp"

namespace muster::test {

/// What `apply` may be made of on this machine.
inline std::vector<detail::rule_kernels> all_kernels() {
  std::vector<detail::rule_kernels> found = {detail::baseline_rule_kernel};
  if (detail::has_avx2()) found.push_back(detail::avx2_rule_kernel);
  return found;
}

inline std::vector<update_rule> optimizers() {
  return {sgd{.rate = 0.1},
          sgd{.rate = 0.1, .weight_decay = 0.01},
          sgd{.rate = 0.1, .momentum = 0.9},
          sgd{.rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
          adam{.rate = 0.05},
          adam{.rate = 0.05, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1},
          adagrad{.rate = 0.1},
          rmsprop{.rate = 0.05},
          rmsprop{.rate = 0.05, .decay = 0.9, .momentum = 0.5},
          adadelta{},
          adadelta{.rate = 0.5, .decay = 0.8, .epsilon = 1e-4},
          adamax{.rate = 0.05},
          adamax{.rate = 0.05, .beta1 = 0.5, .beta2 = 0.9}};
}

template <class T>
using wide_of = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
using column = std::vector<T>;

template <class T>
const std::byte* at(const column<T>& values, std::size_t index) {
  return reinterpret_cast<const std::byte*>(values.data() + index);
}

template <class T>
std::byte* at(column<T>& values, std::size_t index) {
  return reinterpret_cast<std::byte*>(values.data() + index);
}

template <class T>
bool same_bits(const column<T>& one, const column<T>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

/// Numbers of one sign for each element: what cancels out has no digits left to compare.
template <class T>
std::vector<column<T>> random_gradients(std::size_t ranks, std::size_t count, unsigned seed) {
  quick_random random(seed);
  std::vector<column<T>> made(ranks, column<T>(count));
  for (std::size_t index = 0; index < count; ++index) {
    const double sign = index % 3 == 0 ? -1 : 1;
    for (auto& each : made) each[index] = static_cast<T>(static_cast<wide_of<T>>(sign * random.between(0.1, 2)));
  }
  return made;
}

/// A variable with its states on its way through updates.
template <class T>
struct variable {
  using wide = wide_of<T>;

  variable(const update_rule& with, std::size_t count)
      : rule(with), values(count), states(with.state_count(), column<wide>(count)) {
    for (std::size_t index = 0; index < count; ++index) values[index] = T(wide(0.25) * static_cast<wide>(index % 7));
  }

  /// Elements [first, last) from themselves.
  void update(detail::rule_kernels kernels, const std::vector<column<T>>& gradients, const std::vector<double>& weights,
              std::size_t first, std::size_t last) {
    std::vector<const std::byte*> from;
    std::vector<const std::byte*> old_states;
    std::vector<std::byte*> new_states;
    for (const auto& each : gradients) from.push_back(at(each, first));
    for (auto& each : states) new_states.push_back(at(each, first));
    old_states.assign(new_states.begin(), new_states.end());
    auto* const to = at(values, first);
    detail::apply_by(kernels, rule,
                     {.type = dtype_of<T>,
                      .gradients = from,
                      .weights = weights,
                      .value = to,
                      .new_values = std::span(&to, 1),
                      .old_states = old_states,
                      .new_states = new_states,
                      .step = step,
                      .count = last - first});
  }

  bool operator==(const variable& other) const {
    return same_bits(values, other.values) && std::ranges::equal(states, other.states, same_bits<wide>);
  }

  update_rule rule;
  std::uint64_t step = 1;
  column<T> values;
  std::vector<column<wide>> states;
};

/// New values for three ranks, and new states, with guards around them. They begin at no line of the caches.
template <class T>
class replicas {
public:
  using wide = wide_of<T>;

  explicit replicas(const variable<T>& old)
      : count_(old.values.size()), values_(3, guarded<T>()), states_(old.states.size(), guarded<wide>()) {}

  void become(const variable<T>& old, const std::vector<column<T>>& gradients, const std::vector<double>& weights,
              detail::stores how) {
    std::vector<const std::byte*> from;
    std::vector<const std::byte*> old_states;
    std::vector<std::byte*> new_values;
    std::vector<std::byte*> new_states;
    for (const auto& each : gradients) from.push_back(at(each, 0));
    for (const auto& each : old.states) old_states.push_back(at(each, 0));
    for (auto& each : values_) new_values.push_back(at(each, before));
    for (auto& each : states_) new_states.push_back(at(each, before));
    detail::apply(old.rule, {.type = dtype_of<T>,
                             .gradients = from,
                             .weights = weights,
                             .value = at(old.values, 0),
                             .new_values = new_values,
                             .old_states = old_states,
                             .new_states = new_states,
                             .step = old.step,
                             .count = count_,
                             .how_to_store = how});
  }

  void expect(const variable<T>& expected) const {
    for (const auto& each : values_) expect_column(each, expected.values);
    for (std::size_t each = 0; each < states_.size(); ++each) expect_column(states_[each], expected.states[each]);
  }

private:
  static constexpr std::size_t before = 3;
  static constexpr int guard = 77;

  template <class Element>
  column<Element> guarded() const {
    return column<Element>(before + count_ + 1, Element(wide(guard)));
  }

  template <class Element>
  void expect_column(const column<Element>& found, const column<Element>& expected) const {
    EXPECT_EQ(std::memcmp(at(found, before), at(expected, 0), count_ * sizeof(Element)), 0);
    EXPECT_EQ(double(found[before - 1]), guard);
    EXPECT_EQ(double(found[before + count_]), guard);
  }

  std::size_t count_;
  std::vector<column<T>> values_;
  std::vector<column<wide>> states_;
};

}  // namespace muster::test
