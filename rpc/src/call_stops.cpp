// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/call_stops.hpp>

#include <algorithm>
#include <exception>
#include <utility>

#include <muster/base/start_thread.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

watched_ptr call_stops::watch(const request_head& head, deadline until) {
  auto made = std::make_shared<watched_call>(head, until);
  {
    const scoped_lock lock(mutex_);
    if (!thread_.joinable()) {
      thread_ = start_thread([this, keeps = core_.shared_from_this()] { watch_on(); });
    }
    calls_.push_back(made);
    ++begun_;
  }
  core_.tell_news();
  return made;
}

void call_stops::forget(const watched_ptr& which) noexcept {
  const scoped_lock lock(mutex_);
  std::erase(calls_, which);
}

// Its thread ends when the member has left.
void call_stops::watch_on() noexcept {
  try {
    for (;;) {
      for (const auto& each : take_unwanted()) each->source.request_stop();
      std::size_t seen = 0;
      const auto due = next_due(seen);
      static_cast<void>(core_.await_news([&] { return has_news(seen); }, due));
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the member has left
  }
}

bool call_stops::has_news(std::size_t seen) {
  const scoped_lock lock(mutex_);
  return begun_ != seen ||
         std::any_of(calls_.begin(), calls_.end(), [&](const auto& each) { return !core_.is_wanted(each->head); });
}

std::vector<watched_ptr> call_stops::take_unwanted() {
  const scoped_lock lock(mutex_);
  std::vector<watched_ptr> found;
  std::erase_if(calls_, [&](const auto& each) {
    if (core_.is_wanted(each->head)) return false;
    found.push_back(each);
    return true;
  });
  return found;
}

deadline call_stops::next_due(std::size_t& seen) {
  const scoped_lock lock(mutex_);
  seen = begun_;
  auto first = deadline::never();
  for (const auto& each : calls_) {
    if (each->until.when() < first.when()) first = each->until;
  }
  return first;
}

void call_stops::stop() noexcept {
  std::thread ended;
  {
    const scoped_lock lock(mutex_);
    ended = std::move(thread_);
  }
  if (!ended.joinable()) return;
  if (ended.get_id() == std::this_thread::get_id()) return ended.detach();  // a callback of a token has left
  ended.join();
}

}  // namespace muster::detail
