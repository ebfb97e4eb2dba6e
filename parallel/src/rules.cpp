// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/rules.hpp>

#include <array>
#include <cmath>
#include <limits>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

using limits = std::numeric_limits<float>;

constexpr std::array<std::string_view, 7> rule_names = {"assign",  "sgd",      "adam",  "adagrad",
                                                        "rmsprop", "adadelta", "adamax"};
static_assert(rule_names.size() == std::variant_size_v<update_rule::alternatives>);

/// What a number of a rule may be.
enum class range { above_zero, from_zero, below_one };

struct field {
  std::string_view rule;
  std::string_view name;
  double value;
  range allowed;
};

template <class Check>
void each_field(const assign_rule&, const Check&) {}

template <class Check>
void each_field(const sgd& rule, const Check& check) {
  check(field{"sgd", "rate", rule.rate, range::above_zero});
  check(field{"sgd", "momentum", rule.momentum, range::below_one});
  check(field{"sgd", "weight_decay", rule.weight_decay, range::from_zero});
}

template <class Check>
void each_field(const adam& rule, const Check& check) {
  check(field{"adam", "rate", rule.rate, range::above_zero});
  check(field{"adam", "beta1", rule.beta1, range::below_one});
  check(field{"adam", "beta2", rule.beta2, range::below_one});
  check(field{"adam", "epsilon", rule.epsilon, range::above_zero});
  check(field{"adam", "weight_decay", rule.weight_decay, range::from_zero});
}

template <class Check>
void each_field(const adagrad& rule, const Check& check) {
  check(field{"adagrad", "rate", rule.rate, range::above_zero});
  check(field{"adagrad", "epsilon", rule.epsilon, range::above_zero});
}

template <class Check>
void each_field(const rmsprop& rule, const Check& check) {
  check(field{"rmsprop", "rate", rule.rate, range::above_zero});
  check(field{"rmsprop", "decay", rule.decay, range::below_one});
  check(field{"rmsprop", "epsilon", rule.epsilon, range::above_zero});
  check(field{"rmsprop", "momentum", rule.momentum, range::below_one});
}

template <class Check>
void each_field(const adadelta& rule, const Check& check) {
  check(field{"adadelta", "rate", rule.rate, range::above_zero});
  check(field{"adadelta", "decay", rule.decay, range::below_one});
  check(field{"adadelta", "epsilon", rule.epsilon, range::above_zero});
}

template <class Check>
void each_field(const adamax& rule, const Check& check) {
  check(field{"adamax", "rate", rule.rate, range::above_zero});
  check(field{"adamax", "beta1", rule.beta1, range::below_one});
  check(field{"adamax", "beta2", rule.beta2, range::below_one});
  check(field{"adamax", "epsilon", rule.epsilon, range::above_zero});
}

// NaN is in none.
bool is_in(range allowed, double value) {
  if (allowed == range::below_one) return value >= 0 && value < 1;
  return std::isfinite(value) && (allowed == range::above_zero ? value > 0 : value >= 0);
}

std::string_view text_of(range allowed) {
  if (allowed == range::below_one) return "at least 0 and less than 1";
  return allowed == range::above_zero ? "finite and above 0" : "finite and at least 0";
}

[[noreturn]] void refuse(const field& wrong, std::string_view what_is_allowed) {
  throw error(errc::invalid_argument, text("the rule ", wrong.rule, " was given the ", wrong.name, " ", wrong.value,
                                           ": it must be ", what_is_allowed));
}

void require_in_range(const field& given) {
  if (!is_in(given.allowed, given.value)) refuse(given, text_of(given.allowed));
}

// Less than the least normal number would lose its digits, or be 0.
void require_in_float(const field& given) {
  const bool too_small = given.allowed == range::above_zero && given.value < limits::min();
  if (!too_small && given.value <= limits::max()) return;
  refuse(given, text("from ", limits::min(), " to ", limits::max(), " for a variable that is computed with in f32"));
}

void require_momentum_for_nesterov(const sgd* rule) {
  if (rule == nullptr || !rule->nesterov || rule->momentum > 0) return;
  throw error(errc::invalid_argument,
              "the rule sgd was given nesterov with the momentum 0: give a momentum above 0, or no nesterov");
}

void require_rule_for_assigned(dtype type, reduction_op op) {
  reduction(op).require(type);
  const bool is_whole = type < dtype::f16;
  if (op != reduction_op::avg || !is_whole) return;
  throw error(errc::invalid_argument, text("a variable of dtype ", type,
                                           " cannot be assigned an avg, which is weighted "
                                           "by rows and not whole: give sum, or make the variable one of f32 or f64"));
}

void require_rule_for_gradient(std::string_view name, dtype type, reduction_op op) {
  if (type < dtype::f16 || type > dtype::f64) {
    throw error(errc::invalid_argument, text("the rule ", name, " cannot be applied to a variable of dtype ", type,
                                             ": it takes f16, bf16, f32 and f64; for others there is assign_rule"));
  }
  if (op == reduction_op::sum || op == reduction_op::avg) return;
  throw error(errc::invalid_argument, text("the rule ", name, " cannot be applied to a gradient reduced by ", op,
                                           ": it takes sum and avg; for others there is assign_rule"));
}

}  // namespace

// Of bytes from elsewhere the index may be anything.
std::string_view update_rule::name() const noexcept {
  return rule_.index() < rule_names.size() ? rule_names[rule_.index()] : "unknown";
}

std::size_t update_rule::state_count() const noexcept {
  if (const auto* const rule = std::get_if<sgd>(&rule_)) return rule->momentum > 0 ? 1 : 0;
  if (std::holds_alternative<adam>(rule_) || std::holds_alternative<adamax>(rule_)) return 2;
  if (std::holds_alternative<adadelta>(rule_)) return 2;
  if (std::holds_alternative<adagrad>(rule_)) return 1;
  if (const auto* const rule = std::get_if<rmsprop>(&rule_)) return rule->momentum > 0 ? 2 : 1;
  return 0;
}

void update_rule::require() const {
  if (rule_.index() >= rule_names.size()) {
    throw error(errc::invalid_argument, text("a rule of kind ", rule_.index(), " was given, which there is not"));
  }
  in_fixed_float_state([this] { std::visit([](const auto& rule) { each_field(rule, require_in_range); }, rule_); });
  require_momentum_for_nesterov(std::get_if<sgd>(&rule_));
}

void update_rule::require(dtype type, reduction_op op) const {
  require();
  if (std::holds_alternative<assign_rule>(rule_)) return require_rule_for_assigned(type, op);
  require_rule_for_gradient(name(), type, op);
  if (type == dtype::f64) return;
  in_fixed_float_state([this] { std::visit([](const auto& rule) { each_field(rule, require_in_float); }, rule_); });
}

}  // namespace muster
