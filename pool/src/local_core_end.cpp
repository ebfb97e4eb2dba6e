// SPDX-License-Identifier: BSL-1.0
// Counting what is pending, and ending.
#include <algorithm>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/waiting_calls.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/detail/local_core.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

// ---- accepting

local_core::admission local_core::begin_unit(bool limited) {
  const auto* const here = inside();
  const bool from_task = here != nullptr && here->is_at_task();
  const bool needs_place = limited && max_pending_ != 0 && !from_task;
  if (needs_place && !try_take_place() && !wait_for_place()) return admission::overflow;
  // Counted before the look at closed_: either it is seen by whoever has closed the pool, or it sees that.
  accepted_.fetch_add(1);
  const bool refused = stopping_.is_requested() || (closed_.load() && !from_task);
  if (!refused) return needs_place ? admission::with_place : admission::without_place;
  if (needs_place) free_place();
  end_unit();
  throw_closed();
}

error_info local_core::overflow_error() {
  return {errc::overflow, "there are already as many pending calls as may be (max_pending): submit later"};
}

void local_core::throw_closed() const {
  error_info(errc::pool_closed,
             text("the pool '", name_, "' ", stopping_.is_requested() ? "was terminated" : "is closed",
                  ": it takes no more tasks"))
      .raise();
}

bool local_core::try_take_place() noexcept {
  auto taken = places_taken_.load();
  while (taken < max_pending_) {
    if (places_taken_.compare_exchange_weak(taken, taken + 1)) return true;
  }
  return false;
}

// False when the task is to fail for it; throws when the call is to.
bool local_core::wait_for_place() {
  if (overflow_ == overflow_policy::fail_task) return false;
  const bool blocks = overflow_ == overflow_policy::block;
  const auto until = deadline::after(overflow_wait_);
  place_watchers_.fetch_add(1);
  bool taken = false;
  {
    scoped_lock lock(place_mutex_);
    taken = try_take_place();
    while (blocks && !taken && !is_closed() && !until.expired()) {
      place_.wait_until(lock, until);
      taken = try_take_place();
    }
  }
  place_watchers_.fetch_sub(1);
  if (taken) return true;
  if (is_closed()) throw_closed();
  throw error(errc::overflow, text("there are already ", max_pending_, " pending calls (max_pending): ",
                                   blocks ? "none ended in time (overflow_wait)" : "the overflow policy is to throw",
                                   "; submit later, or raise max_pending"));
}

void local_core::free_place() noexcept {
  places_taken_.fetch_sub(1);
  if (place_watchers_.load() == 0) return;
  const scoped_lock lock(place_mutex_);
  place_.notify_one();
}

// ---- ending

void local_core::end_unit() noexcept {
  count_end();
  if (end_watchers_.load() > 0 && is_empty()) announce_end();
}

void local_core::count_end() noexcept {
  const auto* const here = serial_ ? nullptr : inside();
  if (here == nullptr) {
    ended_elsewhere_.fetch_add(1);
    return;
  }
  auto& mine = workers_[static_cast<std::size_t>(here->id)]->ended;
  mine.store(mine.load(std::memory_order_relaxed) + 1);
}

std::uint64_t local_core::ended() const noexcept {
  auto total = ended_elsewhere_.load();
  for (const auto& each : workers_) total += each->ended.load();
  return total;
}

// The ends are read first: they never overtake what was accepted.
bool local_core::is_empty() const noexcept {
  const auto ends = ended();
  return ends == accepted_.load();
}

void local_core::announce_end() noexcept {
  std::vector<std::function<void()>> told;
  {
    const scoped_lock lock(end_mutex_);
    end_changed_.notify_all();
    if (must_leave()) told.swap(when_empty_);
  }
  for (const auto& each : told) each();
  wake_all();  // once the pool is closed they are to leave now
}

void local_core::close() noexcept {
  if (closed_.exchange(true)) return;
  end_watchers_.fetch_add(1);  // for good: no end must go unnoticed
  {
    const scoped_lock lock(place_mutex_);
    place_.notify_all();
  }
  if (is_empty()) announce_end();
}

void local_core::terminate() {
  stopping_.request();
  close();
  const auto why = terminated_error();
  while (const auto job = queue_.pop()) job->withdraw(why);
  for (auto& each : workers_) {
    while (const auto job = each->own.pop()) job->withdraw(why);
  }
  waiting().end_all(why);
}

error_info local_core::terminated_error() noexcept {
  return error_info::described(errc::cancelled,
                               [] { return std::string("the pool was terminated before the task had begun"); });
}

bool local_core::wait_until_empty(deadline until) {
  end_watchers_.fetch_add(1);
  {
    scoped_lock lock(end_mutex_);
    while (!is_empty() && !until.expired()) end_changed_.wait_until(lock, until);
  }
  end_watchers_.fetch_sub(1);
  return is_empty();
}

// Whoever ends the last unit after this look takes the lock after it, and finds `then`.
void local_core::when_empty(std::function<void()> then) {
  {
    const scoped_lock lock(end_mutex_);
    if (!is_empty()) {
      when_empty_.push_back(std::move(then));
      return;
    }
  }
  then();
}

bool local_core::wait_until_left(deadline until) {
  if (serial_) return wait_until_empty(until);
  {
    scoped_lock lock(end_mutex_);
    while (left_ < workers_.size() && !until.expired()) end_changed_.wait_until(lock, until);
    if (left_ < workers_.size()) return false;
  }
  join_threads();  // so that the stacks of threads that have left are freed, and not with the pool only
  return true;
}

bool local_core::is_own_thread() const noexcept {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& each) { return each->thread.get_id() == std::this_thread::get_id(); });
}

void local_core::join_threads() {
  const scoped_lock lock(join_mutex_);  // any number of threads may call join() at the same time
  for (auto& each : workers_) {
    if (each->thread.joinable()) each->thread.join();
  }
}

thread_pool_statistics local_core::read_statistics() const noexcept {
  const auto ends = ended();
  const auto all = accepted_.load();
  return {.accepted = all, .ended = ends, .pending = all - ends};
}

}  // namespace muster::detail
