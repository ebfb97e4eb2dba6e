// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_owner.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>

#include "kv_names.hpp"

namespace muster::detail {

namespace {

/// What a rule remembers of a value.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_states {
  std::uint64_t rule = 0;  ///< version of the rule that they are of
  std::uint64_t step = 0;  ///< of the last update
  std::vector<tensor> each;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(rule, step, each);
  }
};

[[noreturn]] void refuse_push(const store_key& key, std::size_t rank, const std::string& why) {
  throw error(errc::invalid_argument, text("a push of ", key, " by worker ", rank, " was refused: ", why));
}

void require_like(const store_key& key, std::size_t rank, const tensor& value, const tensor& given) {
  if (given.dtype() == value.dtype() && given.shape() == value.shape()) return;
  refuse_push(key, rank,
              text("it has dtype ", given.dtype(), " and shape ", given.shape(), ", and the value has dtype ",
                   value.dtype(), " and shape ", value.shape()));
}

// In the order of ranks: the same bits in every run.
void apply_rule(const update_rule& rule, const std::vector<tensor>& gradients, const tensor& value, const tensor& next,
                std::span<const tensor> states, std::uint64_t step) {
  std::vector<const std::byte*> from;
  for (const auto& each : gradients) from.push_back(each.data());
  const std::vector<double> weights(from.size(), 1.0);
  std::vector<std::byte*> state;
  for (const auto& each : states) state.push_back(each.data());
  const std::vector<const std::byte*> before(state.begin(), state.end());
  auto* const to = next.data();
  apply(rule, {.type = value.dtype(),
               .op = reduction_op::sum,
               .gradients = from,
               .weights = weights,
               .value = value.data(),
               .new_values = std::span(&to, 1),
               .old_states = before,
               .new_states = state,
               .step = step,
               .count = value.size()});
}

}  // namespace

kv_answer kv_owner::push(const store_key& key, std::size_t rank, std::uint64_t count, const tensor& gradient) {
  const auto now = values_.try_pull<tensor>(key);
  if (!now) refuse_push(key, rank, "there is no such value: init it first");
  require_like(key, rank, now->value, gradient);
  const auto given = gradient.contiguous();
  if (kind_ != kv_kind::sync) return push_alone(key, rank, count, given);
  auto& of = rounds_[key];
  look_at_workers();  // of a death before this push it is told, too
  const auto failures = values_.version(key_beside(key, 'f'));
  if (of.told_later.erase(rank) != 0) return {.what = kv_answer::verdict::failed, .failure = failures};
  of.given.insert_or_assign(rank, given);
  const kv_answer answer{.what = kv_answer::verdict::taken, .version = now->version + 1, .failure = failures + 1};
  try_to_end(key, of);
  return answer;
}

// One that was applied already, by an owner that died before it could say so, is not applied again.
kv_answer kv_owner::push_alone(const store_key& key, std::size_t rank, std::uint64_t count, const tensor& value) {
  const auto found = values_.try_pull<std::vector<std::uint64_t>>(key_beside(key, 'c'));
  auto counts = found ? found->value : std::vector<std::uint64_t>(how_.workers);
  counts.resize(std::max(counts.size(), rank + 1));
  const auto version = values_.version(key);
  if (counts[rank] >= count) return {.what = kv_answer::verdict::taken, .version = version};
  if (is_ahead(counts, rank)) return {.what = kv_answer::verdict::ahead, .version = version};
  counts[rank] = count;
  apply(key, {value}, &counts);
  return {.what = kv_answer::verdict::taken, .version = version + 1};
}

bool kv_owner::is_ahead(const std::vector<std::uint64_t>& counts, std::size_t rank) const {
  if (!how_.staleness) return false;
  auto slowest = counts[rank];
  for (std::size_t each = 0; each < counts.size(); ++each) {
    if (counts[each] != 0 && is_missing(each)) slowest = std::min(slowest, counts[each]);
  }
  return counts[rank] - slowest > *how_.staleness;
}

// It is there, or will be.
bool kv_owner::is_missing(std::size_t rank) const {
  const auto found = state_of_(rank);
  return found == member_state::expected || found == member_state::joined;
}

void kv_owner::try_to_end(const store_key& key, round& of) {
  for (std::size_t rank = 0; rank < how_.workers; ++rank) {
    if (!of.given.contains(rank) && is_missing(rank)) return;
  }
  std::vector<tensor> gradients;
  for (const auto& [rank, each] : of.given) gradients.push_back(each);
  try {
    apply(key, gradients, nullptr);
    of.given.clear();
  } catch (const std::exception& failure) {
    fail(key, of, {.why = failure.what()});
  }
}

void kv_owner::fail(const store_key& key, round& of, const kv_failure& why) {
  of.told_later.clear();
  for (std::size_t rank = 0; rank < how_.workers; ++rank) {
    if (!of.given.contains(rank) && is_missing(rank)) of.told_later.insert(rank);
  }
  of.given.clear();
  values_.push(key_beside(key, 'f'), why);
  wake_waiters(values_);
}

// A round that lacks the push of one that has just died has no effect; what it had given counts.
void kv_owner::look_at_workers() {
  std::vector<std::size_t> dead;
  for (std::size_t rank = 0; rank < how_.workers; ++rank) {
    const auto found = state_of_(rank);
    if (found == member_state::joined) lost_.erase(rank);
    if (found == member_state::lost && lost_.insert(rank).second) dead.push_back(rank);
  }
  for (auto& [key, of] : rounds_) {
    const auto missing = std::find_if(dead.begin(), dead.end(), [&](auto each) { return !of.given.contains(each); });
    if (missing != dead.end()) {
      fail(key, of, {.is_loss = true, .why = text("worker ", *missing, " has died before its push")});
    } else if (!of.given.empty()) {
      try_to_end(key, of);
    }
  }
}

std::vector<tensor> kv_owner::states_of(const store_key& key, const tensor& value) const {
  const auto found = values_.try_pull<kv_states>(key_beside(key, 's'));
  const auto rule = values_.try_pull<update_rule>(std::string{own_byte, 'r'});
  if (found && rule && found->value.rule == rule->version) return found->value.each;
  std::vector<tensor> made;
  for (std::size_t each = 0; rule && each < rule->value.state_count(); ++each) {
    made.push_back(tensor::zeros(update_rule::state_type(value.dtype()), value.shape()));
  }
  return made;
}

// Value, counts and states become the newest at one moment.
void kv_owner::apply(const store_key& key, const std::vector<tensor>& gradients,
                     const std::vector<std::uint64_t>* counts) {
  const auto value = values_.pull<tensor>(key).value;
  const auto rule = values_.try_pull<update_rule>(std::string{own_byte, 'r'});
  auto next = tensor::empty(value.dtype(), value.shape());
  std::vector<keyed_value> all{{key, next}};
  if (counts != nullptr) all.emplace_back(key_beside(key, 'c'), *counts);
  kv_states states;
  if (updater_) {
    const auto sum = tensor::empty(value.dtype(), value.shape());
    apply_rule(assign_rule(), gradients, value, sum, {}, 1);
    next.copy_from(value);
    updater_(key, sum, next);
    require_like(key, 0, value, next);
  } else if (rule) {
    const auto before = values_.try_pull<kv_states>(key_beside(key, 's'));
    const bool goes_on = before && before->value.rule == rule->version;
    states = {.rule = rule->version, .step = (goes_on ? before->value.step : 0) + 1, .each = states_of(key, value)};
    apply_rule(rule->value, gradients, value, next, states.each, states.step);
    all.emplace_back(key_beside(key, 's'), states);
  } else {
    apply_rule(assign_rule(), gradients, value, next, {}, 1);
  }
  if (!values_.push_all(all)) throw error(errc::invalid_argument, text("the value ", key, " was changed meanwhile"));
}

}  // namespace muster::detail
