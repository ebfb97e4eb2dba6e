// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/gradient_reducers.hpp>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>

#include "kv_apply.hpp"

namespace muster::detail {

namespace {

[[noreturn]] void refuse_gradients(const std::string& why) {
  throw error(errc::invalid_argument, text("gradients were refused: ", why));
}

update_rule with_rate(const update_rule& rule, double rate) {
  return std::visit(
      [&](auto changed) {
        if constexpr (!std::is_same_v<decltype(changed), assign_rule>) changed.rate = rate;
        return update_rule(changed);
      },
      rule.get());
}

std::optional<std::int64_t> take_at(gradient_primary& primary, const state_dict& sum, std::uint64_t count) {
  return primary.take(sum, count);
}

}  // namespace

void failure_list::note(std::exception_ptr failure) {
  const scoped_lock lock(mutex_);
  all_.push_back(std::move(failure));
}

std::exception_ptr failure_list::take() {
  const scoped_lock lock(mutex_);
  if (all_.empty()) return nullptr;
  auto first = std::move(all_.front());
  all_.pop_front();
  return first;
}

// ---- sums

void gradient_sum::add(const state_dict& gradients, std::uint64_t count) {
  if (count_ == 0) {
    sum_ = gradients.clone();
  } else {
    if (!sum_.is_like(gradients)) refuse_gradients("names, dtypes or shapes are not those of the ones before");
    for (const auto& name : sum_.names()) accumulate(sum_.at(name), gradients.at(name));
  }
  count_ += count;
}

void gradient_sum::clear() noexcept {
  sum_ = state_dict();
  count_ = 0;
}

// ---- steps

learner::learner(const state_dict& model, const update_rule& rule, schedule rate, gradient_reduction reduction)
    : model_(model.clone()), rule_(rule), rate_(std::move(rate)) {
  rule.require();
  const auto op = reduction == gradient_reduction::mean ? reduction_op::avg : reduction_op::sum;
  for (const auto& name : model_.names()) rule.require(model_.at(name).dtype(), op);
  for (std::size_t each = 0; each < rule.state_count(); ++each) {
    std::vector<std::pair<std::string, tensor>> zeros;
    for (const auto& name : model_.names()) {
      const auto like = model_.at(name);
      zeros.emplace_back(name, tensor::zeros(update_rule::state_type(like.dtype()), like.shape()));
    }
    states_.emplace_back(zeros);
  }
}

void learner::require_like(const state_dict& gradients) const {
  if (!model_.is_like(gradients)) refuse_gradients("names, dtypes or shapes are not those of the model");
}

void learner::step(const state_dict& gradients, double factor) {
  require_like(gradients);
  ++steps_;
  const auto rule = rate_ ? with_rate(rule_, rate_(steps_)) : rule_;
  rule.require();
  for (const auto& name : model_.names()) {
    const auto value = model_.at(name);
    const auto gradient = gradients.at(name);
    std::vector<tensor> states;
    for (const auto& each : states_) states.push_back(each.at(name));
    apply_rule({rule, value, value, states, states, steps_}, std::span(&gradient, 1), factor);
  }
}

// ---- the primary one

gradient_primary::gradient_primary(std::shared_ptr<learner> by, model_server server,
                                   std::shared_ptr<failure_list> failed, const gradient_options& how)
    : by_(std::move(by)), server_(std::move(server)), failed_(std::move(failed)), how_(how) {}

std::optional<std::int64_t> gradient_primary::take(const state_dict& sum, std::uint64_t count) {
  if (is_closed_) return std::nullopt;
  by_->require_like(sum);
  sum_.add(sum, count);
  if (++parts_ >= how_.batch) step();
  return by_->model().version();
}

void gradient_primary::flush() {
  if (parts_ != 0) step();
  if (parts_ == 0) return;
  throw error(errc::invalid_argument,
              text("the step of the model '", how_.model, "' failed: watch() says why, at its primary"));
}

void gradient_primary::close() {
  is_closed_ = true;
  flush();
}

// What it was to learn by waits for the next step where this one cannot be made.
void gradient_primary::step() {
  try {
    const auto count = static_cast<double>(sum_.count());
    by_->step(sum_.sum(), how_.reduction == gradient_reduction::mean ? 1 / count : 1);
    sum_.clear();
    parts_ = 0;
    if (server_.push(by_->model(), {.pull_on_fail = false})) return;
    throw error(errc::invalid_argument,
                text("the model '", how_.model, "' was pushed by another than its gradient server"));
  } catch (...) {
    failed_->note(std::current_exception());
  }
}

// ---- a secondary one

gradient_secondary::gradient_secondary(std::function<remote_ref<gradient_primary>()> find_primary,
                                       std::shared_ptr<failure_list> failed, const gradient_options& how)
    : find_primary_(std::move(find_primary)), failed_(std::move(failed)), how_(how) {}

// What the primary has not taken, and cannot take any more, is passed on with the next ones. Where it is not known
// whether it has, it is not: it would count twice.
std::exception_ptr gradient_secondary::look_at(passed& one) {
  try {
    const auto version = one.taken.get();
    if (version) {
      version_ = std::max(version_, *version);
    } else {
      sum_.add(one.what.sum(), one.what.count());
    }
  } catch (...) {
    failed_->note(std::current_exception());
    return std::current_exception();
  }
  return nullptr;
}

gradient_verdict gradient_secondary::give(const state_dict& gradients) {
  if (is_closed_) return gradient_verdict::closed;
  for (auto each = passed_.begin(); each != passed_.end();) {
    const auto one = each++;
    if (!one->taken.ready()) continue;
    static_cast<void>(look_at(*one));
    passed_.erase(one);
  }
  if (how_.staleness && version_ - gradients.version() > static_cast<std::int64_t>(*how_.staleness)) {
    return gradient_verdict::too_old;
  }
  sum_.add(gradients, 1);
  if (sum_.count() >= how_.batch) {
    try {
      pass_on();
    } catch (...) {  // with the next ones
      failed_->note(std::current_exception());
    }
  }
  return gradient_verdict::counted;
}

void gradient_secondary::pass_on() {
  auto taken = find_primary_().call_async(take_at, sum_.sum(), sum_.count());
  passed_.push_back({.what = std::exchange(sum_, {}), .taken = std::move(taken)});
}

void gradient_secondary::flush() {
  if (sum_.count() != 0) pass_on();
  std::exception_ptr first;
  for (auto& each : std::exchange(passed_, {})) {
    if (const auto failure = look_at(each); first == nullptr) first = failure;
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void gradient_secondary::close() {
  is_closed_ = true;
  flush();
}

}  // namespace muster::detail
