// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_files.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/rules.hpp>

#include "kv_names.hpp"
#include "store_parts.hpp"

namespace muster::detail {

namespace {

/// Values that were found at one moment, in the order of keys.
///
/// Thread safety: belongs to its thread. Lifetime: borrows them.
class found_values {
public:
  explicit found_values(const std::vector<stored_version>& all) : all_(all) {}

  [[nodiscard]] const found_version* find(const store_key& key) const {
    const auto found = std::lower_bound(all_.begin(), all_.end(), key,
                                        [](const auto& each, const auto& wanted) { return each.key < wanted; });
    return found != all_.end() && found->key == key ? &found->found : nullptr;
  }
  template <class T>
  [[nodiscard]] std::optional<T> find_value(const store_key& key) const {
    const auto* const found = find(key);
    return found != nullptr ? std::optional(value_of_version<T>(key, *found)) : std::nullopt;
  }
  /// All states of that rule; none where one is missing.
  [[nodiscard]] std::optional<std::vector<const found_version*>> find_states(const store_key& key,
                                                                             const update_rule& of) const {
    std::vector<const found_version*> states;
    for (std::size_t each = 0; each < of.state_count(); ++each) {
      const auto* const found = find(key_of_state(key, each));
      if (found == nullptr) return std::nullopt;
      states.push_back(found);
    }
    return states;
  }

private:
  const std::vector<stored_version>& all_;
};

// What a rule that has been replaced since remembers is worth nothing.
void add_value(store_file& to, const store_key& key, const found_values& found) {
  store_file_entry what{.key = key};
  const auto record = found.find_value<kv_record>(key_beside(key, 'c'));
  const auto rule = found.find_value<kv_rule>(key_of_all('r'));
  const bool goes_on = record && rule && record->step != 0 && record->rule == rule->kind;
  const auto states = goes_on ? found.find_states(key, rule->rule) : std::nullopt;
  if (states) {
    what.rule = rule->rule.name();
    what.step = record->step;
  }
  to.add(what, *found.find(key));
  for (std::size_t each = 0; states && each < states->size(); ++each) {
    to.add({.key = key, .state = each}, *(*states)[each]);
  }
}

[[noreturn]] void refuse_part(const std::string& path, const store_key& key, const std::string& why) {
  throw error(errc::invalid_argument, text("the file ", path, " was not loaded: of ", key, ' ', why));
}

std::string form_of(const tensor& value) { return text(value.dtype(), ' ', value.shape()); }

}  // namespace

// What it looks at it keeps no longer than this takes.
std::vector<stored_version> kv_files::find() const {
  return find_everything(store_parts::core(store_parts::opened_again(all_)));
}

void kv_files::write(const std::vector<stored_version>& all, const std::string& path) {
  const found_values found(all);
  store_file file;
  for (const auto& each : all) {
    if (!each.key.text().starts_with(own_byte)) add_value(file, each.key, found);
  }
  file.write(path);
}

std::vector<kv_files::part> kv_files::parts_of(const store_file& file, const std::string& path) const {
  std::map<store_key, part> by_key;
  std::map<std::pair<store_key, std::uint64_t>, const store_file::entry*> states;
  for (const auto& each : file.entries()) {
    if (each.first.state) {
      states.emplace(std::pair(each.first.key, *each.first.state), &each);
    } else {
      by_key[each.first.key].value = &each;
    }
  }
  for (const auto& [of, each] : states) {
    const auto found = by_key.find(of.first);
    if (found == by_key.end()) refuse_part(path, of.first, "it has a state, and no value");
    auto& so_far = found->second.states;
    if (so_far.size() != of.second) refuse_part(path, of.first, text("it lacks a state before ", of.second));
    if (of.second >= update_rule::most_states) refuse_part(path, of.first, text("no rule has a state ", of.second));
    so_far.push_back(each);
  }
  std::vector<part> all;
  for (auto& [key, each] : by_key) {
    const auto& [entry, value] = *each.value;
    if (entry.rule.empty() && !each.states.empty()) refuse_part(path, key, "it has states of no rule");
    each.owner = choose_(entry.type ? 0 : value.nbytes());
    all.push_back(std::move(each));
  }
  return all;
}

/// New versions of what a file has, which become the newest together: where what they were compared with is still so.
///
/// Thread safety: belongs to its thread.
class kv_files::draft {
public:
  draft(const store& all, const std::string& path)
      : core_(store_parts::core(all)),
        all_(all),
        values_(all),
        path_(path),
        rule_(all.try_pull<kv_rule>(key_of_all('r'))) {
    if (rule_) add(version_of<kv_rule>(core_, key_of_all('r'), rule_->value), rule_->version);
  }

  void add(const part& which) {
    const auto& [entry, value] = *which.value;
    const auto now = all_.version(entry.key);
    if (entry.type) {
      require_no_tensor(entry.key);
    } else if (now != 0) {
      require_like(which);
    }
    add(version_of_entry(core_, *which.value), now);
    if (entry.type) return;
    auto record = values_.record(entry.key);
    record.value.rule = entry.rule.empty() ? 0 : require_rule(which);
    record.value.step = entry.step;
    add(version_of<kv_record>(core_, key_beside(entry.key, 'c'), record.value), record.version);
    for (std::size_t each = 0; each < which.states.size(); ++each) {
      require_state(which, which.states[each]->second);
      add(new_version(core_, key_of_state(entry.key, each), which.states[each]->second), std::nullopt);
    }
    const auto owner = key_beside(entry.key, 'o');
    if (!all_.contains(owner)) add(version_of<kv_ownership>(core_, owner, which.owner), 0);
  }

  /// False where something has changed meanwhile.
  [[nodiscard]] bool publish() { return new_version::publish_all(core_, made_, expected_).ok; }

private:
  void add(new_version made, std::optional<std::uint64_t> expected) {
    made_.push_back(std::move(made));
    expected_.push_back(expected);
  }

  // Workers have gradients of the value's form.
  void require_like(const part& which) const {
    const auto& [entry, value] = *which.value;
    const auto now = all_.try_pull<tensor>(entry.key);
    if (!now || (now->value.dtype() == value.dtype() && now->value.shape() == value.shape())) return;
    refuse_part(path_, entry.key, text("it has ", form_of(value), ", and the store has ", form_of(now->value)));
  }
  void require_no_tensor(const store_key& key) const {
    const auto owner = key_beside(key, 'o');
    if (owner.text().size() > store_key::most_bytes || !all_.contains(owner)) return;
    refuse_part(path_, key, "it has a value of another type, and the store a tensor that workers push to");
  }
  void require_state(const part& which, const tensor& state) const {
    const auto& [entry, value] = *which.value;
    if (state.dtype() == update_rule::state_type(value.dtype()) && state.shape() == value.shape()) return;
    refuse_part(path_, entry.key, text("a state is ", form_of(state), ", and the value ", form_of(value)));
  }
  // The kind of the rule that is set.
  [[nodiscard]] std::uint64_t require_rule(const part& which) const {
    const auto& entry = which.value->first;
    const bool fits =
        rule_ && rule_->value.rule.name() == entry.rule && rule_->value.rule.state_count() == which.states.size();
    if (fits) return rule_->value.kind;
    refuse_part(path_, entry.key,
                text("it has ", which.states.size(), " states of the rule ", entry.rule, ", and the store's is ",
                     rule_ ? rule_->value.rule.name() : "none", ": call set_optimizer with that rule first"));
  }

  const store_ptr& core_;
  const store& all_;
  const kv_values values_;
  const std::string& path_;
  const std::optional<pulled<kv_rule>> rule_;
  std::vector<new_version> made_;
  std::vector<std::optional<std::uint64_t>> expected_;
};

namespace {

// With what belongs to them.
std::vector<store_key> keys_for(const store_file& file) {
  std::vector<store_key> all;
  for (const auto& [entry, value] : file.entries()) {
    all.push_back(entry.state ? key_of_state(entry.key, *entry.state) : entry.key);
    if (entry.state || entry.type) continue;
    all.push_back(key_beside(entry.key, 'c'));
    all.push_back(key_beside(entry.key, 'o'));
  }
  return all;
}

}  // namespace

// Again where a round was applied, or a value or a rule set, meanwhile.
void kv_files::load(const std::string& path, deadline until) const {
  const store_file file(path);
  const auto parts = parts_of(file, path);
  if (parts.empty()) return;
  const auto all = store_parts::opened_again(all_);  // what it looks at it keeps no longer than this takes
  require_room_for(store_parts::core(all), keys_for(file));
  for (;;) {
    draft next(all, path);
    for (const auto& each : parts) next.add(each);
    if (next.publish()) return;
    if (until.expired()) throw_too_busy(parts.front().value->first.key);
  }
}

}  // namespace muster::detail
