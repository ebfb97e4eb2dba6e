// SPDX-License-Identifier: BSL-1.0
#pragma once

// One step of an optimizer, as devices are asked for it (device_block.hpp). Programs name rules:
// muster/parallel/rules.hpp.

#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/device/dtype.hpp>

namespace muster {

class tensor;

/// A rule of an optimizer, by what has to be computed for an element.
enum class rule_step_kind : std::uint8_t {
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

/// What is the same for all elements of an update. A kind looks at those that it needs; the formulas are those of
/// muster::parallel.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rule_step {
  rule_step_kind kind = rule_step_kind::assign;
  double rate = 0;      ///< adam, adamax: with the correction of the mean
  double momentum = 0;  ///< adam, adamax: beta1
  double taken = 0;     ///< adam, adamax: 1 - beta1
  double decay = 0;     ///< of the squares. adam, adamax: beta2
  double squared = 0;   ///< 1 - decay
  double root = 1;      ///< adam: √(1 - beta2ᵗ)
  double epsilon = 0;
  double weight_decay = 0;  ///< sgd: added to the gradient, times the value
  double shrink = 1;        ///< adam: what the value is multiplied by
};

/// What it reads and writes: contiguous tensors on one device. Old and new may be the same memory, and what is written
/// may be a gradient too; else it overlaps nothing.
/// Lifetime: borrows everything.
struct rule_step_tensors {
  static constexpr std::size_t most_gradients = 16;

  dtype type =
      dtype::f32;         ///< f16, bf16, f32 or f64: what the elements are taken for; states are f64 for f64, else f32
  std::size_t count = 0;  ///< of those
  /// One to most_gradients, and what each is multiplied by before they are summed, in this order.
  std::span<const tensor> gradients = {};
  std::span<const double> weights = {};
  const tensor* value = nullptr;  ///< not looked at for rule_step_kind::assign
  const tensor* new_value = nullptr;
  std::span<const tensor> old_states = {};  ///< at most two
  std::span<const tensor> new_states = {};
};

}  // namespace muster
