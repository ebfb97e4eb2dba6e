// SPDX-License-Identifier: BSL-1.0
#pragma once

// A mutex and a condition with the annotations that let Clang check who holds what. They are for threads of one process
// only: nothing that processes share is ever locked (docs/design/no-locks.md).
//
// Both stand on futexes, so that an uncontended lock is one inlined compare-and-swap and an unlock one exchange: with
// std::mutex, four calls into the C library were a tenth of a task's round trip.

#include <atomic>
#include <climits>
#include <cstdint>

#include <muster/base/clock.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/detail/thread_annotations.hpp>

namespace muster {

/// A mutex between threads of one process. Not recursive, not fair.
///
/// From U. Drepper, "Futexes are tricky" (2011), the third version.
/// Thread safety: safe.
class MUSTER_CAPABILITY("mutex") mutex {
public:
  mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Unblocked by: unlock().
  void lock() noexcept MUSTER_ACQUIRE() {
    if (!take()) wait_and_take();
  }
  void unlock() noexcept MUSTER_RELEASE() {
    if (state_.exchange(unlocked, std::memory_order_release) == awaited) wake_one();
  }
  [[nodiscard]] bool try_lock() noexcept MUSTER_TRY_ACQUIRE(true) { return take(); }

private:
  static constexpr std::uint32_t unlocked = 0;
  static constexpr std::uint32_t locked = 1;
  static constexpr std::uint32_t awaited = 2;  // locked, and somebody may sleep

  bool take() noexcept {
    auto expected = unlocked;
    return state_.compare_exchange_strong(expected, locked, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void wait_and_take() noexcept;
  void wake_one() noexcept;

  std::atomic<std::uint32_t> state_ = unlocked;
};

/// Holds a mutex for a scope; may be unlocked and locked again on the way.
///
/// Thread safety: an object belongs to one thread.
class MUSTER_SCOPED_CAPABILITY scoped_lock {
public:
  explicit scoped_lock(mutex& which) MUSTER_ACQUIRE(which) : mutex_(which) { mutex_.lock(); }
  scoped_lock(const scoped_lock&) = delete;
  scoped_lock& operator=(const scoped_lock&) = delete;
  ~scoped_lock() MUSTER_RELEASE() {
    if (locked_) mutex_.unlock();
  }

  void unlock() MUSTER_RELEASE() {
    locked_ = false;
    mutex_.unlock();
  }
  void lock() MUSTER_ACQUIRE() {
    mutex_.lock();
    locked_ = true;
  }

private:
  mutex& mutex_;
  bool locked_ = true;
};

/// A condition variable for `mutex`.
///
/// Thread safety: safe.
class condition {
public:
  condition() noexcept = default;
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;

  /// Unlocks, sleeps, locks again. May wake for no reason: test the condition in a loop.
  /// Unblocked by: notify_all, notify_one.
  void wait(scoped_lock& lock) { wait_until(lock, deadline::never()); }

  /// As wait; returns false when `until` passed.
  bool wait_until(scoped_lock& lock, deadline until) MUSTER_NO_THREAD_SAFETY_ANALYSIS;

  void notify_one() noexcept { notify(1); }
  void notify_all() noexcept { notify(INT_MAX); }

private:
  void notify(int count) noexcept;

  std::atomic<std::uint32_t> news_ = 0;     // futex: grows with every notification
  std::atomic<std::uint32_t> waiters_ = 0;  // so that notifying nobody costs no system call
};

}  // namespace muster
