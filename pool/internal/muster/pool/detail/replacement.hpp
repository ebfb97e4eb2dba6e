// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include <muster/base/detail/mutex.hpp>
#include <muster/process/worker_environment.hpp>

namespace muster::detail {

/// Whether a worker process is to be replaced for something that only it knows: this_worker::replace_after_task.
///
/// Thread safety: safe.
class replacement {
public:
  /// Of this process.
  [[nodiscard]] static replacement& of_this_process() noexcept;

  /// See this_worker::replace_after_task.
  bool ask(std::string_view why) noexcept MUSTER_EXCLUDES(mutex_);
  /// True from then on: no task, and no element of a map, begins any more.
  [[nodiscard]] const std::atomic<bool>& is_due() const noexcept { return due_; }

  // The worker's main thread, in this order.

  /// From now on it may be asked for.
  void prepare() MUSTER_EXCLUDES(mutex_);
  /// Throws errc::start_failed when it was asked for.
  void require_none() MUSTER_EXCLUDES(mutex_);
  /// From now on the parent is told. Lifetime: `parent` until leave().
  void serve(worker_environment& parent) MUSTER_EXCLUDES(mutex_);
  /// Nobody needs to be told any more.
  void leave() MUSTER_EXCLUDES(mutex_);

private:
  std::atomic<bool> due_ = false;  // relaxed: it says nothing of other memory
  mutex mutex_;
  bool possible_ MUSTER_GUARDED_BY(mutex_) = false;
  worker_environment* parent_ MUSTER_GUARDED_BY(mutex_) = nullptr;  // while it is to be told
  std::string why_ MUSTER_GUARDED_BY(mutex_);
};

/// To be called in a catch block around what a task did: asks for the replacement if its device is lost.
void note_failed_task() noexcept;

}  // namespace muster::detail
