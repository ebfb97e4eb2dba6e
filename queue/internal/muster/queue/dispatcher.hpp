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
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/intrusive/list.hpp>

#include <muster/async/cancellation.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/dispatcher_options.hpp>
#include <muster/queue/dispatcher_reports.hpp>
#include <muster/queue/finished_list.hpp>
#include <muster/queue/pause_log.hpp>
#include <muster/queue/task_record.hpp>
#include <muster/queue/task_reply.hpp>
#include <muster/queue/task_request.hpp>
#include <muster/queue/task_timing.hpp>
#include <muster/queue/watched_tasks.hpp>

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
  void subscribe(task_record& record, completion_sink& sink) noexcept MUSTER_EXCLUDES(mutex_);

  /// Withdraws the task if no worker has it; it ends with errc::cancelled then, and the result is true. Otherwise does
  /// what `how` says, and the result is false. With cancellation::kill the task ends with errc::cancelled once its
  /// worker is dead, unless it was done before; it is not tried again.
  bool cancel(task_record& record, cancellation how = cancellation::ask) MUSTER_EXCLUDES(mutex_);
  /// The same for who does not hold the record any more: nothing, if it is another task's by now than that with `id`.
  bool cancel_if_still(task_record& record, std::uint64_t id, cancellation how) MUSTER_EXCLUDES(mutex_);
  /// Asks a task that a worker has begun to stop, as cancel() does, and leaves it at that.
  void ask_to_stop(task_record& record) MUSTER_EXCLUDES(mutex_);

  /// Handles what workers have entered into their rings, then tells sinks. Any thread may help.
  void drain() MUSTER_EXCLUDES(mutex_);
  /// Whether drain() has anything to do. Takes no lock: for looking often.
  [[nodiscard]] bool has_completions() const noexcept;
  /// For the thread that sleeps on the bell: asks workers to ring it, unless a loop sees to that; drains once more.
  void arm_bell() MUSTER_EXCLUDES(mutex_);

  /// What a loop of the program's does, which drains in the supervisor's place while somebody listens for ends.
  enum class loop_state : std::uint8_t {
    none,     ///< there is none, or nobody listens: the supervisor drains
    called,   ///< it was asked to begin, and has not done so: the supervisor drains
    polls,    ///< it looks again and again: no bell is rung
    sleeps,   ///< it is woken by its bell
    retired,  ///< it was found busy with other things: the supervisor drains until it polls again
  };
  [[nodiscard]] loop_state loop() const noexcept { return loop_.load(std::memory_order_seq_cst); }
  /// Somebody on the loop listens for an end, from now until he was told of it. Nothing, where there is no loop.
  void begin_listening() noexcept MUSTER_EXCLUDES(mutex_);
  void end_listening() noexcept MUSTER_EXCLUDES(mutex_);
  /// The loop looks now, and will do so again soon, or sleep or rest. True when it did not poll before.
  bool begin_poll() MUSTER_EXCLUDES(mutex_);
  /// The loop will not look any more until its bell rings: the result is true; or until it is called again, because
  /// nobody listens. Drains.
  bool end_poll() MUSTER_EXCLUDES(mutex_);
  /// The loop does not answer: until it polls again the supervisor is rung. Drains. Nothing, if it is not in charge.
  void retire_loop() MUSTER_EXCLUDES(mutex_);
  /// From now on the supervisor is rung as well for the loop that sleeps; false when it does not, or was rung.
  bool ring_both() MUSTER_EXCLUDES(mutex_);

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

  /// Work that will post tasks later, with admission::reserved. While one exists the dispatcher is not empty, and
  /// accepts those even after close().
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

  /// Takes a place under max_pending for work that is made of many tasks, as post() does for one; false where that
  /// would fail for want of one (overflow_policy::fail_task). Each is to be given back.
  [[nodiscard]] bool take_place() MUSTER_EXCLUDES(mutex_);
  void free_place() noexcept MUSTER_EXCLUDES(mutex_);

  /// How long a waiter should spin before it sleeps: nothing while the workers that are awake need all processors, and
  /// no longer than `until`.
  [[nodiscard]] std::chrono::nanoseconds spin_budget(deadline until = {}) noexcept;
  /// For a caller that spins until one of many tasks has ended. Tells the workers where the thread runs. Cost: a load
  /// for each of a few workers.
  [[nodiscard]] prospect ask_of_many() noexcept;

  /// From now on there are to be so many workers, the first ones. Tasks for one beyond them are accepted all the same:
  /// see needs_worker and dispatcher_options::call_back. Requires: from 1 to the board's.
  void set_active(std::size_t workers) MUSTER_EXCLUDES(mutex_);
  /// Whether there are tasks that only this worker may run.
  [[nodiscard]] bool needs_worker(std::size_t worker) const MUSTER_EXCLUDES(mutex_);

  /// Where a task ran last, for messages. Requires: settled.
  [[nodiscard]] task_place place_of(const task_record& record) const;

  /// Says which process a worker is from now on; for messages.
  void set_worker(std::size_t worker, pid_t pid) MUSTER_EXCLUDES(mutex_);

  /// Settles everything that a dead worker had: what it completed counts, what it had not begun is posted again, what
  /// it was running ends with errc::worker_died or, where retries are left, is posted again.
  /// `words` go with the errors of what ended by that death.
  /// Requires: the kernel confirmed the death. Idempotent.
  void recover(std::size_t worker, const exit_status& how, const last_words& words = {}) MUSTER_EXCLUDES(mutex_);

  /// Looks whether somebody has overwritten shared words: repairs what the parent knows, fails tasks of which nobody
  /// knows any more how they stand, and wakes whoever may have missed a wake. Only tasks that were there at the audit
  /// before are looked at, so time should pass between two. What it takes for damage is impossible otherwise: a worker
  /// that is slow or stopped is never suspected. Pages: docs/design/integrity.md.
  [[nodiscard]] audit_report audit() MUSTER_EXCLUDES(mutex_);
  /// Puts a fresh board in the place of the old one, and posts again what no worker had begun.
  /// Requires: all workers are dead and recovered.
  void renew() MUSTER_EXCLUDES(mutex_);
  /// Finds tasks that have run for too long, or past their deadline. Their workers are bound to them: kill those, and
  /// recover() ends the tasks with errc::timed_out. A task that its worker has claimed and not begun for so long is
  /// posted again. One that no worker has when its deadline passes ends with errc::timed_out now; one that was to be
  /// tried again later is posted when its time has come.
  /// Cost: of the tasks that are due, not of all that have times.
  [[nodiscard]] overdue_report check_times() MUSTER_EXCLUDES(mutex_);
  /// This process did not run for a while, and its workers are taken to have been stopped with it: timeouts and
  /// deadlines of what was under way are extended.
  void note_pause(const host_pause& which) MUSTER_EXCLUDES(mutex_);
  /// Whether a deadline has passed, extended by such pauses.
  [[nodiscard]] bool is_over(const task_terms& terms) MUSTER_EXCLUDES(mutex_);

  /// As board::restore_header; counts as damage if something was wrong.
  bool restore_header() MUSTER_EXCLUDES(mutex_);
  /// Counts damage that somebody else has noticed.
  void report_damage() MUSTER_EXCLUDES(mutex_);

  /// No more tasks are accepted, save for what has a reservation: post throws `why`, of the first call. Once every
  /// accepted task has ended, `when_empty` of each call is called, once, by whichever thread notices; so it must not
  /// run user code or block.
  void close(error_info why, std::function<void()> when_empty = {}) MUSTER_EXCLUDES(mutex_);
  /// All workers will be killed: what they are running ends with `why`, not with worker_died.
  void expect_kills(error_info why) MUSTER_EXCLUDES(mutex_);
  /// As close; and everything that has not ended ends with `why` now. Requires: no worker is running any more.
  void stop(const error_info& why) MUSTER_EXCLUDES(mutex_);
  /// Waits until every accepted task has ended; false when `until` passed first.
  /// Unblocked by: the end of the last task; stop().
  bool wait_until_empty(deadline until) MUSTER_EXCLUDES(mutex_);

  [[nodiscard]] std::size_t pending() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] statistics read_statistics() const MUSTER_EXCLUDES(mutex_);

  /// Has workers say when they begin and end tasks, for read_worker_counts and read_slowest, or no longer. Tasks that
  /// are accepted from then on count.
  /// Cost while it is on: two readings of the clock in the worker and three in the parent, and an entry, per task.
  void time_statistics(bool on) MUSTER_EXCLUDES(mutex_);
  /// The same for take_events. `some` is called, under the lock, when there are events after there were none: it must
  /// not call back.
  void begin_events(std::function<void()> some) MUSTER_EXCLUDES(mutex_);
  void end_events() MUSTER_EXCLUDES(mutex_);
  /// Moves what has ended since the last time into `events`; the result is how many more there were, which are lost.
  std::uint64_t take_events(std::vector<task_event>& events) MUSTER_EXCLUDES(mutex_);

  /// What one worker has done, over all its incarnations.
  struct worker_counts {
    std::uint64_t done = 0;  ///< replies that were taken from it; of a map: chunks
    std::chrono::nanoseconds working{};
  };
  [[nodiscard]] std::vector<worker_counts> read_worker_counts() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<slow_task> read_slowest() const MUSTER_EXCLUDES(mutex_);

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

  using waiting_list = boost::intrusive::list<
      task_record, boost::intrusive::member_hook<task_record, decltype(task_record::waits_), &task_record::waits_>,
      boost::intrusive::constant_time_size<false>>;

  // Accepting.
  void attend(const task_request& request) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_full() const MUSTER_REQUIRES(mutex_) {
    return options_.max_pending != 0 && places_ >= options_.max_pending;
  }
  [[nodiscard]] std::string describe_overflow(const char* advice) const;
  [[nodiscard]] bool wait_for_a_place(deadline until) MUSTER_EXCLUDES(mutex_);
  using argument_line = std::array<std::byte, inline_argument_bytes>;
  bool try_place(task_record& record, const argument_line& arguments) MUSTER_REQUIRES(mutex_);
  bool has_room(std::size_t lane) MUSTER_REQUIRES(mutex_);
  void enter_waiting(task_record& record, bool first, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void feed() MUSTER_REQUIRES(mutex_);
  void list_private(std::size_t worker) MUSTER_REQUIRES(mutex_);
  void feed_private_lanes() MUSTER_REQUIRES(mutex_);
  void feed_private_lane(std::size_t worker) MUSTER_REQUIRES(mutex_);
  void note_private(std::size_t worker) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool may_place_in(std::size_t lane) const MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool has_backlog() const MUSTER_REQUIRES(mutex_) { return waiting_ > 0 || private_waiting_ > 0; }
  [[nodiscard]] waiting_list* next_backlog() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool has_slot_for(std::size_t lane) const MUSTER_REQUIRES(mutex_);
  void enter_backlog(task_record& record, bool first) MUSTER_REQUIRES(mutex_);
  void leave_backlog(task_record& record) MUSTER_REQUIRES(mutex_);
  void wake_for(std::size_t lane, std::size_t count = 1) noexcept;
  [[nodiscard]] bool may_rely_on_spinning(std::size_t lane) noexcept;
  [[nodiscard]] prospect ask(const slot_word& found, std::size_t lane) noexcept;
  void spin_for(const task_record& record, task_record::location where, std::chrono::nanoseconds budget);
  [[nodiscard]] std::size_t take_fed() MUSTER_REQUIRES(mutex_) { return std::exchange(fed_, 0); }

  // Ending. Nothing here throws for want of memory: texts are left out, and what needs room has it since the start.
  static task_reply failed(errc code, std::string_view text) noexcept;
  static error_info error_of(errc code, std::string_view text) noexcept;
  void note_place(const task_record& record, task_reply& reply) const noexcept MUSTER_REQUIRES(mutex_);
  void adopt_attached(task_reply& reply) noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t generation_of(const task_record& record) const MUSTER_REQUIRES(mutex_);
  task_reply collect(task_record& record) MUSTER_REQUIRES(mutex_);
  task_reply receive_reply(const task_record& record, task_slot& slot, const slot_word& word) MUSTER_REQUIRES(mutex_);
  task_reply read_reply(task_slot& slot, const slot_word& word, std::uint32_t generation) MUSTER_REQUIRES(mutex_);
  void leave_slot(task_record& record) MUSTER_REQUIRES(mutex_);
  void vacate(task_record& record) MUSTER_REQUIRES(mutex_);
  void settle(task_record& record, task_reply reply, finished_list& finished) MUSTER_REQUIRES(mutex_);
  bool listen_for_end(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void settle_all(waiting_list& waiting, std::size_t& count, const error_info& why, finished_list& finished)
      MUSTER_REQUIRES(mutex_);
  void settle_if_done(std::uint16_t slot, std::uint32_t generation, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void count_end(const task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_empty() const MUSTER_REQUIRES(mutex_) {
    return pending_ == 0 && reserved_ == 0 && !has_requests();
  }
  void notice_empty(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void wake_waiter(task_record& record) MUSTER_REQUIRES(mutex_);
  bool must_be_woken_for(const task_record& record) MUSTER_REQUIRES(mutex_);
  void request_notification(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  bool ends_must_be_noticed() const MUSTER_REQUIRES(mutex_) { return harvesters_ > 0 || has_backlog(); }
  void request_all_notifications(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void leave_to_loop(task_record::location where) MUSTER_REQUIRES(mutex_);
  void look_at_late(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void arm() MUSTER_REQUIRES(mutex_);
  void begin_harvest(finished_list& finished) MUSTER_REQUIRES(mutex_);
  void end_harvest() MUSTER_REQUIRES(mutex_) { --harvesters_; }

  // Draining and recovery.
  [[nodiscard]] bool has_entries() const noexcept;
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
  task_reply lose(task_record& record, std::string_view reason) noexcept MUSTER_REQUIRES(mutex_);
  task_reply lose_to(task_record& record, const slot_word& found) noexcept MUSTER_REQUIRES(mutex_);
  void fail_corrupted(task_record& record, const slot_word& found, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void note_damage() MUSTER_REQUIRES(mutex_);
  void suspect(std::size_t worker) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t attempts(std::size_t worker) const MUSTER_REQUIRES(mutex_);
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
  [[nodiscard]] const std::vector<task_record*>& queued_records() MUSTER_REQUIRES(mutex_);
  void rebuild_lane(std::size_t index, const std::vector<task_record*>& queued) MUSTER_REQUIRES(mutex_);

  bool cancel(task_record& record, cancellation how, finished_list& finished) MUSTER_REQUIRES(mutex_);
  bool request_stop(task_record& record) MUSTER_REQUIRES(mutex_);

  // Time: dispatcher_time.cpp.
  void begin_terms(task_record& record, const task_request& request) MUSTER_REQUIRES(mutex_);
  void end_terms(task_record& record) MUSTER_REQUIRES(mutex_);
  void set_due(task_record& record, clock::time_point when) MUSTER_REQUIRES(mutex_);
  void watch_posted(task_record& record) MUSTER_REQUIRES(mutex_);
  void watch_waiting(task_record& record) MUSTER_REQUIRES(mutex_);
  void look_at_time(task_record& record, clock::time_point now, overdue_report& report, finished_list& finished)
      MUSTER_REQUIRES(mutex_);
  clock::time_point due_of(task_record& record) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] clock::time_point deadline_of(const task_terms& terms) const MUSTER_REQUIRES(mutex_);
  [[nodiscard]] clock::time_point start_of(const watched_tasks::entry& watched, std::size_t worker,
                                           clock::time_point now) MUSTER_REQUIRES(mutex_);
  void fail_after_timeout(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void fail_unbegun(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);

  // When tasks ran: dispatcher_timing.cpp.
  void ask_for_times() MUSTER_REQUIRES(mutex_);
  void ask_for_times(std::size_t worker) MUSTER_REQUIRES(mutex_);
  void begin_timing(task_record& record, const task_request& request) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] task_event event_of(const task_record& record) MUSTER_REQUIRES(mutex_);
  void note_posted(task_record& record) MUSTER_REQUIRES(mutex_);
  void note_run(task_record& record, task_outcome outcome) MUSTER_REQUIRES(mutex_);
  void note_reply(task_record& record, const task_reply& reply) MUSTER_REQUIRES(mutex_);
  void end_timing(task_record& record, const task_reply& reply) MUSTER_REQUIRES(mutex_);
  void forget_timing(task_record& record) MUSTER_REQUIRES(mutex_);

  // Further attempts: dispatcher_retry.cpp.
  [[nodiscard]] retry_reasons retries_of(const task_record& record) const MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool may_try_again(const task_record& record) const MUSTER_REQUIRES(mutex_);
  void try_again(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void begin_attempt(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  void wait_for(std::chrono::nanoseconds delay, task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_reason_to_retry(const task_record& record, const task_reply& reply) const noexcept
      MUSTER_REQUIRES(mutex_);
  void settle_done(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::chrono::nanoseconds delay_of(const task_record& record) MUSTER_REQUIRES(mutex_);
  void doom(task_record& record) MUSTER_REQUIRES(mutex_);
  void fail_after_cancelling(task_record& record, finished_list& finished) MUSTER_REQUIRES(mutex_);

  // Calls that tasks make.
  void make_requests(std::size_t workers) MUSTER_REQUIRES(mutex_);
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
  bool sleep_on_later(std::size_t lane, deadline until) noexcept;
  bool sleep_on_slot(task_record& record, task_record::location where, deadline until) noexcept;
  bool sleep_on_record(task_record& record, task_phase from, deadline until) MUSTER_EXCLUDES(mutex_);
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
  std::array<waiting_list, board::shared_lanes> backlog_ MUSTER_GUARDED_BY(mutex_);  // by lane
  std::size_t waiting_ MUSTER_GUARDED_BY(mutex_) = 0;                                // in all of these
  const last_words* words_ MUSTER_GUARDED_BY(mutex_) = nullptr;                      // of who is recovered
  unsigned feeds_ MUSTER_GUARDED_BY(mutex_) = 0;                                     // for aging
  // Tasks of one worker only have a share of the slots, so that a slow worker does not hold up the others.
  struct private_tasks {
    waiting_list waiting;
    std::size_t posted = 0;
    bool listed = false;
  };
  std::vector<private_tasks> private_ MUSTER_GUARDED_BY(mutex_);       // by worker
  std::size_t private_waiting_ MUSTER_GUARDED_BY(mutex_) = 0;          // of all workers
  std::vector<std::size_t> private_listed_ MUSTER_GUARDED_BY(mutex_);  // all workers for which tasks wait, and others
  std::vector<std::uint16_t> free_slots_ MUSTER_GUARDED_BY(mutex_);
  std::vector<task_record*> in_slot_ MUSTER_GUARDED_BY(mutex_);       // by slot; nullptr: free
  std::vector<std::uint64_t> generations_ MUSTER_GUARDED_BY(mutex_);  // by slot: of the last task that was put there
  std::vector<std::uint64_t> lane_tails_ MUSTER_GUARDED_BY(mutex_);   // by lane
  std::vector<std::uint64_t> lane_heads_ MUSTER_GUARDED_BY(mutex_);   // by lane, as last seen
  std::vector<pid_t> worker_pids_ MUSTER_GUARDED_BY(mutex_);          // by worker
  std::vector<std::uint64_t> done_ MUSTER_GUARDED_BY(mutex_);         // by worker: replies
  task_timing timing_ MUSTER_GUARDED_BY(mutex_);
  task_labels labels_ MUSTER_GUARDED_BY(mutex_);
  watched_tasks terms_ MUSTER_GUARDED_BY(mutex_);  // those with terms
  pause_log pauses_ MUSTER_GUARDED_BY(mutex_);
  std::minstd_rand jitter_ MUSTER_GUARDED_BY(mutex_){std::random_device{}()};
  clock::time_point next_check_ MUSTER_GUARDED_BY(mutex_) = clock::time_point::max();
  std::optional<error_info> closed_ MUSTER_GUARDED_BY(mutex_);
  std::optional<error_info> will_be_killed_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> when_empty_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::size_t pending_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t places_ MUSTER_GUARDED_BY(mutex_) = 0;  // that are taken, under max_pending
  std::size_t reserved_ MUSTER_GUARDED_BY(mutex_) = 0;
  unsigned harvesters_ MUSTER_GUARDED_BY(mutex_) = 0;  // threads that need ends to be noticed
  unsigned helpers_ MUSTER_GUARDED_BY(mutex_) = 0;
  // Tasks that were done when somebody subscribed, and are left to the loop that polls.
  std::vector<task_record::location> late_ MUSTER_GUARDED_BY(mutex_);
  std::atomic<bool> some_late_ = false;              // written under the mutex, peeked at without it
  std::atomic<std::size_t> listeners_ = 0;           // what follows from it is done under the mutex
  std::atomic<loop_state> loop_ = loop_state::none;  // written under the mutex, peeked at without it
  // By worker, of those that there may be.
  std::vector<std::unique_ptr<std::array<nested_request, requests_per_worker>>> requests_ MUSTER_GUARDED_BY(mutex_);
  std::vector<task_record*> queued_ MUSTER_GUARDED_BY(mutex_);        // of queued_records()
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
