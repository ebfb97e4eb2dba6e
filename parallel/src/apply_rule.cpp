// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/apply_rule.hpp>

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>

namespace muster {

namespace {

template <class... Why>
[[noreturn]] void refuse(const update_rule& rule, const Why&... why) {
  throw error(errc::invalid_argument, text("the rule ", rule.name(), " cannot be applied: ", why...));
}

void require_states(const update_rule& rule, std::size_t given) {
  if (given == rule.state_count()) return;
  refuse(rule, given, " states were given, but it has ", rule.state_count(), ": make_states() makes them");
}

void require_whole(const update_rule& rule, const char* what, const tensor& which) {
  if (which.is_contiguous()) return;
  refuse(rule, what, " of shape ", which.shape(), " is not contiguous: give a whole tensor, or a clone()");
}

void require_alike(const update_rule& rule, const char* what, const tensor& which, dtype type,
                   const tensor_shape& shape) {
  if (which.dtype() == type && which.shape() == shape) return;
  refuse(rule, what, " is of ", which.dtype(), ' ', which.shape(), ": it must be of ", type, ' ', shape);
}

std::span<std::byte> bytes_of(const tensor& which) { return {which.data(), which.nbytes()}; }

}  // namespace

std::vector<tensor> make_states(const update_rule& rule, const tensor& value, memory where) {
  rule.require(value.dtype(), reduction_op::sum);
  std::vector<tensor> made;
  made.reserve(rule.state_count());
  for (std::size_t each = 0; each < rule.state_count(); ++each) {
    made.push_back(tensor::zeros(update_rule::state_type(value.dtype()), value.shape(), where));
  }
  return made;
}

void apply(const update_rule& rule, const tensor& value, const tensor& gradient, std::span<const tensor> states,
           std::uint64_t step) {
  rule.require(value.dtype(), reduction_op::sum);
  require_states(rule, states.size());
  require_alike(rule, "the gradient", gradient, value.dtype(), value.shape());
  require_whole(rule, "the variable", value);
  detail::state_spans bytes;
  for (const auto& each : states) {
    require_alike(rule, "a state", each, update_rule::state_type(value.dtype()), value.shape());
    require_whole(rule, "a state", each);
    bytes.add(bytes_of(each));
  }
  detail::apply_to_elements(rule, value.dtype(), bytes_of(value), bytes_of(gradient.contiguous()), bytes, step);
}

void detail::apply_to_elements(const update_rule& rule, dtype type, std::span<std::byte> value,
                               std::span<const std::byte> gradient, const state_spans& states, std::uint64_t step) {
  rule.require(type, reduction_op::sum);
  require_states(rule, states.count);
  const auto count = value.size() / dtype_size(type);
  if (step == 0) refuse(rule, "step 0 was given: the first is 1");
  if (gradient.size() != value.size()) {
    refuse(rule, "the gradient has ", gradient.size() / dtype_size(type), " elements, and the variable ", count);
  }
  std::array<const std::byte*, update_rule::most_states> before{};
  std::array<std::byte*, update_rule::most_states> after{};
  const auto state_size = dtype_size(update_rule::state_type(type));
  for (std::size_t index = 0; index < states.count; ++index) {
    const auto& state = states.each[index];
    if (state.size() != count * state_size) {
      refuse(rule, "state ", index, " has ", state.size() / state_size, " elements, and the variable ", count);
    }
    before[index] = after[index] = state.data();
  }
  const auto* const from = gradient.data();
  auto* const to = value.data();
  constexpr double whole = 1;
  apply(rule, rule_pass{.type = type,
                        .op = reduction_op::sum,
                        .gradients = std::span(&from, 1),
                        .weights = std::span(&whole, 1),
                        .value = to,
                        .new_values = std::span(&to, 1),
                        .old_states = std::span(before).first(states.count),
                        .new_states = std::span(after).first(states.count),
                        .step = step,
                        .count = count});
}

}  // namespace muster
