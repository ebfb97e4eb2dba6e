// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/deferred_call.hpp>
#include <muster/async/detail/future_home.hpp>
#include <muster/base/log.hpp>

namespace muster::detail {

/// Where callbacks of a rank's futures run, and its messages are waited for on their behalf.
///
/// Thread safety: safe.
class work_home final : public future_home {
public:
  work_home() : future_home(log_to_stderr, "a group") {}
  work_home(const work_home&) = delete;
  work_home& operator=(const work_home&) = delete;
  /// Runs what was posted, and ends the threads, unless one of them is the caller.
  ~work_home() {
    stop_watching();
    stop_callbacks();
  }

  /// Runs `wait`, which may sleep, on a thread for that. Others behind it have threads of their own.
  void watch(deferred_ptr wait) noexcept { watchers_->post(std::move(wait)); }
  /// Returns when all of these have. Requires: what they wait for has ended, or is about to.
  void stop_watching() noexcept { watchers_->stop(); }

private:
  const std::shared_ptr<callback_executor> watchers_ = std::make_shared<callback_executor>(log_to_stderr);
};

/// One, made when it is first asked for.
///
/// Thread safety: safe.
class lazy_work_home {
public:
  lazy_work_home() = default;
  lazy_work_home(const lazy_work_home&) = delete;
  lazy_work_home& operator=(const lazy_work_home&) = delete;
  /// In a forked child it is left to the parent, with its threads.
  ~lazy_work_home();

  [[nodiscard]] std::shared_ptr<work_home> get() MUSTER_EXCLUDES(mutex_);
  /// As work_home, if there is one.
  void stop_watching() noexcept MUSTER_EXCLUDES(mutex_);

private:
  mutex mutex_;
  std::shared_ptr<work_home> home_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
