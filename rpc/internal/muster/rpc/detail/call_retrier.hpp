// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/rpc/detail/call_ledger.hpp>
#include <muster/rpc/detail/call_retry.hpp>

namespace muster::detail {

class rpc_core;

/// Makes calls again: a thread that sleeps until the time of one has come and its member is there. It is started by the
/// first.
///
/// Thread safety: safe.
class call_retrier final : public call_repeater {
public:
  /// Lifetime: borrows the core.
  explicit call_retrier(rpc_core& core) : core_(core) {}
  call_retrier(const call_retrier&) = delete;
  call_retrier& operator=(const call_retrier&) = delete;
  ~call_retrier() override { stop(); }

  void repeat(call_ptr call, std::shared_ptr<call_retry> how) noexcept override MUSTER_EXCLUDES(mutex_);
  /// Ends the thread. Requires: all calls have ended, and none is begun.
  void stop() noexcept MUSTER_EXCLUDES(mutex_);

private:
  struct resting {
    call_ptr call;
    std::shared_ptr<call_retry> how;
    clock::time_point due;
  };
  /// Where the next attempt goes.
  struct route {
    call_peer peer;
    std::uint64_t object = 0;
  };

  void add(call_ptr call, std::shared_ptr<call_retry> how) MUSTER_EXCLUDES(mutex_);
  void watch() noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool has_work() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] deadline next_due() MUSTER_EXCLUDES(mutex_);
  void look_at_all() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_ready(const resting& which) const;
  [[nodiscard]] bool try_to_send(const resting& which);
  void send(pending_call& call, const call_retry& how, const route& to);
  [[nodiscard]] std::optional<route> route_of(const pending_call& call, const call_retry& how) const;

  rpc_core& core_;
  mutex mutex_;
  std::minstd_rand jitter_ MUSTER_GUARDED_BY(mutex_){std::random_device{}()};
  std::vector<resting> resting_ MUSTER_GUARDED_BY(mutex_);
  bool has_new_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
