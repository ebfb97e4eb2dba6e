// SPDX-License-Identifier: BSL-1.0
#pragma once

// What rule_apply.cpp and the units that are compiled for one instruction set each know of one another.
//
// Thread safety: pure functions; safe.

#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/device/detail/rule_step.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>

namespace muster::detail {

// What devices are asked for, too. A kind looks at the numbers that it needs.
using rule_kind = rule_step_kind;
using rule_numbers = rule_step;

/// The numbers of an update. Requires: rule.require() does not throw; 0 < step.
[[nodiscard]] rule_numbers numbers_of(const update_rule& rule, std::uint64_t step);

/// Whether all that the rule asks for is what `combine` does with the gradients. Integers come here only with a sum,
/// whose weights are 1.
[[nodiscard]] bool goes_by_combine(const update_rule& rule, reduction_op op, std::span<const double> weights);

/// The type that is computed with: a complex number's parts are multiplied by the same real one.
[[nodiscard]] dtype part_of_number(dtype type);

/// What a kernel is to do. Requires: a gradient, a new value.
struct rule_job {
  rule_numbers numbers;
  const std::byte* const* gradients;
  const double* weights;
  std::size_t gradient_count;
  const std::byte* value;
  std::byte* const* new_values;
  std::size_t value_count;
  const std::byte* const* old_states;
  std::byte* const* new_states;
  std::size_t state_count;
  std::size_t count;
  stores how;
};

/// Does the job; streaming stores are not fenced.
using rule_kernel = void (*)(const rule_job& job);

/// Gives the kernel of f16, bf16, f32 or f64, or null.
using rule_kernels = rule_kernel (*)(dtype type);

/// For any processor that the library was built for.
rule_kernel baseline_rule_kernel(dtype type);

/// For processors with AVX2 and F16C. Requires: has_avx2().
rule_kernel avx2_rule_kernel(dtype type);

/// `apply` with the kernels of one instruction set.
void apply_by(rule_kernels kernels, const update_rule& rule, const rule_pass& pass);

}  // namespace muster::detail
