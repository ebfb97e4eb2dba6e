// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <muster/async/detail/future_home.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/memory/wait/idle_set.hpp>
#include <muster/memory/wait/outlook.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/memory/wait/step_aside.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/detail/local_access.hpp>
#include <muster/pool/detail/local_queue.hpp>
#include <muster/pool/detail/local_waits.hpp>
#include <muster/pool/detail/local_worker.hpp>
#include <muster/pool/thread_pool_options.hpp>

namespace muster::detail {

/// What a pool of threads and its futures share: threads, their queues, and who waits for what.
///
/// It works as follows. Jobs for anybody lie in one queue, jobs for one thread in a queue of its own, which it looks at
/// first. A thread that finds nothing spins, visibly, then sleeps (memory/wait/parking.hpp). Who submits wakes a
/// sleeper unless somebody spins; a thread that has found a job after spinning wakes another if there are more. A job
/// that somebody runs elsewhere, because he waits for it, or that is cancelled, stays in its queue as an empty shell.
/// Accepted units, which are tasks and maps, are counted when they are accepted and when they have ended, by each
/// thread on lines of its own: their difference is what is pending.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Cost: a job pushed and popped is four atomic operations and no allocation.
class local_core final : public future_home, public std::enable_shared_from_this<local_core> {
public:
  using context_maker = local_context_maker;

  /// With threads, or, with none, for jobs that are run where they are submitted. Waits until initializers have run and
  /// contexts are there. Throws errc::invalid_argument, errc::start_failed with what one of them threw.
  local_core(const thread_pool_options& options, std::size_t threads, const context_maker& make_context);
  /// Requires: all threads have left, and are joined.
  ~local_core();

  /// How many workers can be named; at least one.
  [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }
  [[nodiscard]] bool is_serial() const noexcept { return serial_; }
  /// The way to one worker. Throws errc::invalid_argument when there is none with that index.
  [[nodiscard]] lane_route route_to(std::size_t worker) const;

  // ---- units: a task, or a map

  using admission = local_admission;
  /// Counts one more unit. Throws errc::pool_closed, and errc::overflow as the policy says; `limited`: it needs a place
  /// under max_pending, unless a task of the pool submits it.
  [[nodiscard]] admission begin_unit(bool limited);
  [[nodiscard]] static error_info overflow_error();
  /// Gives the place under max_pending back; before its end is published, so that who has seen the end finds room.
  void free_place() noexcept;
  /// One unit has ended, and whoever waits for it knows.
  void end_unit() noexcept;

  /// Has the job run by a thread, or runs it at once where there are none. Requires: an accepted unit, to which it
  /// belongs.
  void post(std::shared_ptr<local_job> job, lane_route route);
  /// Whether jobs wait that the calling thread might run next. Roughly.
  [[nodiscard]] bool has_waiting(const local_worker& here) const noexcept;

  /// The worker that the calling thread is, if it is one of this pool and may run what has that route.
  [[nodiscard]] local_worker* inside(lane_route route = {}) const noexcept;
  /// The same, whoever may run what it waits for: who enters himself in waits() before he sleeps without a time limit.
  /// Nobody where there are no threads.
  [[nodiscard]] local_worker* sleeper() const noexcept { return serial_ ? nullptr : inside(); }
  [[nodiscard]] local_waits& waits() noexcept { return waits_; }
  /// How what sleeper() waits for ends, when those whom it needs wait for it.
  [[nodiscard]] error_info circle_error(const local_worker& here) const;
  /// How long to look before sleeping: nothing while the threads that are awake need all processors.
  [[nodiscard]] std::chrono::nanoseconds spin_budget() const noexcept;
  /// Where a thread that waits for a task runs.
  void tell_caller_place() noexcept { tell_place(caller_place_); }
  /// For a caller that looks for the end of a task, over and over; `next` is the worker that is to act next, where that
  /// is known. Tells where the caller runs.
  [[nodiscard]] prospect ask(std::optional<std::size_t> next) noexcept;

  // ---- the end

  void close() noexcept;
  /// What has not begun ends with errc::cancelled; what runs is asked to stop.
  void terminate();
  /// Whether terminate() was called. Cost: one load.
  [[nodiscard]] bool is_stopping() const noexcept { return stopping_.is_requested(); }
  [[nodiscard]] const stop_flag& stopping() const noexcept { return stopping_; }
  /// What then becomes of what has not begun.
  [[nodiscard]] static error_info terminated_error() noexcept;
  bool wait_until_empty(deadline until) MUSTER_EXCLUDES(end_mutex_);
  /// Requires: closed.
  bool wait_until_left(deadline until) MUSTER_EXCLUDES(end_mutex_, join_mutex_);
  /// Calls `then` once nothing is pending any more, at once if that is so; by any thread, so `then` only passes the
  /// news on. Requires: closed.
  void when_empty(std::function<void()> then) MUSTER_EXCLUDES(end_mutex_);
  void join_threads() MUSTER_EXCLUDES(join_mutex_);
  /// Whether the calling thread is one of the pool's, which cannot wait for itself.
  [[nodiscard]] bool is_own_thread() const noexcept;
  /// Keeps `self`, which is this object, until it is given nothing.
  void keep_itself(std::shared_ptr<local_core> self) noexcept { self_.swap(self); }
  void log(log_level level, std::string_view message) const { log_(level, message); }
  /// Whether the worker takes no task any more.
  [[nodiscard]] bool has_left(std::size_t worker) const noexcept {
    return serial_ ? must_leave() : workers_[worker]->has_left.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(std::memory_order_seq_cst); }

  [[nodiscard]] thread_pool_statistics read_statistics() const noexcept;

private:
  struct alignas(64) worker {
    std::atomic<std::uint32_t> parked = 0;  // futex: parking.hpp
    std::atomic<std::uint64_t> ended = 0;   // units; written by its thread only
    std::atomic<bool> has_left = false;     // likewise
    place_word place = 0;                   // likewise
    step_aside aside;
    local_queue own;
    local_worker self;
    std::shared_ptr<void> context;
    std::thread thread;
  };

  void start(const context_maker& make_context);
  void prepare(std::size_t index, const context_maker& make_context) noexcept MUSTER_EXCLUDES(end_mutex_);
  void throw_if_unprepared() MUSTER_EXCLUDES(end_mutex_);
  void work(std::size_t index, const context_maker& make_context) noexcept;
  void run_finalizer(std::size_t index) noexcept;
  void leave(std::size_t index) MUSTER_EXCLUDES(end_mutex_);
  [[nodiscard]] std::shared_ptr<local_job> next_job(std::size_t index);
  [[nodiscard]] std::shared_ptr<local_job> take(std::size_t index);
  void run(local_job& job, local_worker& here) noexcept;
  bool spin(std::size_t index);
  void note_meeting(std::size_t index) noexcept;
  void park(std::size_t index);
  [[nodiscard]] bool seems_wanted(std::size_t index) const noexcept;
  [[nodiscard]] bool is_wanted(std::size_t index) const;
  [[nodiscard]] bool must_leave() const noexcept { return is_closed() && is_empty(); }
  [[nodiscard]] std::atomic<std::uint32_t>& wake_word_of(std::size_t worker) noexcept;
  void wake(std::size_t worker) noexcept;
  void wake_any() noexcept;
  void wake_all() noexcept;
  [[nodiscard]] idle_set sleeping() noexcept { return idle_set(sleeping_); }
  [[nodiscard]] idle_set spinning() const noexcept { return idle_set(spinning_); }

  [[nodiscard]] bool is_empty() const noexcept;
  [[nodiscard]] std::uint64_t ended() const noexcept;
  void count_end() noexcept;
  void announce_end() noexcept MUSTER_EXCLUDES(end_mutex_);
  [[nodiscard]] bool try_take_place() noexcept;
  [[nodiscard]] bool wait_for_place() MUSTER_EXCLUDES(place_mutex_);
  [[noreturn]] void throw_closed() const;

  // Constant after construction.
  const bool serial_;
  const std::string name_;
  const std::size_t max_pending_;
  const overflow_policy overflow_;
  const std::chrono::nanoseconds overflow_wait_;
  const std::function<void()> initializer_;
  const std::function<void()> finalizer_;
  const log_sink log_;
  const bool as_caller_;
  const spin_policy spin_;
  std::vector<std::unique_ptr<worker>> workers_;

  std::shared_ptr<local_core> self_;  // of the thread that ends it, while that has it
  local_waits waits_;
  local_queue queue_;
  // Who sleeps and who spins, a bit for each.
  alignas(64) std::vector<std::atomic<std::uint64_t>> sleeping_;
  mutable std::array<std::atomic<std::uint64_t>, 1> spinning_{};  // one at a time, of the first 64
  alignas(64) place_word caller_place_ = 0;                       // of who waited last

  // Sequentially consistent, all of these: of two sides that each write one and then read the other's, one sees it.
  alignas(64) std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<std::uint64_t> ended_elsewhere_ = 0;  // not by one of our threads
  std::atomic<std::uint64_t> places_taken_ = 0;     // under max_pending
  alignas(64) std::atomic<bool> closed_ = false;
  stop_flag stopping_;
  std::atomic<std::uint32_t> end_watchers_ = 0;    // who must be told when nothing is pending
  std::atomic<std::uint32_t> place_watchers_ = 0;  // who waits for a place

  mutex place_mutex_;
  condition place_;
  mutex join_mutex_;
  mutex end_mutex_;
  condition end_changed_;
  std::size_t prepared_ MUSTER_GUARDED_BY(end_mutex_) = 0;
  std::size_t left_ MUSTER_GUARDED_BY(end_mutex_) = 0;
  std::vector<std::function<void()>> when_empty_ MUSTER_GUARDED_BY(end_mutex_);
  std::string failure_ MUSTER_GUARDED_BY(end_mutex_);  // of the first thread that could not be prepared
};

}  // namespace muster::detail
