// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include <muster/base/detail/mutex.hpp>
#include <muster/rpc/detail/wait_graph.hpp>

namespace muster::detail {

/// Requests that run one at a time, in the order in which they came. They need no thread while they wait.
///
/// Thread safety: safe.
class serial_line {
public:
  using request = std::function<void()>;

  serial_line() = default;
  serial_line(const serial_line&) = delete;
  serial_line& operator=(const serial_line&) = delete;

  /// Whether the caller is to run it now, by run(); else it waits for its turn. `which` call it is; of none, when that
  /// has no generation. Before another can run it, `waits_behind(which)` is told behind which call it waits.
  template <class Told>
  [[nodiscard]] bool enter(request& what, const call_id& which, const Told& waits_behind) MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    const auto before = which.is_any() ? std::exchange(last_, which) : last_;
    if (!std::exchange(is_busy_, true)) return true;
    waits_behind(before);
    waiting_.push_back(std::move(what));
    return false;
  }
  /// Runs it, and those that have come meanwhile.
  void run(request what) MUSTER_EXCLUDES(mutex_) {
    while (what != nullptr) {
      what();
      what = next();
    }
  }

private:
  [[nodiscard]] request next() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    is_busy_ = !waiting_.empty();
    if (!is_busy_) return nullptr;
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }

  mutex mutex_;
  call_id last_ MUSTER_GUARDED_BY(mutex_);  // that came
  bool is_busy_ MUSTER_GUARDED_BY(mutex_) = false;
  std::deque<request> waiting_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
