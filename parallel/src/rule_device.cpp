// SPDX-License-Identifier: BSL-1.0
// What rule_apply.cpp does, on a device.
#include <algorithm>
#include <array>
#include <variant>

#include <muster/base/detail/float_state.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/parallel/detail/device_rule_pass.hpp>

#include "rule_kernel.hpp"

namespace muster::detail {

namespace {

bool is_half(dtype type) { return type == dtype::f16 || type == dtype::bf16; }

element_op element_op_of(reduction_op op) {
  switch (op) {
    case reduction_op::prod: return element_op::prod;
    case reduction_op::min: return element_op::min;
    case reduction_op::max: return element_op::max;
    default: return element_op::sum;
  }
}

// As `combine` joins them: the types of 16 bits in float, rounded once.
void join_there(const device_rule_pass& pass) {
  const auto op = element_op_of(pass.op);
  const auto type = pass.new_value.dtype();
  if (pass.gradients.size() == 1) return pass.new_value.copy_from(pass.gradients[0]);
  const auto wide = is_half(type) ? dtype::f32 : type;
  const auto sum = is_half(type) ? convert(pass.gradients[0], wide) : pass.new_value;
  if (!is_half(type)) sum.copy_from(pass.gradients[0]);
  for (const auto& each : std::span(pass.gradients).subspan(1)) accumulate(sum, convert(each, wide), op);
  if (is_half(type)) convert_into(pass.new_value, sum);
}

// The parts of a complex number are multiplied by the same real one.
void give(const update_rule& rule, const device_rule_pass& pass) {
  const auto type = pass.new_value.dtype();
  const auto part = part_of_number(type);
  pass.new_value.storage()->on_device()->operations().apply(
      numbers_of(rule, pass.step), {.type = part,
                                    .count = pass.new_value.size() * (dtype_size(type) / dtype_size(part)),
                                    .gradients = pass.gradients,
                                    .weights = pass.weights,
                                    .value = &pass.value,
                                    .new_value = &pass.new_value,
                                    .old_states = pass.old_states,
                                    .new_states = pass.new_states});
}

// More gradients than a kernel takes are summed before, in what the kernel would sum them in; the types of 16 bits go
// through the rule in float, which is what they are computed in.
void give_many(const update_rule& rule, const device_rule_pass& pass) {
  const auto type = pass.new_value.dtype();
  const auto wide = is_half(type) ? dtype::f32 : type;
  const auto sum = is_half(type) ? convert(pass.gradients[0], wide) : pass.gradients[0].clone();
  scale(sum, pass.weights[0]);
  for (std::size_t rank = 1; rank < pass.gradients.size(); ++rank) {
    axpy(pass.weights[rank], convert(pass.gradients[rank], wide), sum);
  }
  constexpr std::array whole = {1.0};
  auto summed = pass;
  summed.gradients = {sum};
  summed.weights = whole;
  summed.value = convert(pass.value, wide);
  if (is_half(type)) summed.new_value = tensor::empty(wide, pass.new_value.shape(), pass.new_value.device());
  give(rule, summed);
  if (is_half(type)) convert_into(pass.new_value, summed.new_value);
}

}  // namespace

void apply_there(const update_rule& rule, const device_rule_pass& pass) {
  const auto type = pass.new_value.dtype();
  rule.require(type, pass.op);
  if (goes_by_combine(rule, pass.op, pass.weights)) return join_there(pass);
  in_fixed_float_state([&] {  // the numbers of the step are computed here
    pass.gradients.size() > rule_step_tensors::most_gradients ? give_many(rule, pass) : give(rule, pass);
  });
}

}  // namespace muster::detail
