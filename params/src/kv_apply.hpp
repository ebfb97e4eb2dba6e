// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <span>

#include <muster/device/tensor.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/params/detail/kv_gradient.hpp>
#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// What a rule makes of a value; `next` may be `value`, and `after` be `before`.
///
/// Thread safety: belongs to its thread.
struct rule_step {
  const update_rule& rule;
  const tensor& value;
  const tensor& next;
  std::span<const tensor> before;
  std::span<const tensor> after;
  std::uint64_t step = 1;
};

/// Sums gradients in their order, times `factor`, and has the rule make the next value of it, and the next states.
/// Requires: all contiguous, and alike.
void apply_rule(const rule_step& of, std::span<const tensor> gradients, double factor = 1);
/// The same, of what workers push. Where all gradients are rows, only those change, and what the rule remembers of
/// them.
void apply_to_all(const rule_step& of, std::span<const kv_gradient> gradients);
/// Has the updater change a copy of the value where the next one will lie. Throws what it throws.
void apply_updater(const kv_updater& by, const store_key& key, std::span<const kv_gradient> gradients,
                   const tensor& value, const tensor& next);

}  // namespace muster::detail
