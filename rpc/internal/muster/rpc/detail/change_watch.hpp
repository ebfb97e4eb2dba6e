// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/rpc/detail/change_finder.hpp>
#include <muster/rpc/rpc_change.hpp>

namespace muster::detail {

class rpc_core;

/// Tells the program what changes in a group: a thread that looks when there are news, and the member's callback
/// thread, which tells.
///
/// Thread safety: safe.
class change_watch : public std::enable_shared_from_this<change_watch> {
public:
  using listener = std::function<void(const rpc_change&)>;

  /// Lifetime: borrows the core until stop() has returned.
  explicit change_watch(rpc_core& core);
  change_watch(const change_watch&) = delete;
  change_watch& operator=(const change_watch&) = delete;
  ~change_watch() = default;

  /// From now on. Starts the thread the first time.
  void add(listener which) MUSTER_EXCLUDES(mutex_);
  /// Ends the thread. Requires: the core has left.
  void stop() noexcept MUSTER_EXCLUDES(mutex_);

private:
  using listener_ptr = std::shared_ptr<const listener>;

  /// One change for one listener.
  struct notice {
    listener_ptr to;
    rpc_change what;
  };

  void watch() noexcept;
  bool look() MUSTER_EXCLUDES(mutex_);
  void collect() MUSTER_REQUIRES(mutex_);
  void tell() MUSTER_EXCLUDES(mutex_);

  rpc_core& core_;
  mutex mutex_;
  change_finder finder_ MUSTER_GUARDED_BY(mutex_);
  std::vector<listener_ptr> listeners_ MUSTER_GUARDED_BY(mutex_);
  std::deque<notice> notices_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_told_ MUSTER_GUARDED_BY(mutex_) = false;  // the callback thread has been asked, and is not done
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
