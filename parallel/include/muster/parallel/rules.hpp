// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a variable follows from its old value and a reduced gradient.
//
// The formulas are those of torch.optim, so that results can be compared. In them p is the variable, g the gradient
// after it was reduced over slices and ranks, t the number of the update, 1 for the first; all else are numbers of the
// rule, or states: arrays of the variable's shape that begin as zeros and are kept from one update to the next.
//
// Thread safety: values; distinct objects: safe. Shared objects: safe while nobody assigns.

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <variant>

#include <muster/collectives/reduction.hpp>
#include <muster/device/dtype.hpp>
#include <muster/serialize/plain_bytes.hpp>

namespace muster {

/// The reduced value becomes the variable's: p ← g. No states, any dtype.
struct assign_rule {
  [[nodiscard]] friend bool operator==(const assign_rule&, const assign_rule&) = default;
};

/// Stochastic gradient descent, as torch.optim.SGD without dampening.
///
///     g ← g + weight_decay·p
///     b ← momentum·b + g                  the state; without momentum there is none, and b is g
///     p ← p - rate·b                      nesterov: p - rate·(g + momentum·b)
///
/// B. Polyak, "Some methods of speeding up the convergence of iteration methods", 1964; nesterov as I. Sutskever et
/// al. put it in "On the importance of initialization and momentum in deep learning", ICML 2013.
struct sgd {
  double rate = 0;          ///< finite, above 0: there is no default that is good for all
  double momentum = 0;      ///< at least 0, less than 1
  bool nesterov = false;    ///< only with momentum
  double weight_decay = 0;  ///< finite, at least 0

  [[nodiscard]] friend bool operator==(const sgd&, const sgd&) = default;
};

/// Adam; with weight_decay AdamW, as torch.optim.Adam and torch.optim.AdamW (whose default is a weight_decay of 0.01).
///
///     p ← p·(1 - rate·weight_decay)
///     m ← beta1·m + (1 - beta1)·g         the first state
///     v ← beta2·v + (1 - beta2)·g²        the second
///     p ← p - rate/(1 - beta1ᵗ) · m / (√v/√(1 - beta2ᵗ) + epsilon)
///
/// D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015; the decay of weights apart from the
/// gradient: I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
struct adam {
  double rate = 1e-3;       ///< finite, above 0
  double beta1 = 0.9;       ///< at least 0, less than 1
  double beta2 = 0.999;     ///< likewise
  double epsilon = 1e-8;    ///< finite, above 0
  double weight_decay = 0;  ///< finite, at least 0

  [[nodiscard]] friend bool operator==(const adam&, const adam&) = default;
};

/// AdaGrad, as torch.optim.Adagrad, whose defaults these are, without decay of rate and weights.
///
///     s ← s + g²                          the state
///     p ← p - rate·g / (√s + epsilon)
///
/// J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
/// JMLR 12, 2011.
struct adagrad {
  double rate = 0.01;      ///< finite, above 0
  double epsilon = 1e-10;  ///< finite, above 0

  [[nodiscard]] friend bool operator==(const adagrad&, const adagrad&) = default;
};

/// RMSProp, as torch.optim.RMSprop, whose defaults these are (its alpha is `decay`), not centred, without decay of
/// weights.
///
///     v ← decay·v + (1 - decay)·g²        the first state
///     b ← momentum·b + g/(√v + epsilon)   the second; without momentum there is none
///     p ← p - rate·b
///
/// T. Tieleman and G. Hinton, "Lecture 6.5: RMSProp", Neural Networks for Machine Learning, 2012.
struct rmsprop {
  double rate = 0.01;     ///< finite, above 0
  double decay = 0.99;    ///< at least 0, less than 1
  double epsilon = 1e-8;  ///< finite, above 0
  double momentum = 0;    ///< at least 0, less than 1

  [[nodiscard]] friend bool operator==(const rmsprop&, const rmsprop&) = default;
};

/// AdaDelta, as torch.optim.Adadelta, whose defaults these are (its rho is `decay`), without decay of weights.
///
///     s ← decay·s + (1 - decay)·g²        the first state
///     d ← √(a + epsilon) / √(s + epsilon) · g
///     a ← decay·a + (1 - decay)·d²        the second
///     p ← p - rate·d
///
/// M. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
struct adadelta {
  double rate = 1;        ///< finite, above 0
  double decay = 0.9;     ///< at least 0, less than 1
  double epsilon = 1e-6;  ///< finite, above 0

  [[nodiscard]] friend bool operator==(const adadelta&, const adadelta&) = default;
};

/// AdaMax, as torch.optim.Adamax, whose defaults these are, without decay of weights.
///
///     m ← beta1·m + (1 - beta1)·g         the first state
///     u ← max(beta2·u, |g| + epsilon)     the second
///     p ← p - rate/(1 - beta1ᵗ) · m / u
///
/// Section 7.1 of the paper on Adam.
struct adamax {
  double rate = 2e-3;     ///< finite, above 0
  double beta1 = 0.9;     ///< at least 0, less than 1
  double beta2 = 0.999;   ///< likewise
  double epsilon = 1e-8;  ///< finite, above 0

  [[nodiscard]] friend bool operator==(const adamax&, const adamax&) = default;
};

/// One of the rules.
///
///     w.function(gradients, updates(reduced_into(weights, avg, adam{.rate = 3e-4})));
///
/// Nothing is checked when it is made: `require` does that, in time for the text to name the variable too.
/// Process safety: it is nothing but its bytes, and may travel in a frame; whoever takes it out calls `require`.
class update_rule {
public:
  /// The rules that there are.
  using alternatives = std::variant<assign_rule, sgd, adam, adagrad, rmsprop, adadelta, adamax>;

  /// More states than this no rule has.
  static constexpr std::size_t most_states = 2;

  /// One of the rules, with its numbers; by default assign_rule.
  ///@{
  constexpr update_rule() noexcept = default;
  constexpr update_rule(const assign_rule& rule) noexcept : rule_(rule) {}
  constexpr update_rule(const sgd& rule) noexcept : rule_(rule) {}
  constexpr update_rule(const adam& rule) noexcept : rule_(rule) {}
  constexpr update_rule(const adagrad& rule) noexcept : rule_(rule) {}
  constexpr update_rule(const rmsprop& rule) noexcept : rule_(rule) {}
  constexpr update_rule(const adadelta& rule) noexcept : rule_(rule) {}
  constexpr update_rule(const adamax& rule) noexcept : rule_(rule) {}
  ///@}

  /// Returns the rule, with its numbers.
  [[nodiscard]] constexpr const alternatives& get() const noexcept { return rule_; }

  /// "assign", "sgd", "adam", "adagrad", "rmsprop", "adadelta", "adamax". Of bytes that are no rule, "unknown".
  [[nodiscard]] std::string_view name() const noexcept;

  /// How many states it has.
  [[nodiscard]] std::size_t state_count() const noexcept;

  /// What the states of a variable of dtype `type` are kept in: what the rule is computed in, f64 for f64, else f32.
  [[nodiscard]] static constexpr dtype state_type(dtype type) noexcept {
    return type == dtype::f64 ? dtype::f64 : dtype::f32;
  }

  /// Throws errc::invalid_argument unless all numbers are as their fields say; the text names the rule, the field, what
  /// was given and what is allowed.
  void require() const;

  /// And unless it can be applied to a variable of dtype `type`, with gradients reduced by `op`. assign_rule takes
  /// every dtype, with every op that `reduction` has for it but avg of integers and custom, because an average is
  /// weighted; the others take f16, bf16, f32 and f64, with sum and avg. What is computed in f32 needs a rate and an
  /// epsilon that it can hold.
  void require(dtype type, reduction_op op) const;

  [[nodiscard]] friend bool operator==(const update_rule&, const update_rule&) = default;

private:
  alternatives rule_;
};

static_assert(std::is_trivially_copyable_v<update_rule>);

/// Its alternatives hold numbers.
template <>
inline constexpr bool is_plain_bytes<update_rule> = true;

}  // namespace muster
