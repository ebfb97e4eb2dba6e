// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <memory>

#include <muster/base/detail/mutex.hpp>
#include <muster/pool/detail/local_job.hpp>

namespace muster::detail {

/// Jobs between threads, first in, first out.
///
/// It works as follows. Whoever pushes puts the job on a stack: one compare-and-swap. Who pops takes from a list that
/// only poppers see, under their mutex; when it is empty they take the whole stack and turn it round. So pushers meet
/// poppers once for many jobs.
///
/// Thread safety: safe.
class local_queue {
public:
  local_queue() = default;
  local_queue(const local_queue&) = delete;
  local_queue& operator=(const local_queue&) = delete;
  ~local_queue();

  void push(std::shared_ptr<local_job> job) noexcept;
  /// The oldest job; nullptr when there is none.
  [[nodiscard]] std::shared_ptr<local_job> pop() MUSTER_EXCLUDES(mutex_);
  /// Takes no lock, for looking often: while somebody pops, jobs may not be seen for a moment.
  [[nodiscard]] bool seems_empty() const noexcept {
    return pushed_.load(std::memory_order_relaxed) == nullptr && ready_.load(std::memory_order_relaxed) == nullptr;
  }
  /// Sees every job whose push happened before.
  [[nodiscard]] bool empty() const MUSTER_EXCLUDES(mutex_);

private:
  [[nodiscard]] static local_job* turned_round(local_job* newest) noexcept;

  alignas(64) std::atomic<local_job*> pushed_ = nullptr;  // newest first; pushers and poppers
  alignas(64) mutable mutex mutex_;
  std::atomic<local_job*> ready_ = nullptr;  // oldest first; written under the mutex, peeked at without it
};

}  // namespace muster::detail
