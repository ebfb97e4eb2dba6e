// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_values.hpp>

#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "kv_apply.hpp"
#include "kv_names.hpp"
#include "store_parts.hpp"

namespace muster::detail {

std::optional<tensor> kv_values::find(const store_key& key) const {
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
    const bool goes_on = record.rule == by.kind && has_states(by.rule);
    record.step = goes_on ? record.step + 1 : 1;
    record.rule = by.kind;
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
      const bool fits = state && state->value.dtype() == update_rule::state_type(value().dtype()) &&
                        state->value.shape() == value().shape();
      if (!fits) return false;
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
  for (;;) {
    auto record = after;
    kv_draft draft(all_, key);
    for (const auto& each : gradients) each.require_still_like(draft.value(), key);
    const auto rule = by ? std::nullopt : all_.try_pull<kv_rule>(key_of_all('r'));
    if (by) {
      apply_updater(by, key, gradients, draft.value(), draft.next());
    } else if (rule) {
      draft.apply(rule->value, gradients, record.value);
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

}  // namespace muster::detail
