// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include <muster/base/log.hpp>
#include <muster/base/mutex.hpp>

namespace muster::detail {

/// The thread on which a pool runs the program's callbacks, one after the other; started by the first.
///
/// A callback may do anything: call the pool, wait for a future, destroy the pool. What it throws is logged.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class callback_executor : public std::enable_shared_from_this<callback_executor> {
public:
  using job = std::function<void()>;

  explicit callback_executor(log_sink log) : log_(std::move(log)) {}
  callback_executor(const callback_executor&) = delete;
  callback_executor& operator=(const callback_executor&) = delete;
  ~callback_executor();

  /// Runs `what` soon, never inside this call; after stop(), inside it, because there is no thread any more.
  void post(job what) MUSTER_EXCLUDES(mutex_);

  /// Runs what was posted, then ends the thread and waits for it. Called by a callback it does not wait.
  void stop() MUSTER_EXCLUDES(mutex_);

private:
  void work() MUSTER_EXCLUDES(mutex_);
  void run(const job& what) noexcept;

  const log_sink log_;
  mutex mutex_;
  condition changed_;
  std::deque<job> jobs_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
