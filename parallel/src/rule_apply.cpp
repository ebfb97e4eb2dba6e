// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <type_traits>

#include <muster/base/assert.hpp>
#include <muster/base/detail/float_state.hpp>

#include "rule_kernel.hpp"

namespace muster::detail {

namespace {

bool is_weighted(reduction_op op) { return op == reduction_op::sum || op == reduction_op::avg; }

void check(const update_rule& rule, const rule_pass& pass) {
  rule.require(pass.type, pass.op);
  MUSTER_ASSERT(!pass.gradients.empty() && !pass.new_values.empty());
  MUSTER_ASSERT(!is_weighted(pass.op) || pass.weights.size() == pass.gradients.size());
  MUSTER_ASSERT(pass.old_states.size() == rule.state_count() && pass.new_states.size() == rule.state_count());
  MUSTER_ASSERT(pass.step > 0);
}

rule_job job_of(const update_rule& rule, const rule_pass& pass, std::size_t parts) {
  return {.numbers = numbers_of(rule, pass.step),
          .gradients = pass.gradients.data(),
          .weights = pass.weights.data(),
          .gradient_count = pass.gradients.size(),
          .value = pass.value,
          .new_values = pass.new_values.data(),
          .value_count = pass.new_values.size(),
          .old_states = pass.old_states.data(),
          .new_states = pass.new_states.data(),
          .state_count = pass.new_states.size(),
          .count = pass.count * parts,
          .how = pass.how_to_store};
}

}  // namespace

bool goes_by_combine(const update_rule& rule, reduction_op op, std::span<const double> weights) {
  if (!std::holds_alternative<assign_rule>(rule.get())) return false;
  if (!is_weighted(op)) return true;
  return op == reduction_op::sum && std::ranges::all_of(weights, [](double weight) { return weight == 1; });
}

dtype part_of_number(dtype type) {
  if (type == dtype::c64) return dtype::f32;
  return type == dtype::c128 ? dtype::f64 : type;
}

void apply_by(rule_kernels kernels, const update_rule& rule, const rule_pass& pass) {
  check(rule, pass);
  if (pass.count == 0) return;
  if (goes_by_combine(rule, pass.op, pass.weights)) {
    return combine(pass.op, pass.type, pass.gradients, pass.new_values, pass.count, pass.how_to_store);
  }
  const auto type = part_of_number(pass.type);
  const auto kernel = kernels(type);
  MUSTER_ASSERT(kernel != nullptr);
  in_fixed_float_state([&] { kernel(job_of(rule, pass, dtype_size(pass.type) / dtype_size(type))); });
  fence(pass.how_to_store);
}

void apply(const update_rule& rule, const rule_pass& pass) {
  apply_by(has_avx2() ? avx2_rule_kernel : baseline_rule_kernel, rule, pass);
}

}  // namespace muster::detail
