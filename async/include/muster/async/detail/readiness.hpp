// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <muster/async/future.hpp>
#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// Something that happens once, and one who wants to know.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class readiness {
public:
  /// It has happened.
  void set() MUSTER_EXCLUDES(mutex_) {
    std::function<void()> then;
    {
      const scoped_lock lock(mutex_);
      set_ = true;
      then = std::exchange(then_, nullptr);
    }
    if (then) then();
  }

  /// Calls `then` once it has happened, at once if it has; by any thread, so that `then` only passes the news on. Who
  /// asked before is forgotten.
  void when(std::function<void()> then) MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      if (!set_) {
        then_.swap(then);
        return;
      }
    }
    then();
  }

private:
  mutex mutex_;
  bool set_ MUSTER_GUARDED_BY(mutex_) = false;
  std::function<void()> then_ MUSTER_GUARDED_BY(mutex_);
};

/// Sets it when a future is done.
///
/// Thread safety: as end_notice.
class readiness_observer final : public end_notice {
public:
  explicit readiness_observer(std::shared_ptr<readiness> of) : of_(std::move(of)) {}

private:
  void tell() noexcept override {
    const std::unique_ptr<readiness_observer> self(this);
    of_->set();
  }

  const std::shared_ptr<readiness> of_;
};

}  // namespace muster::detail
