// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/waiting_calls.hpp>

#include <utility>

namespace muster::detail {

std::optional<waiting_calls::id> waiting_calls::add(ender end) {
  const scoped_lock lock(mutex_);
  if (ended_) return std::nullopt;
  enders_.emplace(++latest_, std::move(end));
  return latest_;
}

error_info waiting_calls::reason() const {
  const scoped_lock lock(mutex_);
  return ended_.value();
}

void waiting_calls::remove(id which) {
  const scoped_lock lock(mutex_);
  enders_.erase(which);
}

void waiting_calls::end_all(const error_info& why) {
  decltype(enders_) ended;
  {
    const scoped_lock lock(mutex_);
    if (ended_) return;
    ended_ = error_info::copy_of(why);
    ended.swap(enders_);
  }
  for (const auto& [each, end] : ended) end(why);
}

}  // namespace muster::detail
