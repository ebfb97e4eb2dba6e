// SPDX-License-Identifier: BSL-1.0
#pragma once

// A rule on a variable of this process alone, without a world: on tensors, and on elements that are in no tensor.
//
//     const muster::update_rule rule = muster::adam{.rate = 1e-3};
//     const auto states = muster::make_states(rule, weights);
//     for (std::uint64_t step = 1; step <= 1000; ++step) {
//       muster::apply(rule, weights, gradient_at(weights), states, step);
//     }
//
// It gives what a world of one rank makes of the same gradients, to the bit: on any processor, however what is longer
// was cut into parts.
//
// Thread safety: all functions are safe to call from any thread, while nobody else uses the elements.
// Cost: one pass in which value, gradient and states are read once and written once, by vectors; no allocation, unless
// a gradient is not contiguous, or overlaps what is written.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/parallel/rules.hpp>

namespace muster {

/// What a rule remembers of `value` before its first update: as many tensors of zeros as it has states, of its shape
/// and of dtype update_rule::state_type. Throws errc::invalid_argument where the rule cannot be applied to it,
/// errc::out_of_memory.
[[nodiscard]] std::vector<tensor> make_states(const update_rule& rule, const tensor& value,
                                              memory where = memory::shared);

/// Makes of a variable and of what the rule remembers of it what the rule makes of them and a gradient; `step` is 1 for
/// the first update, and 1 more for each after it. Under assign_rule the gradient becomes the variable.
///
/// Throws errc::invalid_argument, with nothing written, unless the rule can be applied to the dtype (update_rule::
/// require, with sum), the gradient is of the variable's dtype and shape, there are as many states as the rule has,
/// each of state_type and of that shape, variable and states are contiguous and do not overlap, all are in the host's
/// memory, and step is not 0. The gradient may be the variable; where it overlaps variable or states otherwise it is
/// read as it was before, by way of a copy.
void apply(const update_rule& rule, const tensor& value, const tensor& gradient, std::span<const tensor> states = {},
           std::uint64_t step = 1);

namespace detail {

/// As many as a rule may have, and how many there were.
struct state_spans {
  void add(std::span<std::byte> one) noexcept {
    if (count < each.size()) each[count] = one;
    ++count;
  }

  std::array<std::span<std::byte>, update_rule::most_states> each;
  std::size_t count = 0;
};

void apply_to_elements(const update_rule& rule, dtype type, std::span<std::byte> value,
                       std::span<const std::byte> gradient, const state_spans& states, std::uint64_t step);

}  // namespace detail

/// What a state's elements are, of a variable whose elements are T.
template <tensor_element T>
using rule_state = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The same of elements of the program's own. States begin as zeros, and there are as many as update_rule::state_count:
///
///     const std::array states = {std::span(mean), std::span(square)};
///     muster::apply<float>(rule, weights, gradient, states, step);
template <tensor_element T>
  requires(!std::is_const_v<T>)
void apply(const update_rule& rule, std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
           std::span<const std::span<rule_state<std::type_identity_t<T>>>> states = {}, std::uint64_t step = 1) {
  detail::state_spans bytes;
  for (const auto& each : states) bytes.add(std::as_writable_bytes(each));
  detail::apply_to_elements(rule, dtype_of<T>, std::as_writable_bytes(value), std::as_bytes(gradient), bytes, step);
}

}  // namespace muster
