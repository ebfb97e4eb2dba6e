// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <utility>

#include <boost/intrusive/list.hpp>

#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// A call that any thread can ask the supervisor's loop for. It is a link of the loop's list, so that asking allocates
/// nothing: a destructor may ask, and so may a thread that holds a lock or has no memory left.
///
/// Thread safety: as loop_calls says.
/// Lifetime: it outlives its run, or loop_calls::remove().
class loop_call : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>> {
public:
  loop_call() = default;
  loop_call(const loop_call&) = delete;
  loop_call& operator=(const loop_call&) = delete;

  /// On the loop. It may ask for itself again.
  virtual void run() noexcept = 0;

protected:
  ~loop_call() = default;
};

/// A loop_call of a member function.
///
/// Thread safety: as loop_call.
template <class Object, void (Object::*Function)() noexcept>
class member_call final : public loop_call {
public:
  explicit member_call(Object& object) noexcept : object_(object) {}
  void run() noexcept override { (object_.*Function)(); }

private:
  Object& object_;
};

/// The calls that a loop has been asked for, in order.
///
/// Thread safety: safe. run_all() is called on the loop, and remove() too.
class loop_calls {
public:
  /// Enters the call, unless it is there already: then one run serves both.
  void add(loop_call& call) noexcept MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    if (!call.is_linked()) calls_.push_back(call);
  }
  void remove(loop_call& call) noexcept MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    if (call.is_linked()) calls_.erase(calls_.iterator_to(call));
  }
  void run_all() noexcept {
    while (auto* const next = take()) next->run();
  }

private:
  [[nodiscard]] loop_call* take() noexcept MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    if (calls_.empty()) return nullptr;
    auto& first = calls_.front();
    calls_.pop_front();
    return &first;
  }

  mutex mutex_;
  boost::intrusive::list<loop_call, boost::intrusive::constant_time_size<false>> calls_ MUSTER_GUARDED_BY(mutex_);
};

/// A call that its asker waits for, on the asker's stack.
///
/// Thread safety: wait() is called once, by the asker.
template <class F>
class awaited_call final : public loop_call {
public:
  explicit awaited_call(F& what) noexcept : what_(what) {}

  void run() noexcept override {
    std::exception_ptr failure;
    try {
      what_();
    } catch (...) {
      failure = std::current_exception();
    }
    const scoped_lock lock(mutex_);
    failure_ = std::move(failure);
    done_ = true;
    changed_.notify_one();  // under the lock: the asker may destroy this as soon as it has it
  }

  /// Throws what the call threw. Unblocked by: the loop.
  void wait() MUSTER_EXCLUDES(mutex_) {
    scoped_lock lock(mutex_);
    while (!done_) changed_.wait(lock);
    if (failure_) std::rethrow_exception(failure_);
  }

private:
  F& what_;
  mutex mutex_;
  condition changed_;
  bool done_ MUSTER_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
