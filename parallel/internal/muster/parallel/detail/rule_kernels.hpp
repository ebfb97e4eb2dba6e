// SPDX-License-Identifier: BSL-1.0
#pragma once

// Reducing a variable's gradients and applying its rule, in one pass.
//
// Thread safety: distinct objects: safe; threads, and processes, may each take a range of the same arrays at once.
// Shared objects: the elements need their own discipline.

#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/collectives/detail/combine.hpp>
#include <muster/collectives/reduction.hpp>
#include <muster/device/dtype.hpp>
#include <muster/parallel/rules.hpp>

namespace muster::detail {

/// A range of a variable, and all that becomes of it. Every array begins at the range's first element and is aligned as
/// its elements want; those of states are of update_rule::state_type(type), the others of `type`.
/// Lifetime: borrows everything.
struct rule_pass {
  dtype type = dtype::f32;
  reduction_op op = reduction_op::sum;
  /// One or more, in the order of the ranks.
  std::span<const std::byte* const> gradients = {};
  /// What each is multiplied by: 1 for a sum, its share of the rows for an average. Not looked at for other ops.
  std::span<const double> weights = {};
  /// The variable. Not looked at for assign_rule.
  const std::byte* value = nullptr;
  /// One or more: each gets the same bits.
  std::span<std::byte* const> new_values = {};
  /// As many as the rule has, in its order.
  std::span<const std::byte* const> old_states = {};
  std::span<std::byte* const> new_states = {};
  /// 1 for the first update, and 1 more for each after it.
  std::uint64_t step = 1;
  /// Of elements.
  std::size_t count = 0;
  stores how_to_store = stores::normal;
};

/// Reduces the gradients, applies the rule, and stores new values and states.
///
/// sum and avg are the sum of weight·gradient in the order of the ranks; other ops go by `combine`. All is computed in
/// state_type, also the weights, and rounded to `type` once, at the end; but for what sums of weights 1 and other ops
/// give under assign_rule, which is what `combine` gives.
/// The result depends on the inputs alone, to the bit, but for which NaN one is: not on the processor, on how it is
/// stored, on alignment, or on how a longer array was cut into passes.
/// New and old may be the same memory, and what is written may be a gradient too; else it overlaps nothing.
/// Throws errc::invalid_argument as update_rule::require(type, op) does, with nothing written.
/// Requires: a gradient, a new value, as many weights as gradients, all of them 1 for integers and bools, states as the
/// rule says, 0 < step.
/// Visibility: whoever acquires what this thread released afterwards sees the results, however they were stored.
/// Works as follows: pieces that stay in the first cache are summed over all gradients, go through the rule where they
/// lie, and are written to all places.
/// Cost: each input is read once and each output written once; 18 KiB of stack, no allocation.
void apply(const update_rule& rule, const rule_pass& pass);

}  // namespace muster::detail
