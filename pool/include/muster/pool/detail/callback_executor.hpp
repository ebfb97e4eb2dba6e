// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include <muster/base/log.hpp>
#include <muster/base/mutex.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

/// Where a pool runs the program's callbacks: on a thread, one after the other, which is started by the first; or on a
/// loop of the program's.
///
/// A callback may do anything: call the pool, wait for a future, destroy the pool. What it throws is logged.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class callback_executor : public std::enable_shared_from_this<callback_executor> {
public:
  using job = std::function<void()>;

  explicit callback_executor(log_sink log) : log_(std::move(log)) {}
  /// Without a thread: `loop`, which must outlive stop().
  callback_executor(log_sink log, boost::asio::io_context& loop) : log_(std::move(log)), loop_(&loop) {}
  callback_executor(const callback_executor&) = delete;
  callback_executor& operator=(const callback_executor&) = delete;
  ~callback_executor();

  /// Has the thread started, unless there is one. For callers who can still tell of a failure: throws muster::error
  /// where no thread can be had.
  void prepare() MUSTER_EXCLUDES(mutex_);
  /// Runs `what` soon, never inside this call; where no thread can be had, when the next job comes or at stop(); after
  /// stop(), inside it, because there is no thread any more.
  void post(const job& what) MUSTER_EXCLUDES(mutex_);
  /// The same, but after stop() nothing, and false.
  bool try_post(const job& what) MUSTER_EXCLUDES(mutex_);

  /// Runs what was posted, then ends the thread and waits for it. Called by a callback it does not wait. What was
  /// posted to a loop runs when that does.
  void stop() MUSTER_EXCLUDES(mutex_);

private:
  void require_thread() MUSTER_REQUIRES(mutex_);
  void work() MUSTER_EXCLUDES(mutex_);
  void run(const job& what) noexcept;

  const log_sink log_;
  boost::asio::io_context* const loop_ = nullptr;
  mutex mutex_;
  condition changed_;
  std::deque<job> jobs_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  bool started_ MUSTER_GUARDED_BY(mutex_) = false;  // the thread, or nobody needs it any more
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
