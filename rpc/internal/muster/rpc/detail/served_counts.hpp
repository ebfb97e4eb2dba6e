// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include <muster/rpc/rpc_statistics.hpp>

namespace muster::detail {

/// A number that only grows, and of which only the value counts.
///
/// Thread safety: safe.
class count {
public:
  void add(std::uint64_t more = 1) noexcept { value_.fetch_add(more, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
  std::atomic<std::uint64_t> value_ = 0;
};

/// What a member counts, of its calls' ends aside (call_ledger).
///
/// Thread safety: safe.
struct member_counts {
  count served;
  count failed;
  count refused;
  count sent_bytes;
  count received_bytes;
};

/// The calls of one service.
///
/// Thread safety: safe.
class service_counts {
public:
  void add(std::chrono::nanoseconds time, bool has_failed) noexcept {
    calls_.add();
    if (has_failed) failed_.add();
    const auto taken = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
    total_.add(taken);
    auto before = longest_.load(std::memory_order_relaxed);
    while (before < taken && !longest_.compare_exchange_weak(before, taken, std::memory_order_relaxed)) continue;
  }
  void read_into(service_statistics& to) const noexcept {
    to.calls = calls_.read();
    to.failed = failed_.read();
    to.total = std::chrono::nanoseconds(total_.read());
    to.longest = std::chrono::nanoseconds(longest_.load(std::memory_order_relaxed));
  }

private:
  count calls_;
  count failed_;
  count total_;
  std::atomic<std::uint64_t> longest_ = 0;
};

}  // namespace muster::detail
