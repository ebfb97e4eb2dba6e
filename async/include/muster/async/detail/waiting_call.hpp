// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <muster/async/cancellation.hpp>
#include <muster/async/detail/future_handle.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// A call that waits for its arguments, but for their types. If the pool ends before they have come, so does the call.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class waiting_call : public std::enable_shared_from_this<waiting_call> {
public:
  explicit waiting_call(std::shared_ptr<future_home> home) : home_(std::move(home)) {}
  waiting_call(const waiting_call&) = delete;
  waiting_call& operator=(const waiting_call&) = delete;
  virtual ~waiting_call() = default;

  // What the future of the call does; nothing once the call is gone.
  [[nodiscard]] std::function<void(cancellation)> canceller();
  [[nodiscard]] std::function<void(deadline)> waiter();

protected:
  /// An argument that will come; before it is waited for.
  void expect(const future_handle& argument);
  void add_missing() noexcept { missing_.fetch_add(1, std::memory_order_relaxed); }
  /// All arguments are waited for: the call may be submitted from now on.
  void enter();
  /// One of the arguments is there.
  void arrived();
  /// The call has become this task: cancels it, if that was asked for.
  void became(const future_handle& task) MUSTER_EXCLUDES(mutex_);
  /// The call ends.
  void note_end() MUSTER_EXCLUDES(mutex_);

private:
  /// Submits the call; all arguments are there. Once, and not after give_up().
  virtual void submit() = 0;
  /// Ends it with that error, and drops what was to submit it.
  virtual void give_up(const error_info& why) = 0;

  /// What a future can be asked for when it is used up.
  struct used_future {
    std::function<void(cancellation)> cancel;
    std::function<void(deadline)> wait;
  };

  [[nodiscard]] bool try_begin() noexcept { return !begun_.exchange(true, std::memory_order_acq_rel); }
  void end_for(const error_info& why);
  void cancel(cancellation how) MUSTER_EXCLUDES(mutex_);
  void wait(deadline until) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::function<void(deadline)> await_task(deadline until) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_decided() MUSTER_EXCLUDES(mutex_);

  const std::shared_ptr<future_home> home_;
  std::atomic<bool> begun_ = false;
  std::optional<std::uint64_t> registered_;
  std::atomic<std::size_t> missing_ = 1;  // and the beginning itself
  std::vector<used_future> arguments_;
  mutex mutex_;
  condition changed_;  // there is a task, or there will be none
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<used_future> task_ MUSTER_GUARDED_BY(mutex_);
  std::optional<cancellation> asked_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
