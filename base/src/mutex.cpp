// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/mutex.hpp>

namespace muster {

// Whoever sleeps marks the mutex as awaited, and takes it with that mark: there may be others.
void mutex::wait_and_take() noexcept {
  while (state_.exchange(awaited, std::memory_order_acquire) != unlocked) {
    futex_wait(futex_address(state_), awaited, futex_scope::within_process);
  }
}

void mutex::wake_one() noexcept { futex_wake(futex_address(state_), 1, futex_scope::within_process); }

// Counted and read under the lock: a notification that comes after unlocking changes what the futex compares.
bool condition::wait_until(scoped_lock& lock, deadline until) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const auto seen = news_.load(std::memory_order_seq_cst);
  lock.unlock();
  const bool in_time = futex_wait(futex_address(news_), seen, futex_scope::within_process, until);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  lock.lock();
  return in_time;
}

void condition::notify(int count) noexcept {
  news_.fetch_add(1, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) != 0) {
    futex_wake(futex_address(news_), count, futex_scope::within_process);
  }
}

}  // namespace muster
