// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <muster/base/mutex.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/detail/callback_executor.hpp>
#include <muster/pool/pool_options.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/process/crew.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/serialize/function_token.hpp>

namespace muster::detail {

/// What a pool and its futures share: the parent's end of everything, without the workers. A future that outlives its
/// pool keeps it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class pool_core final : public crew_client {
public:
  pool_core(std::shared_ptr<domain> shared, const spin_policy& spin, std::size_t workers, const pool_options& options);
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;
  ~pool_core();

  [[nodiscard]] arena& memory() noexcept { return domain_->blocks(); }
  [[nodiscard]] board& shared_board() noexcept { return board_; }
  [[nodiscard]] token_encoder& functions() noexcept { return functions_; }
  [[nodiscard]] dispatcher& tasks() noexcept { return tasks_; }
  [[nodiscard]] callback_executor& callbacks() noexcept { return *callbacks_; }
  [[nodiscard]] std::size_t workers() const noexcept { return board_.sizes().workers; }
  [[nodiscard]] std::uint64_t max_tasks_per_worker() const noexcept { return max_tasks_per_worker_; }

  /// Accepts a single task for a future.
  [[nodiscard]] task_record& submit(function_token function, outgoing_frame frame, const task_options& options,
                                    bool limited);

  /// Counts an element of a map whose worker died: it runs again, or is lost.
  void count_element_death(bool runs_again) noexcept {
    (runs_again ? elements_retried_ : elements_lost_).fetch_add(1, std::memory_order_relaxed);
  }
  /// What the dispatcher counted, and the elements of maps.
  [[nodiscard]] dispatcher::statistics read_statistics() const;

  /// Waits until `done` is not 0, handling completions meanwhile; false when `until` passed first.
  /// Unblocked by: whoever sets `done` and wakes its futex.
  bool wait_helping(const std::atomic<std::uint32_t>& done, deadline until);

  /// Says whose loop audits and looks at the time when that is due; nullptr: nobody's.
  void set_watch(crew* workers) MUSTER_EXCLUDES(watch_mutex_);

  // The supervisor's thread.
  void worker_started(std::size_t worker, pid_t pid) noexcept override;
  void worker_ended(std::size_t worker, const exit_status& how) noexcept override;
  void crew_broken(const error_info& why) noexcept override;
  void bell_rang() noexcept override;
  bool repair_start() noexcept override;
  audit_report audit() noexcept override;
  overdue_report check_times() noexcept override;
  void crew_replaced() noexcept override;

private:
  void start_watch() MUSTER_EXCLUDES(watch_mutex_);
  void watch_time(clock::time_point when) MUSTER_EXCLUDES(watch_mutex_);

  const std::shared_ptr<domain> domain_;  // keeps the arena for replies that nobody has taken yet
  const std::uint64_t max_tasks_per_worker_;
  mutex watch_mutex_;
  crew* watch_ MUSTER_GUARDED_BY(watch_mutex_) = nullptr;
  board board_;
  token_encoder functions_;
  dispatcher tasks_;
  const std::shared_ptr<callback_executor> callbacks_;
  std::atomic<std::uint64_t> elements_retried_ = 0;
  std::atomic<std::uint64_t> elements_lost_ = 0;
};

}  // namespace muster::detail
