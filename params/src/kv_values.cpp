// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_values.hpp>

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "kv_apply.hpp"
#include "kv_names.hpp"
#include "store_parts.hpp"

namespace muster::detail {

std::optional<tensor> kv_values::find(const store_key& key) const {
  if (auto there = placed_ ? placed_->find(key) : std::nullopt) return std::move(there->value);
  auto found = all_.try_pull<tensor>(key);
  if (!found) return std::nullopt;
  return std::move(found->value);
}

kv_ownership kv_values::owner(const store_key& key) const {
  auto found = all_.try_pull<kv_ownership>(key_beside(key, 'o'));
  return found ? found->value : kv_ownership();
}

pulled<kv_record> kv_values::record(const store_key& key) const {
  return all_.try_pull<kv_record>(key_beside(key, 'c')).value_or(pulled<kv_record>{.value = {}});
}

pulled<bool> kv_values::wanted_updater() const {
  return all_.try_pull<bool>(key_of_all('u')).value_or(pulled<bool>{.value = false});
}

bool kv_values::note(const store_key& key, pulled<kv_record>& record) const {
  const auto made = all_.push(key_beside(key, 'c'), record.value, {.expected = record.version});
  if (made) record.version = made.version;
  return made.ok;
}

namespace {

// Whether the rule goes on from the states that there are, if they fit.
bool begin_step(const kv_rule& by, bool states_fit, kv_record& record) {
  const bool goes_on = record.rule == by.kind && states_fit;
  record.step = goes_on ? record.step + 1 : 1;
  record.rule = by.kind;
  return goes_on;
}

bool is_state_of(const tensor& state, const tensor& value) {
  return state.dtype() == update_rule::state_type(value.dtype()) && state.shape() == value.shape();
}

/// The next versions of a value and of what belongs to it, which become the newest together.
///
/// Thread safety: belongs to its thread.
class kv_draft {
public:
  kv_draft(const store& all, const store_key& key)
      : all_(all), core_(store_parts::core(all)), key_(key), value_(all.pull<tensor>(key)) {
    next_ = add(key, value_.value);
  }

  [[nodiscard]] const tensor& value() const noexcept { return value_.value; }
  [[nodiscard]] const tensor& next() const noexcept { return next_; }

  void apply(const kv_rule& by, std::span<const kv_gradient> gradients, kv_record& record) {
    const bool goes_on = begin_step(by, has_states(by.rule), record);
    std::vector<tensor> before;
    std::vector<tensor> after;
    for (std::size_t each = 0; each < by.rule.state_count(); ++each) {
      const auto name = key_of_state(key_, each);
      before.push_back(goes_on ? all_.pull<tensor>(name).value
                               : tensor::zeros(update_rule::state_type(value().dtype()), value().shape()));
      after.push_back(add(name, before.back()));
    }
    apply_to_all({by.rule, value(), next_, before, after, record.step}, gradients);
  }

  /// Whether both were as they are known.
  [[nodiscard]] push_all_result publish(const pulled<kv_record>& record) {
    made_.push_back(version_of<kv_record>(core_, key_beside(key_, 'c'), record.value));
    std::vector<std::optional<std::uint64_t>> expected(made_.size());
    expected.front() = value_.version;
    expected.back() = record.version;
    return new_version::publish_all(core_, made_, expected);
  }

private:
  // Of the value as it is: the program may have pushed one of another form.
  [[nodiscard]] bool has_states(const update_rule& rule) const {
    for (std::size_t each = 0; each < rule.state_count(); ++each) {
      const auto state = all_.try_pull<tensor>(key_of_state(key_, each));
      if (!state || !is_state_of(state->value, value())) return false;
    }
    return true;
  }
  tensor add(const store_key& name, const tensor& like) {
    made_.push_back(new_version::like(core_, name, like));
    return made_.back().elements();
  }

  const store& all_;
  const store_ptr& core_;
  const store_key& key_;
  const pulled<tensor> value_;
  std::vector<new_version> made_;
  tensor next_;
};

}  // namespace

// Again where the program has pushed the value itself meanwhile.
std::optional<std::uint64_t> kv_values::apply(const store_key& key, std::span<const kv_gradient> gradients,
                                              pulled<kv_record>& after, const kv_updater& by) const {
  if (auto there = placed_ ? placed_->find(key) : std::nullopt) {
    return apply_there(key, *std::move(there), gradients, after, by);
  }
  for (;;) {
    auto record = after;
    kv_draft draft(all_, key);
    for (const auto& each : gradients) each.require_still_like(draft.value(), key);
    const auto set = by ? std::nullopt : rule();
    if (by) {
      apply_updater(by, key, gradients, draft.value(), draft.next());
    } else if (set) {
      draft.apply(*set, gradients, record.value);
    } else {
      apply_to_all({assign_rule(), draft.value(), draft.next(), {}, {}}, gradients);
    }
    const auto found = draft.publish(record);
    if (found) {
      after = {.value = std::move(record.value), .version = found.versions.back()};
      return found.versions.front();
    }
    if (found.versions.back() != record.version) return std::nullopt;
  }
}

std::optional<kv_rule> kv_values::rule() const {
  const auto found = all_.try_pull<kv_rule>(key_of_all('r'));
  return found ? std::optional(found->value) : std::nullopt;
}

// ---- what lies on a GPU

namespace {

// As the rule finds them: further ones are of a rule that has more, and stay.
std::vector<tensor> states_before(const kv_rule& by, const kv_placed::parts& now, kv_record& record) {
  const auto count = by.rule.state_count();
  const auto& value = now.value;
  const bool fit =
      now.states.size() >= count && std::all_of(now.states.begin(), now.states.begin() + static_cast<long>(count),
                                                [&](const tensor& each) { return is_state_of(each, value); });
  if (begin_step(by, fit, record)) return {now.states.begin(), now.states.begin() + static_cast<long>(count)};
  const auto type = update_rule::state_type(value.dtype());
  return std::vector<tensor>(count, count != 0 ? tensor::zeros(type, value.shape(), value.device()) : tensor());
}

}  // namespace

kv_placed::parts kv_values::made_of(const kv_placed::parts& now, const store_key& key,
                                    std::span<const kv_gradient> gradients, kv_record& record,
                                    const kv_updater& by) const {
  const auto& value = now.value;
  const auto where = value.device();
  kv_placed::parts next{
      .value = tensor::empty(value.dtype(), value.shape(), where), .states = now.states, .serial = now.serial};
  const auto set = by ? std::nullopt : rule();
  if (by) {
    apply_updater(by, key, gradients, value, next.value);
  } else if (set) {
    const auto before = states_before(*set, now, record);
    for (std::size_t each = 0; each < before.size(); ++each) {
      if (each == next.states.size()) next.states.emplace_back();
      next.states[each] = tensor::empty(before[each].dtype(), before[each].shape(), where);
    }
    const auto after = std::span(next.states).first(before.size());
    apply_to_all({set->rule, value, next.value, before, after, record.step}, gradients);
  } else {
    apply_to_all({assign_rule(), value, next.value, {}, {}}, gradients);
  }
  return next;
}

std::optional<std::uint64_t> kv_values::apply_there(const store_key& key, kv_placed::parts now,
                                                    std::span<const kv_gradient> gradients, pulled<kv_record>& after,
                                                    const kv_updater& by) const {
  for (;;) {
    auto record = after;
    for (const auto& each : gradients) each.require_still_like(now.value, key);
    auto next = made_of(now, key, gradients, record.value, by);
    const auto how = placed_->replace(key, std::move(next), [&] { return note(key, record); });
    if (how == kv_placed::outcome::not_noted) return std::nullopt;
    if (how == kv_placed::outcome::replaced) {
      after = std::move(record);
      return all_.version(key);
    }
    auto again = placed_->find(key);
    if (!again) throw_missing(key);
    now = *std::move(again);
  }
}

}  // namespace muster::detail
