// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_placed.hpp>

#include <algorithm>
#include <utility>

#include <muster/parallel/rules.hpp>

#include "kv_names.hpp"
#include "store_parts.hpp"

namespace muster::detail {

void kv_placed::place(const store_key& key, device where) {
  const scoped_lock lock(mutex_);
  entries_.try_emplace(key, entry{.where = where});
}

device kv_placed::where(const store_key& key) const {
  const scoped_lock lock(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() ? found->second.where : device::cpu();
}

std::vector<std::uint64_t> kv_placed::state_versions(const store_key& key) const {
  std::vector<std::uint64_t> all(update_rule::most_states);
  for (std::size_t each = 0; each < all.size(); ++each) all[each] = all_.version(key_of_state(key, each));
  return all;
}

// A value that was pushed alone leaves the states as they are.
void kv_placed::refresh_states(const store_key& key, entry& of) const {
  auto now = state_versions(key);
  if (now == of.state_bases) return;
  std::vector<tensor> states;
  for (std::size_t each = 0; each < now.size(); ++each) {
    const auto state = all_.try_pull<tensor>(key_of_state(key, each));
    if (!state) break;
    states.push_back(state->value.to(of.where));
  }
  of.newest.states = std::move(states);
  of.state_bases = std::move(now);
  of.is_ahead = false;
}

// From the store, where that has another version. False where it has none.
bool kv_placed::refresh(const store_key& key, entry& of) const {
  const auto now = all_.version(key);
  if (now == of.base && now != 0) return true;
  const auto value = now != 0 ? all_.try_pull<tensor>(key) : std::nullopt;
  of.newest.value = value ? value->value.to(of.where).as_read_only() : tensor();
  of.base = value ? value->version : 0;
  ++of.newest.serial;
  if (value) refresh_states(key, of);
  return value.has_value();
}

std::optional<kv_placed::parts> kv_placed::find(const store_key& key) {
  const scoped_lock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || !refresh(key, found->second)) return std::nullopt;
  return found->second.newest;
}

kv_placed::outcome kv_placed::replace(const store_key& key, parts next, const std::function<bool()>& note) {
  const scoped_lock lock(mutex_);
  auto& of = entries_.at(key);
  if (of.newest.serial != next.serial || all_.version(key) != of.base) return outcome::value_has_changed;
  next.value = next.value.as_read_only();
  ++next.serial;
  if (!note()) return outcome::not_noted;
  of.newest = std::move(next);
  of.is_ahead = true;
  return outcome::replaced;
}

// Nothing where one was pushed into the store meanwhile.
std::optional<std::vector<tensor>> kv_placed::try_pull_all(const std::vector<store_key>& keys) {
  std::vector<tensor> all(keys.size());
  std::vector<store_key> others;
  std::vector<std::size_t> places;
  for (std::size_t each = 0; each < keys.size(); ++each) {
    const auto found = entries_.find(keys[each]);
    if (found != entries_.end() && refresh(keys[each], found->second)) {
      all[each] = found->second.newest.value;
    } else {
      others.push_back(keys[each]);
      places.push_back(each);
    }
  }
  auto found = all_.pull_all<tensor>(others);
  for (std::size_t each = 0; each < found.size(); ++each) all[places[each]] = std::move(found[each].value);
  for (const auto& key : keys) {
    const auto of = entries_.find(key);
    if (of != entries_.end() && of->second.base != all_.version(key)) return std::nullopt;
  }
  return all;
}

std::vector<tensor> kv_placed::pull_all(const std::vector<store_key>& keys) {
  const auto until = end_of_wait(store_parts::core(all_), {});
  const scoped_lock lock(mutex_);
  for (;;) {
    if (auto found = try_pull_all(keys)) return *std::move(found);
    if (until.expired()) throw_too_busy(keys.front());
  }
}

// False where a value was pushed there meanwhile: that one counts.
bool kv_placed::write_back_one(const store_key& key, entry& of) const {
  const auto& newest = of.newest;
  std::vector<keyed_value> all{{key, newest.value, of.base}};
  for (std::size_t each = 0; each < newest.states.size(); ++each) {
    all.emplace_back(key_of_state(key, each), newest.states[each]);
  }
  const auto made = all_.push_all(all);
  if (!made.ok) return false;
  of.base = made.versions.front();
  of.state_bases.resize(update_rule::most_states);
  std::copy(made.versions.begin() + 1, made.versions.end(), of.state_bases.begin());
  of.is_ahead = false;
  return true;
}

void kv_placed::write_back(const std::function<void()>& then) {
  const auto until = end_of_wait(store_parts::core(all_), {});
  const scoped_lock lock(mutex_);
  for (auto& [key, of] : entries_) {
    while (of.is_ahead && refresh(key, of) && of.is_ahead && !write_back_one(key, of)) {
      if (until.expired()) throw_too_busy(key);
    }
  }
  then();
}

}  // namespace muster::detail
