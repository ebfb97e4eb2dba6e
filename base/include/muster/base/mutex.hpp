// SPDX-License-Identifier: BSL-1.0
#pragma once

// std::mutex and std::condition_variable with the annotations that let Clang check who holds what. They are for
// threads of one process only: nothing that processes share is ever locked (docs/design/no-locks.md).

#include <condition_variable>
#include <mutex>

#include <muster/base/clock.hpp>
#include <muster/base/thread_annotations.hpp>

namespace muster {

/// A mutex between threads of one process.
///
/// Thread safety: safe.
class MUSTER_CAPABILITY("mutex") mutex {
public:
  void lock() MUSTER_ACQUIRE() { native_.lock(); }
  void unlock() MUSTER_RELEASE() { native_.unlock(); }
  [[nodiscard]] bool try_lock() MUSTER_TRY_ACQUIRE(true) { return native_.try_lock(); }

  /// For `condition` only.
  [[nodiscard]] std::mutex& native() noexcept { return native_; }

private:
  std::mutex native_;
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

  /// For `condition` only.
  [[nodiscard]] mutex& held() noexcept { return mutex_; }

private:
  mutex& mutex_;
  bool locked_ = true;
};

/// A condition variable for `mutex`.
///
/// Thread safety: safe.
class condition {
public:
  /// Unlocks, sleeps, locks again. May wake for no reason: test the condition in a loop.
  /// Unblocked by: notify_all, notify_one.
  void wait(scoped_lock& lock) {
    std::unique_lock<std::mutex> native(lock.held().native(), std::adopt_lock);
    native_.wait(native);
    static_cast<void>(native.release());
  }

  /// As wait; returns false when `until` passed.
  bool wait_until(scoped_lock& lock, deadline until) {
    if (until.is_never()) {
      wait(lock);
      return true;
    }
    std::unique_lock<std::mutex> native(lock.held().native(), std::adopt_lock);
    const auto status = native_.wait_until(native, until.when());
    static_cast<void>(native.release());
    return status == std::cv_status::no_timeout;
  }

  void notify_one() noexcept { native_.notify_one(); }
  void notify_all() noexcept { native_.notify_all(); }

private:
  std::condition_variable native_;
};

}  // namespace muster
