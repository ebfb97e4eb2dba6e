// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/base/clock.hpp>

namespace muster::detail {

/// The one thread of a task in a worker process. It notices the ends of what it has asked for, and
/// runs callbacks, where it waits, and when its task has returned.
///
/// Thread safety: an object belongs to its thread.
class task_thread {
public:
  explicit task_thread(const log_sink& log)
      : callbacks_(std::make_shared<callback_executor>(log, callback_executor::by_hand())) {}
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  /// What callbacks are posted to.
  [[nodiscard]] const std::shared_ptr<callback_executor>& callbacks() const noexcept { return callbacks_; }

  /// Waits for what callbacks make; false when `until` passed first. Runs those that are due.
  bool wait_for(untyped_source& source, deadline until);
  /// Waits until something has arrived that `arrived` sees, in the same way; false when nothing more can come by
  /// callbacks of this thread, or `until` passed first.
  template <class F>
  bool wait_until(const F& arrived, deadline until) {
    for (;;) {
      callbacks_->run_posted();
      if (arrived()) return true;
      if (!await_some(until)) return arrived();
    }
  }
  /// Until no callback is left that is due, or will be. Unblocked by: the ends of the calls that have some.
  void run_rest() {
    static_cast<void>(wait_until([] { return false; }, deadline::never()));
  }

protected:
  ~task_thread() = default;

private:
  /// Waits until at least one of the calls with a notice has ended, and tells those notices. False when there
  /// are none, or `until` passed first.
  virtual bool await_some(deadline until) = 0;

  const std::shared_ptr<callback_executor> callbacks_;
};

}  // namespace muster::detail
