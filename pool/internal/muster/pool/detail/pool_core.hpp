// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include <muster/async/detail/future_home.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/detail/loop_attendant.hpp>
#include <muster/pool/detail/output_relay.hpp>
#include <muster/pool/detail/start_notice.hpp>
#include <muster/pool/pool_options.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/process/crew.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

/// What a pool and its futures share: the parent's end of everything, without the workers. A future that outlives its
/// pool keeps it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class pool_core final : public crew_client, public future_home, public std::enable_shared_from_this<pool_core> {
public:
  /// `loop`: of the program's, on which completions and callbacks are handled; nullptr: there is none. `devices`: of
  /// the workers, in turn.
  pool_core(std::shared_ptr<domain> shared, const spin_policy& spin, const board_sizes& sizes,
            const pool_options& options, boost::asio::io_context* loop = nullptr,
            const std::vector<device_assignment>& devices = {});
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;
  ~pool_core();

  [[nodiscard]] const std::shared_ptr<domain>& shared() const noexcept { return domain_; }
  [[nodiscard]] arena& memory() noexcept { return domain_->blocks(); }
  [[nodiscard]] board& shared_board() noexcept { return board_; }
  [[nodiscard]] token_encoder& functions() noexcept { return functions_; }
  [[nodiscard]] dispatcher& tasks() noexcept { return tasks_; }
  [[nodiscard]] start_notice& start() noexcept { return start_; }
  void begin_listening() noexcept override { tasks_.begin_listening(); }
  void end_listening() noexcept override { tasks_.end_listening(); }
  [[nodiscard]] std::shared_ptr<void> listen() override;
  /// Who drains on the program's loop; nullptr: there is none.
  [[nodiscard]] loop_attendant* attendant() const noexcept { return attendant_.get(); }
  [[nodiscard]] std::size_t workers() const noexcept { return board_.active(); }
  [[nodiscard]] std::size_t most_workers() const noexcept { return board_.sizes().workers; }
  [[nodiscard]] unsigned quarantine_after() const noexcept { return quarantine_after_; }
  [[nodiscard]] std::uint64_t max_tasks_per_worker() const noexcept { return max_tasks_per_worker_; }

  /// Accepts a single task for a future. `terms`: of `options`, as they were when the call began.
  [[nodiscard]] task_record& submit(function_token function, outgoing_frame frame, const task_options& options,
                                    const task_terms& terms, lane_route route, admission admitted);

  /// Which lane the next task of that route goes to.
  [[nodiscard]] std::size_t lane_for(lane_route route, priority urgency) noexcept;
  /// The way to one worker. Throws errc::invalid_argument when there is none with that index.
  [[nodiscard]] lane_route route_to(std::size_t worker) const;

  /// Counts an element of a map that runs again, or that was lost with its worker.
  void count_element_retry() noexcept { elements_retried_.fetch_add(1, std::memory_order_relaxed); }
  void count_timeouts(std::uint64_t elements) noexcept {
    elements_timed_out_.fetch_add(elements, std::memory_order_relaxed);
  }
  void count_element_loss(bool quarantined) noexcept {
    elements_lost_.fetch_add(1, std::memory_order_relaxed);
    if (quarantined) elements_quarantined_.fetch_add(1, std::memory_order_relaxed);
  }
  void count_argument_bytes(std::size_t copied, std::size_t referenced) noexcept {
    element_bytes_copied_.fetch_add(copied, std::memory_order_relaxed);
    if (referenced != 0) element_bytes_referenced_.fetch_add(referenced, std::memory_order_relaxed);
  }

  /// Whether name_function() is to be called for what is submitted: for traces.
  [[nodiscard]] bool names_functions() const noexcept { return names_functions_.load(std::memory_order_relaxed); }
  void set_names_functions(bool on) noexcept { names_functions_.store(on, std::memory_order_relaxed); }
  /// Says what code is called: by the type of the callable.
  void name_function(function_token token, const std::type_info& callable) MUSTER_EXCLUDES(names_mutex_);
  [[nodiscard]] std::string name_of(function_token token) MUSTER_EXCLUDES(names_mutex_);

  /// What the dispatcher counted, and the elements of maps.
  [[nodiscard]] dispatcher::statistics read_statistics() const;

  /// Waits until `done` is not 0, handling completions meanwhile; false when `until` passed first.
  /// Unblocked by: whoever sets `done` and wakes its futex.
  bool wait_helping(const std::atomic<std::uint32_t>& done, deadline until);

  /// Handles the completions that there are. Does not wait.
  void catch_up() {
    if (tasks_.has_completions()) tasks_.drain();
  }

  /// Says whose loop audits, looks at the time when that is due, and starts workers again; nullptr: nobody's.
  void set_watch(crew* workers) MUSTER_EXCLUDES(watch_mutex_);

  // The supervisor's thread.
  void worker_started(std::size_t worker, pid_t pid) noexcept override;
  void crew_greeted() noexcept override;
  void crew_will_be_killed() noexcept override;
  void worker_wrote(const worker_output& line) noexcept override;
  void worker_ended(std::size_t worker, const exit_status& how, const last_words& words) noexcept override;
  void crew_broken(const error_info& why) noexcept override;
  void bell_rang() noexcept override;
  bool needs_worker(std::size_t worker) noexcept override;
  bool repair_start() noexcept override;
  audit_report audit() noexcept override;
  overdue_report check_times() noexcept override;
  void host_paused(const host_pause& which) noexcept override { tasks_.note_pause(which); }
  void crew_replaced() noexcept override;

private:
  class waiting_end;

  void start_watch() MUSTER_EXCLUDES(watch_mutex_);
  void watch_time(clock::time_point when) MUSTER_EXCLUDES(watch_mutex_);
  void call_back(std::size_t worker) MUSTER_EXCLUDES(watch_mutex_);

  const std::shared_ptr<domain> domain_;  // keeps the arena for replies that nobody has taken yet
  const std::uint64_t max_tasks_per_worker_;
  const unsigned quarantine_after_;
  mutex watch_mutex_;
  crew* watch_ MUSTER_GUARDED_BY(watch_mutex_) = nullptr;
  board board_;
  token_encoder functions_;
  const std::shared_ptr<loop_attendant> attendant_;
  const std::string name_;
  start_notice start_;
  dispatcher tasks_;
  const std::shared_ptr<output_relay> output_;  // to the program's sink; nullptr: there is none
  std::unique_ptr<waiting_end> waiting_end_;    // the supervisor's, until the crew is broken
  std::atomic<std::size_t> turn_ = 0;           // which worker is next where they take turns, modulo their number
  std::atomic<std::uint64_t> elements_retried_ = 0;
  std::atomic<std::uint64_t> elements_lost_ = 0;
  std::atomic<std::uint64_t> elements_quarantined_ = 0;
  std::atomic<std::uint64_t> elements_timed_out_ = 0;
  std::atomic<std::uint64_t> element_bytes_copied_ = 0;
  std::atomic<std::uint64_t> element_bytes_referenced_ = 0;
  std::atomic<bool> names_functions_ = false;  // a name that is missing does no harm
  mutex names_mutex_;
  std::map<function_token, std::string> names_ MUSTER_GUARDED_BY(names_mutex_);
};

}  // namespace muster::detail
