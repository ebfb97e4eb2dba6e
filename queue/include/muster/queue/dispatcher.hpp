// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/mutex.hpp>
#include <muster/memory/arena.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/dispatcher_options.hpp>
#include <muster/queue/dispatcher_reports.hpp>
#include <muster/queue/finished_list.hpp>
#include <muster/queue/task_record.hpp>
#include <muster/queue/task_reply.hpp>
#include <muster/queue/task_request.hpp>

namespace muster {

/// The parent's end of a board: posts tasks, hands out replies, recovers the tasks of dead workers.
///
/// It works as follows. A task is a private *record*. When a slot is free it is *posted*: its frame is copied into the
/// slot, the slot's word published, a hint pushed on a lane and, if nobody is awake for it, one sleeping worker woken.
/// Otherwise the record *waits* in private memory. Whoever waits for a task looks at its slot's word, spinning and then
/// sleeping on it; no other thread stands between. When tasks wait, or somebody wants to be told (a sink), workers also
/// enter completions into rings, which `drain` reads; it moves replies into the records and gives the slots to waiting
/// tasks. The truth is in the records; every shared word is compared with it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe; a record has one waiter at a time.
/// Process safety: one dispatcher per board, in the parent.
/// Cost: a warm post or take is one uncontended lock and no allocation.
class dispatcher {
public:
  using options = dispatcher_options;
  using statistics = dispatcher_statistics;

  /// Lifetime: borrows board and arena.
  dispatcher(board& board, arena& memory, options settings);
  ~dispatcher();
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  /// Accepts a task. Never waits for a worker; waits for room only under overflow_policy::block, unblocked then by any
  /// task that ends, by `overflow_wait`, and by stop().
  /// Throws errc::overflow as said above, and what stop() was given once it was called.
  /// The record stays valid until take() or detach(), or, with a sink, until the sink has called one of them.
  task_record& post(task_request&& request) MUSTER_EXCLUDES(mutex_);

  /// Waits until the task has ended; false when `until` passed first, and nothing has changed then.
  /// Unblocked by: the end of the task in any way: value, error, death of the worker, stop().
  bool wait(task_record& record, deadline until = {}) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_done(const task_record& record);

  /// Takes the reply out and gives the record back. Requires: the task has ended.
  task_reply take(task_record& record) MUSTER_EXCLUDES(mutex_);

  /// Nobody will take the reply: the task runs to its end, then everything is freed.
  void detach(task_record& record) noexcept MUSTER_EXCLUDES(mutex_);

  /// Makes `sink` the one that is told of the task's end; it is told at once when the task has ended already.
  void subscribe(task_record& record, completion_sink& sink) MUSTER_EXCLUDES(mutex_);

  /// Withdraws the task if no worker has it; it ends with errc::cancelled then, and the result is true. Otherwise asks
  /// it to stop (this_task::stop_requested()), and the result is false.
  bool cancel(task_record& record) MUSTER_EXCLUDES(mutex_);

  /// Handles what workers have entered into their rings, then tells sinks. Any thread may help.
  void drain() MUSTER_EXCLUDES(mutex_);
  /// Whether drain() has anything to do. Takes no lock: for looking often.
  [[nodiscard]] bool has_completions() const noexcept;
  /// For the thread that sleeps on the bell: asks workers to ring it. It drains once more afterwards.
  void arm_bell() MUSTER_EXCLUDES(mutex_);

  /// While one exists its thread drains by itself, and the bell stays silent.
  class helper {
  public:
    explicit helper(dispatcher& helped) : helped_(helped) { helped_.begin_help(); }
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;
    ~helper() { helped_.end_help(); }

  private:
    dispatcher& helped_;
  };

  /// Work that will post more chunks (task_request::chunk) as earlier ones end. While one exists the dispatcher is not
  /// empty, and accepts chunks even after close().
  ///
  /// Thread safety: distinct objects: safe. Shared objects: unsafe.
  /// Lifetime: borrows the dispatcher.
  class reservation {
  public:
    reservation() noexcept = default;
    explicit reservation(dispatcher& of) noexcept : of_(&of) {}
    reservation(reservation&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    reservation& operator=(reservation&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~reservation() {
      if (of_ != nullptr) of_->end_reservation();
    }

  private:
    dispatcher* of_ = nullptr;
  };
  /// Throws what close() or stop() was given once it was called.
  [[nodiscard]] reservation reserve() MUSTER_EXCLUDES(mutex_);

  /// How long a waiter should spin before it sleeps: nothing while the workers that are awake need all processors, and
  /// no longer than `until`.
  [[nodiscard]] std::chrono::nanoseconds spin_budget(deadline until = {}) noexcept;

  /// Says which process a worker is from now on; for messages.
  void set_worker(std::size_t worker, pid_t pid) MUSTER_EXCLUDES(mutex_);

  /// Settles everything that a dead worker had: what it completed counts, what it had not begun is posted again, what
  /// it was running ends with errc::worker_died or, where retries are left, is posted again.
  /// Requires: the kernel confirmed the death. Idempotent.
  void recover(std::size_t worker, const exit_status& how) MUSTER_EXCLUDES(mutex_);

  /// Looks whether somebody has overwritten shared words: repairs what the parent knows, fails tasks of which nobody
  /// knows any more how they stand, and wakes whoever may have missed a wake. Only tasks that were there at the audit
  /// before are looked at, so time should pass between two. What it takes for damage is impossible otherwise: a worker
  /// that is slow or stopped is never suspected. Pages: docs/design/integrity.md.
  [[nodiscard]] audit_report audit() MUSTER_EXCLUDES(mutex_);
  /// Puts a fresh board in the place of the old one, and posts again what no worker had begun.
  /// Requires: all workers are dead and recovered.
  void renew() MUSTER_EXCLUDES(mutex_);
  /// Finds timed tasks that have run for too long. Their workers are bound to them: kill those, and recover() ends the
  /// tasks with errc::timed_out. A task that its worker has claimed and not begun for so long is posted again.
  [[nodiscard]] overdue_report check_times() MUSTER_EXCLUDES(mutex_);

  /// Counts damage that somebody else has noticed.
  void report_damage() MUSTER_EXCLUDES(mutex_);

  /// No more tasks are accepted, save for what has a reservation: post throws `why`. Once every accepted task has ended
  /// `when_empty` is called, once, by whichever thread notices; so it must not run user code or block.
  void close(error_info why, std::function<void()> when_empty = {}) MUSTER_EXCLUDES(mutex_);
  /// As close; and everything that has not ended ends with `why` now. Requires: no worker is running any more.
  void stop(const error_info& why) MUSTER_EXCLUDES(mutex_);
  /// Waits until every accepted task has ended; false when `until` passed first.
  /// Unblocked by: the end of the last task; stop().
  bool wait_until_empty(deadline until) MUSTER_EXCLUDES(mutex_);

  [[nodiscard]] std::size_t pending() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] statistics read_statistics() const MUSTER_EXCLUDES(mutex_);

private:
  struct nested_request;

  void end_reservation() noexcept MUSTER_EXCLUDES(mutex_);
  void begin_help() MUSTER_EXCLUDES(mutex_);
  void end_help() MUSTER_EXCLUDES(mutex_);

  // Records.
  using record_batch = std::array<task_record, 32>;
  void make_records() MUSTER_REQUIRES(mutex_);
  task_record& new_record(const task_request& request) MUSTER_REQUIRES(mutex_);
  void recycle(task_record& record) MUSTER_REQUIRES(mutex_);
  const std::string* intern(std::string_view label) MUSTER_REQUIRES(mutex_);

  // Accepting.
  void attend(const task_request& request) MUSTER_REQUIRES(mutex_);
  bool exceeds_limit() const MUSTER_REQUIRES(mutex_) {
    return options_.max_pending != 0 && pending_ > options_.max_pending;
  }
  [[nodiscard]] std::string describe_overflow(const char* advice) const;
  [[nodiscard]] bool must_wait_for_room() const MUSTER_REQUIRES(mutex_);
  void wait_for_an_end(deadline until) MUSTER_EXCLUDES(mutex_);
  using argument_line = std::array<std::byte, inline_argument_bytes>;
  bool try_place(task_record& record, const argument_line& arguments) MUSTER_REQUIRES(mutex_);
  bool has_room(std::size_t lane) MUSTER_REQUIRES(mutex_);
  void put_in_backlog(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void feed() MUSTER_REQUIRES(mutex_);
  void wake_for(std::size_t lane, std::size_t count = 1) noexcept;
  void wake_for_one(std::size_t lane, bool will_be_waited_for) noexcept;
  [[nodiscard]] std::size_t take_fed() MUSTER_REQUIRES(mutex_) { return std::exchange(fed_, 0); }

  // Ending.
  task_reply collect(task_record& record) MUSTER_REQUIRES(mutex_);
  task_reply read_reply(task_slot& slot, const slot_word& word, std::uint32_t generation) MUSTER_REQUIRES(mutex_);
  void leave_slot(task_record& record) MUSTER_REQUIRES(mutex_);
  void vacate(task_record& record) MUSTER_REQUIRES(mutex_);
  void settle(task_record& record, task_reply reply, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void settle_if_done(std::uint16_t slot, std::uint32_t generation, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void count_end(finished_list& finished) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_empty() const MUSTER_REQUIRES(mutex_) {
    return pending_ == 0 && reserved_ == 0 && !has_requests();
  }
  void notice_empty(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void wake_waiter(task_record& record) MUSTER_REQUIRES(mutex_);
  bool is_unclaimed(const task_record& record) MUSTER_REQUIRES(mutex_);
  void request_notification(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  bool ends_must_be_noticed() const MUSTER_REQUIRES(mutex_) { return harvesters_ > 0 || !backlog_.empty(); }
  void request_all_notifications(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void begin_harvest(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void end_harvest() MUSTER_REQUIRES(mutex_) { --harvesters_; }

  // Draining and recovery.
  void drain_ring(std::size_t worker, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void look_at_all_slots(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void recover_slot(task_record& record, std::size_t worker, const exit_status& how, finished_list& finished)
      MUSTER_REQUIRES(mutex_);
  void fail_after_death(task_record& record, const exit_status& how, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void end_claimed(task_record& record, error_info why, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void repost(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void take_back(task_record& record) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] argument_line arguments_of(const task_record& record) MUSTER_REQUIRES(mutex_);

  // Damage.
  [[nodiscard]] bool is_possible(const slot_word& found, const task_record& record) const MUSTER_REQUIRES(mutex_);
  task_reply lose(task_record& record, std::string_view reason) MUSTER_REQUIRES(mutex_);
  task_reply lose_to(task_record& record, const slot_word& found) MUSTER_REQUIRES(mutex_);
  void fail_corrupted(task_record& record, const slot_word& found, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void note_damage() MUSTER_REQUIRES(mutex_);
  void suspect(std::size_t worker) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t attempts() const MUSTER_REQUIRES(mutex_);
  /// Then that worker may run it inside of another task.
  [[nodiscard]] static bool was_called_by(const task_record& record, std::size_t worker) noexcept {
    return record.caller_ == worker + 1;
  }
  void audit_line(std::size_t worker, finished_list& finished) MUSTER_REQUIRES(mutex_);
  bool audit_slots(finished_list& finished) MUSTER_REQUIRES(mutex_);
  bool audit_slot(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_elsewhere(const task_record& record, const slot_word& claimed) MUSTER_REQUIRES(mutex_);
  void audit_lanes() MUSTER_REQUIRES(mutex_);
  bool mark_hints(std::size_t index, std::vector<bool>& hinted) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::vector<task_record*> queued_records() MUSTER_REQUIRES(mutex_);
  void rebuild_lane(std::size_t index, const std::vector<task_record*>& queued) MUSTER_REQUIRES(mutex_);

  // Time: dispatcher_time.cpp.
  struct timing {
    std::chrono::nanoseconds limit{};
    clock::time_point posted;                 // it cannot have begun before
    clock::time_point due;                    // it cannot be overdue before
    std::optional<clock::time_point> waited;  // since when it was seen claimed, and not begun
  };
  void watch_time(const task_record& record) MUSTER_REQUIRES(mutex_);
  bool is_overdue(const task_record& record, timing& timed, clock::time_point now) MUSTER_REQUIRES(mutex_);
  clock::time_point start_of(const timing& timed, std::size_t worker, clock::time_point now) MUSTER_REQUIRES(mutex_);
  void fail_after_timeout(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);

  // Calls that tasks make.
  nested_request& nested_request_of(std::size_t worker, std::size_t cell) MUSTER_REQUIRES(mutex_);
  void look_at_request(std::size_t worker, std::size_t cell, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void look_at_all_requests(std::size_t worker, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void look_at_postponed(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void postpone(nested_request& request, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void forget_postponed(nested_request& request) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool has_requests() const MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool can_post_nested() MUSTER_REQUIRES(mutex_);
  void accept(nested_request& request, finished_list& finished) MUSTER_REQUIRES(mutex_);
  outgoing_frame read_arguments(const request_cell& cell, const cell_word& accepted);
  void post_nested(nested_request& request, const cell_word& accepted, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void answer(nested_request& request, task_record& record) noexcept MUSTER_EXCLUDES(mutex_);
  void write_answer(nested_request& request, task_reply reply) MUSTER_REQUIRES(mutex_);
  void write_error(nested_request& request, error_info error) MUSTER_REQUIRES(mutex_);
  void publish_answer(nested_request& request, cell_flag flags) MUSTER_REQUIRES(mutex_);
  void forget_requests(std::size_t worker, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void forget_request(nested_request& request, finished_list& finished) MUSTER_REQUIRES(mutex_);
  bool withdraw(task_record& record) MUSTER_REQUIRES(mutex_);

  // Waiting.
  bool sleep_on_slot(task_record& record, task_record::location where, deadline until) noexcept;
  bool sleep_on_record(task_record& record, deadline until) MUSTER_EXCLUDES(mutex_);
  void check_slot(task_record& record, task_record::location where) MUSTER_EXCLUDES(mutex_);

  board& board_;
  arena& memory_;
  const options options_;
  std::vector<std::atomic<std::uint64_t>> ring_heads_;  // by worker; written under the mutex, peeked at without it

  mutable mutex mutex_;
  condition room_;   // a task ended, or stop()
  condition empty_;  // the last task ended
  std::vector<std::unique_ptr<record_batch>> records_ MUSTER_GUARDED_BY(mutex_);
  std::vector<task_record*> unused_ MUSTER_GUARDED_BY(mutex_);
  std::deque<task_record*> backlog_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::uint16_t> free_slots_ MUSTER_GUARDED_BY(mutex_);
  std::vector<task_record*> in_slot_ MUSTER_GUARDED_BY(mutex_);       // by slot; nullptr: free
  std::vector<std::uint64_t> generations_ MUSTER_GUARDED_BY(mutex_);  // by slot
  std::vector<std::uint64_t> lane_tails_ MUSTER_GUARDED_BY(mutex_);   // by lane
  std::vector<std::uint64_t> lane_heads_ MUSTER_GUARDED_BY(mutex_);   // by lane, as last seen
  std::vector<pid_t> worker_pids_ MUSTER_GUARDED_BY(mutex_);          // by worker
  std::set<std::string, std::less<>> labels_ MUSTER_GUARDED_BY(mutex_);
  std::unordered_map<const task_record*, timing> timings_ MUSTER_GUARDED_BY(mutex_);  // of timed tasks
  clock::time_point next_check_ MUSTER_GUARDED_BY(mutex_) = clock::time_point::max();
  std::optional<error_info> closed_ MUSTER_GUARDED_BY(mutex_);
  std::function<void()> when_empty_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::size_t pending_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t reserved_ MUSTER_GUARDED_BY(mutex_) = 0;
  unsigned harvesters_ MUSTER_GUARDED_BY(mutex_) = 0;  // threads that need ends to be noticed
  unsigned helpers_ MUSTER_GUARDED_BY(mutex_) = 0;
  // By worker, once it has had a task that called another.
  std::vector<std::unique_ptr<std::array<nested_request, requests_per_worker>>> requests_ MUSTER_GUARDED_BY(mutex_);
  std::vector<nested_request*> postponed_ MUSTER_GUARDED_BY(mutex_);  // there was no slot for them
  std::size_t fed_ MUSTER_GUARDED_BY(mutex_) = 0;  // placed from the backlog, and nobody woken for it yet
  // Of damage.
  bool attention_ MUSTER_GUARDED_BY(mutex_) = true;            // the next post has more to do than to post
  bool watched_ MUSTER_GUARDED_BY(mutex_) = false;             // audits go on
  std::uint64_t audited_up_to_ MUSTER_GUARDED_BY(mutex_) = 0;  // the last task that was there at the audit before
  unsigned damages_ MUSTER_GUARDED_BY(mutex_) = 0;             // since the board was made or renewed
  std::size_t lost_slots_ MUSTER_GUARDED_BY(mutex_) = 0;       // of no use until the board is renewed
  std::vector<bool> suspects_ MUSTER_GUARDED_BY(mutex_);       // by worker
  std::vector<bool> absent_ MUSTER_GUARDED_BY(mutex_);         // by worker: recovered, and not replaced yet
  std::vector<std::uint64_t> finished_seen_ MUSTER_GUARDED_BY(mutex_);  // by worker
  statistics counters_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
