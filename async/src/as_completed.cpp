// SPDX-License-Identifier: BSL-1.0
#include <muster/async/as_completed.hpp>

#include <utility>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/task_thread.hpp>

namespace muster::detail {

void arrivals::add(std::unique_ptr<entry> arrival) noexcept {
  std::function<void()> then;
  {
    const scoped_lock lock(mutex_);
    arrived_.push_back(std::move(arrival));
    changed_.notify_one();
    then.swap(then_);
  }
  if (then) then();
}

void arrivals::when_some(std::function<void()> then) {
  {
    const scoped_lock lock(mutex_);
    if (arrived_.empty()) {
      then_.swap(then);
      return;
    }
  }
  then();
}

bool arrivals::has_some() {
  const scoped_lock lock(mutex_);
  return !arrived_.empty();
}

bool arrivals::wait_for_some(deadline until, future_home* home) {
  if (has_some()) return true;
  auto* const here = home != nullptr ? home->only_thread() : nullptr;
  if (here != nullptr && here->wait_until([this] { return has_some(); }, until)) return true;
  const auto what_makes_them_may_be_behind_us = callback_pause::until(until);
  scoped_lock lock(mutex_);
  while (arrived_.empty() && changed_.wait_until(lock, until)) continue;
  return !arrived_.empty();
}

std::size_t arrivals::wait_for_next(future_home* home) {
  static_cast<void>(wait_for_some(deadline::never(), home));
  const scoped_lock lock(mutex_);
  return arrived_.pop_front()->index();
}

}  // namespace muster::detail
