// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_files.hpp>

#include <map>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/rules.hpp>

#include "kv_names.hpp"
#include "store_parts.hpp"

namespace muster::detail {

namespace {

constexpr char state_name(std::size_t state) { return static_cast<char>('0' + state); }

/// Values that were found at one moment.
///
/// Thread safety: belongs to its thread. Lifetime: borrows them.
class found_values {
public:
  found_values(const std::vector<store_key>& keys, const std::vector<found_version>& found) {
    for (std::size_t each = 0; each < keys.size(); ++each) all_.emplace(keys[each], &found[each]);
  }

  [[nodiscard]] const found_version* find(const store_key& key) const {
    const auto found = all_.find(key);
    return found != all_.end() ? found->second : nullptr;
  }
  template <class T>
  [[nodiscard]] std::optional<pulled<T>> find_value(const store_key& key) const {
    const auto* const found = find(key);
    if (found == nullptr) return std::nullopt;
    return pulled<T>{.value = value_of_version<T>(key, *found), .version = found->version};
  }

private:
  std::map<store_key, const found_version*> all_;
};

// What a rule that has been replaced since remembers is worth nothing.
void add_value(store_file& to, const store_key& key, const found_values& found) {
  store_file_entry what{.key = key};
  const auto record = found.find_value<kv_record>(key_beside(key, 'c'));
  const auto rule = found.find_value<kv_rule>(key_of_all('r'));
  const bool has_states = record && rule && record->value.step != 0 && record->value.rule == rule->value.kind;
  if (has_states) {
    what.rule = rule->value.rule.name();
    what.step = record->value.step;
  }
  to.add(what, *found.find(key));
  for (std::size_t each = 0; has_states && each < rule->value.rule.state_count(); ++each) {
    const auto* const state = found.find(key_beside(key, state_name(each)));
    if (state != nullptr) to.add({.key = key, .state = each}, *state);
  }
}

[[noreturn]] void refuse_part(const std::string& path, const store_key& key, const std::string& why) {
  throw error(errc::invalid_argument, text("the file ", path, " was not loaded: of ", key, ' ', why));
}

std::string form_of(const tensor& value) { return text(value.dtype(), ' ', value.shape()); }

}  // namespace

std::vector<store_key> kv_files::keys_to_save() const {
  auto all = keys_of_program(all_);
  const auto count = all.size();
  for (std::size_t each = 0; each < count; ++each) {
    for (const char what : {'c', state_name(0), state_name(1)}) {
      auto key = key_beside(all[each], what);
      if (all_.contains(key)) all.push_back(std::move(key));
    }
  }
  if (all_.contains(key_of_all('r'))) all.push_back(key_of_all('r'));
  return all;
}

void kv_files::save(const std::string& path) const {
  const auto [keys, versions] = find_all_listed(store_parts::core(all_), [this] { return keys_to_save(); });
  const found_values found(keys, versions);
  store_file file;
  for (const auto& key : keys) {
    if (!key.text().starts_with(own_byte)) add_value(file, key, found);
  }
  file.write(path);
}

std::vector<kv_files::part> kv_files::parts_of(const store_file& file, const std::string& path) {
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
    if (found->second.states.size() != of.second)
      refuse_part(path, of.first, text("it lacks a state before ", of.second));
    found->second.states.push_back(each);
  }
  std::vector<part> all;
  for (auto& [key, each] : by_key) all.push_back(std::move(each));
  return all;
}

// Workers have gradients of the value's form.
void kv_files::require_like(const part& which, const std::string& path) const {
  const auto& [entry, value] = *which.value;
  if (entry.type) return;
  const auto now = values_.find(entry.key);
  if (now && (now->dtype() != value.dtype() || now->shape() != value.shape())) {
    refuse_part(path, entry.key, text("it has ", form_of(value), ", and the store has ", form_of(*now)));
  }
  for (const auto* const each : which.states) {
    const auto& state = each->second;
    if (state.dtype() == update_rule::state_type(value.dtype()) && state.shape() == value.shape()) continue;
    refuse_part(path, entry.key, text("a state is ", form_of(state), ", and the value ", form_of(value)));
  }
}

// The kind of the rule that the states are of, where a value has any.
std::optional<std::uint64_t> kv_files::rule_for(const std::vector<part>& parts, const std::string& path) const {
  std::optional<std::uint64_t> kind;
  for (const auto& each : parts) {
    const auto& entry = each.value->first;
    if (entry.rule.empty()) continue;
    const auto now = all_.try_pull<kv_rule>(key_of_all('r'));
    const bool fits =
        now && now->value.rule.name() == entry.rule && now->value.rule.state_count() == each.states.size();
    if (!fits) {
      refuse_part(path, entry.key,
                  text("it has ", each.states.size(), " states of the rule ", entry.rule, ", and the store's is ",
                       now ? now->value.rule.name() : "none", ": call set_optimizer with that rule first"));
    }
    kind = now->value.kind;
  }
  return kind;
}

/// New versions of what a file has, which become the newest together.
///
/// Thread safety: belongs to its thread.
class kv_files::draft {
public:
  explicit draft(const kv_files& of) : of_(of), core_(store_parts::core(of.all_)) {}

  void add(const part& which, std::optional<std::uint64_t> rule) {
    const auto& [entry, value] = *which.value;
    add(version_of_entry(core_, *which.value), std::nullopt);
    if (entry.type) return;
    auto record = of_.values_.record(entry.key);
    record.value.rule = entry.rule.empty() ? 0 : rule.value();
    record.value.step = entry.step;
    add(version_of<kv_record>(core_, key_beside(entry.key, 'c'), record.value), record.version);
    for (std::size_t each = 0; each < which.states.size(); ++each) {
      add(new_version(core_, key_beside(entry.key, state_name(each)), which.states[each]->second), std::nullopt);
    }
    const auto owner = key_beside(entry.key, 'o');
    if (of_.all_.contains(owner)) return;
    add(version_of<kv_ownership>(core_, owner, of_.choose_(value.nbytes())), 0);
  }

  /// False where an owner has published a record meanwhile.
  [[nodiscard]] bool publish() { return new_version::publish_all(core_, made_, expected_).ok; }

private:
  void add(new_version made, std::optional<std::uint64_t> expected) {
    made_.push_back(std::move(made));
    expected_.push_back(expected);
  }

  const kv_files& of_;
  const store_ptr& core_;
  std::vector<new_version> made_;
  std::vector<std::optional<std::uint64_t>> expected_;
};

void kv_files::load(const std::string& path, deadline until) const {
  const store_file file(path);
  const auto parts = parts_of(file, path);
  for (const auto& each : parts) require_like(each, path);
  const auto rule = rule_for(parts, path);
  while (!parts.empty()) {
    draft next(*this);
    for (const auto& each : parts) next.add(each, rule);
    if (next.publish()) return;
    if (until.expired()) throw_too_busy(parts.front().value->first.key);
  }
}

}  // namespace muster::detail
