// SPDX-License-Identifier: BSL-1.0
#pragma once

// What rule_apply.cpp and the units that are compiled for one instruction set each know of one another.
//
// Thread safety: pure functions; safe.

#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/parallel/detail/rule_kernels.hpp>

namespace muster::detail {

/// A rule, by what has to be computed for an element.
enum class rule_kind : std::uint8_t {
  assign,
  plain,
  momentum,
  nesterov,
  adam,
  adagrad,
  rmsprop,
  rmsprop_momentum,
  adadelta,
  adamax
};

/// What is the same for all elements of an update. A kind looks at those it needs.
struct rule_numbers {
  rule_kind kind = rule_kind::assign;
  double rate = 0;      // adam, adamax: with the correction of the mean
  double momentum = 0;  // adam, adamax: beta1
  double taken = 0;     // adam, adamax: 1 - beta1
  double decay = 0;     // of the squares. adam, adamax: beta2
  double squared = 0;   // 1 - decay
  double root = 1;      // adam: √(1 - beta2ᵗ)
  double epsilon = 0;
  double weight_decay = 0;  // sgd: added to the gradient, times the value
  double shrink = 1;        // adam: what the value is multiplied by
};

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
