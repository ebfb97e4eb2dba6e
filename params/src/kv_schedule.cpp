// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_schedule.hpp>

namespace muster::detail {

kv_schedule::number kv_schedule::add(const store_key& key, int priority) {
  const auto which = next_++;
  all_.emplace(which, operation{.key = key, .priority = priority});
  auto& line = keys_[key];
  line.insert(which);
  if (line.size() == 1) let_in(which);
  return which;
}

void kv_schedule::let_in(number which) { ready_.insert({.priority = all_.at(which).priority, .which = which}); }

std::optional<kv_schedule::number> kv_schedule::begin_next() {
  if (ready_.empty() || under_way_ == window_) return std::nullopt;
  const auto which = ready_.begin()->which;
  ready_.erase(ready_.begin());
  ++under_way_;
  return which;
}

void kv_schedule::end(number which) {
  --under_way_;
  const auto found = all_.find(which);
  const auto line = keys_.find(found->second.key);
  line->second.erase(which);
  if (line->second.empty()) {
    keys_.erase(line);
  } else {
    let_in(*line->second.begin());
  }
  all_.erase(found);
}

}  // namespace muster::detail
