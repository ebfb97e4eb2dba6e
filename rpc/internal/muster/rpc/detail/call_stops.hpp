// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/rpc/detail/rpc_heads.hpp>

namespace muster::detail {

class rpc_core;

/// A call that is served, and whose end is watched.
///
/// Thread safety: what does not change: safe.
struct watched_call {
  watched_call(const request_head& call, deadline end) : head(call), until(end) {}

  const request_head head;
  const deadline until;
  std::stop_source source;
};
using watched_ptr = std::shared_ptr<watched_call>;

/// Asks what is served here to stop, by its token, when its caller does not wait for it any more: it was cancelled, its
/// deadline has passed, or its caller is dead. One thread watches all, from the first token on.
///
/// Thread safety: safe.
class call_stops {
public:
  /// Lifetime: borrows the core.
  explicit call_stops(rpc_core& core) noexcept : core_(core) {}
  call_stops(const call_stops&) = delete;
  call_stops& operator=(const call_stops&) = delete;
  ~call_stops() { stop(); }

  /// Throws EAGAIN where no thread can be had.
  [[nodiscard]] watched_ptr watch(const request_head& head, deadline until) MUSTER_EXCLUDES(mutex_);
  void forget(const watched_ptr& which) noexcept MUSTER_EXCLUDES(mutex_);
  /// Ends the thread. Requires: the member has left.
  void stop() noexcept MUSTER_EXCLUDES(mutex_);

private:
  void watch_on() noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool has_news(std::size_t seen) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<watched_ptr> take_unwanted() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] deadline next_due(std::size_t& seen) MUSTER_EXCLUDES(mutex_);

  rpc_core& core_;
  mutex mutex_;
  std::vector<watched_ptr> calls_ MUSTER_GUARDED_BY(mutex_);
  std::size_t begun_ MUSTER_GUARDED_BY(mutex_) = 0;  // how many were watched so far
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
