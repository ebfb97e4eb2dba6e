// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/dispatcher.hpp>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/reply_seal.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "nested_request.hpp"

namespace muster {

dispatcher::dispatcher(board& board, arena& memory, options settings)
    : board_(board), memory_(memory), options_(std::move(settings)), ring_heads_(board.sizes().workers) {
  const scoped_lock lock(mutex_);
  const auto& sizes = board_.sizes();
  in_slot_.resize(sizes.slots);
  generations_.resize(sizes.slots);
  lane_tails_.resize(board::shared_lanes + sizes.workers);
  lane_heads_.resize(lane_tails_.size());
  worker_pids_.resize(sizes.workers);
  suspects_.resize(sizes.workers);
  absent_.resize(sizes.workers);
  finished_seen_.resize(sizes.workers);
  requests_.resize(sizes.workers);
  for (std::size_t slot = sizes.slots; slot > 0; --slot) free_slots_.push_back(static_cast<std::uint16_t>(slot - 1));
}

dispatcher::~dispatcher() = default;

// ---- accepting

task_record& dispatcher::post(task_request&& request) {
  finished_list finished;
  const auto until = options_.max_pending == 0 ? deadline::never() : deadline::after(options_.overflow_wait);
  scoped_lock lock(mutex_);
  if (attention_) attend(request);
  while (request.limited && must_wait_for_room()) {
    lock.unlock();
    wait_for_an_end(until);
    lock.lock();
    if (attention_) attend(request);
  }
  auto& record = new_record(request);
  bool placed = false;
  if (request.limited && exceeds_limit()) {
    settle(record, task_reply(error_info(errc::overflow, describe_overflow("submit later"))), finished);
  } else {
    const auto& line = request.frame.line();
    record.reply_.keep(request.frame.take_payload());
    placed = backlog_.empty() && try_place(record, line);
    if (!placed) {
      record.keep_arguments(line);
      put_in_backlog(record, finished);
    }
  }
  const auto fed = take_fed();
  lock.unlock();
  if (fed != 0) wake_for(1, fed);
  if (placed) wake_for_one(request.lane, request.sink == nullptr);
  finished.finish();
  return record;
}

// One flag for all that is rare, so that posting looks at one.
void dispatcher::attend(const task_request& request) {
  if (closed_ && (stopped_ || !request.chunk)) closed_->raise();
  if (!std::exchange(watched_, true) && options_.watch) options_.watch();
  attention_ = closed_.has_value();
}

std::string dispatcher::describe_overflow(const char* advice) const {
  return text("there are already ", options_.max_pending, " pending tasks (max_pending): ", advice);
}

bool dispatcher::must_wait_for_room() const {
  return options_.max_pending != 0 && pending_ >= options_.max_pending &&
         options_.overflow != overflow_policy::fail_task;
}

// Returns when there may be room, or when the dispatcher was closed; throws when the policy does not allow to wait
// (longer).
void dispatcher::wait_for_an_end(deadline until) {
  finished_list finished;
  scoped_lock lock(mutex_);
  begin_harvest(finished);  // ends that nobody waits for must be noticed now
  lock.unlock();
  finished.finish();
  lock.lock();
  const auto is_full = [&]() MUSTER_REQUIRES(mutex_) { return pending_ >= options_.max_pending && !closed_; };
  const bool blocks = options_.overflow == overflow_policy::block;
  while (blocks && is_full() && !until.expired()) room_.wait_until(lock, until);
  end_harvest();
  if (!is_full()) return;
  throw error(errc::overflow,
              describe_overflow(blocks ? "none ended in time (overflow_wait); submit later, or raise max_pending"
                                       : "the overflow policy is to throw; submit later, or raise max_pending"));
}

task_record& dispatcher::new_record(const task_request& request) {
  if (unused_.empty()) make_records();
  auto& record = *unused_.back();
  unused_.pop_back();
  record.slot_sleeper_.store(false, std::memory_order_relaxed);
  record.detached_ = false;
  record.chunk_ = request.chunk;
  record.block_arguments_ = !request.frame.is_inline();
  record.overdue_ = false;
  record.caller_ = 0;
  record.timed_ = request.timeout.count() > 0;
  record.lane_ = static_cast<std::uint16_t>(request.lane);
  record.attempt_ = 1;
  record.retries_left_ = static_cast<std::uint16_t>(std::min(request.retries, 65535U));
  record.worker_ = -1;
  record.function_ = request.function;
  record.id_ = ++counters_.accepted;
  record.label_ = request.label.empty() ? nullptr : intern(request.label);
  record.sink_ = request.sink;
  if (record.timed_) timings_[&record].limit = request.timeout;
  ++pending_;
  return record;
}

void dispatcher::make_records() {
  auto& made = *records_.emplace_back(std::make_unique<record_batch>());
  for (auto& each : made) unused_.push_back(&each);
}

const std::string* dispatcher::intern(std::string_view label) {
  auto found = labels_.find(label);
  if (found == labels_.end()) found = labels_.emplace(label).first;
  return &*found;
}

void dispatcher::recycle(task_record& record) {
  if (record.phase() == task_phase::settled) record.reply_ = {};  // else there was none
  if (record.timed_) timings_.erase(&record);
  record.move_to({});
  unused_.push_back(&record);
}

bool dispatcher::try_place(task_record& record, const argument_line& arguments) {
  if (free_slots_.empty() || !has_room(record.lane_)) return false;
  const auto index = free_slots_.back();
  free_slots_.pop_back();
  in_slot_[index] = &record;
  record.generation_ = ++generations_[index];
  const lane_hint hint{.generation = static_cast<std::uint32_t>(record.generation_), .slot = index};
  record.move_to({.generation = hint.generation, .slot = index, .phase = task_phase::posted});

  auto& slot = board_.slot(index);
  slot.token = static_cast<std::uint64_t>(record.function_);
  slot.arguments = arguments;
  auto flags = record.block_arguments_ ? slot_flag::block_arguments : slot_flag::none;
  if (record.timed_) {
    flags = flags | slot_flag::timed;
    watch_time(record);
  }
  if (record.sink_ != nullptr || record.detached_ || ends_must_be_noticed()) flags = flags | slot_flag::notify;
  slot_protocol::publish(slot.word, record.generation_, flags);
  board_.lane_at(record.lane_).put(lane_tails_[record.lane_]++, hint);
  return true;
}

// Used-up hints at the head, of tasks that were cancelled or claimed by way of another lane, are swept here when no
// worker has come by to do it.
bool dispatcher::has_room(std::size_t index) {
  auto& lane = board_.lane_at(index);
  if (lane_tails_[index] - lane_heads_[index] < lane.capacity()) return true;  // even as it was when last looked at
  for (auto looks = lane.capacity(); looks > 0; --looks) {  // more only if somebody moves the head back
    lane_heads_[index] = lane.head();
    if (lane_tails_[index] - lane_heads_[index] < lane.capacity()) return true;
    const auto oldest = lane.look();
    if (!oldest.some || oldest.hint.slot >= in_slot_.size()) return false;
    const auto found = slot_protocol::read(board_.slot(oldest.hint.slot).word);
    if (found.state() == slot_state::queued && found.short_generation() == oldest.hint.generation) return false;
    lane.advance(oldest);
  }
  return false;
}

void dispatcher::put_in_backlog(task_record& record, finished_list& finished) {
  record.move_to({.phase = task_phase::waiting});
  const bool noticed = ends_must_be_noticed();
  backlog_.push_back(&record);
  if (!noticed) request_all_notifications(finished);  // workers must say when a slot gets free
  feed();
}

// Gives free slots to waiting tasks; the caller wakes workers for them once it has unlocked.
void dispatcher::feed() {
  while (!backlog_.empty() && try_place(*backlog_.front(), backlog_.front()->kept_arguments())) {
    wake_waiter(*backlog_.front());
    backlog_.pop_front();
    ++fed_;
  }
}

void dispatcher::wake_for(std::size_t lane, std::size_t count) noexcept {
  if (lane >= board::shared_lanes) {
    board_.wake(lane - board::shared_lanes);
    return;
  }
  while (count > 0 && board_.wake_any()) --count;
}

// A worker that spins will find the task, unless it is stopped or preempted just now. So it is relied on only where
// somebody waits for the task, who wakes another before he sleeps.
void dispatcher::wake_for_one(std::size_t lane, bool will_be_waited_for) noexcept {
  const bool shared = lane < board::shared_lanes;
  if (shared && will_be_waited_for && board_.sizes().workers > 1 && board_.spinning().check_any()) return;
  wake_for(lane);
}

// ---- waiting

std::chrono::nanoseconds dispatcher::spin_budget(deadline until) noexcept {
  const auto spin = board_.spin();
  const auto workers = board_.sizes().workers;
  const bool enough_for_all = workers < spin.processors;  // then there is no need to count
  if (!enough_for_all && workers - std::min(workers, board_.sleeping().count()) >= spin.processors) {
    return std::chrono::nanoseconds(0);
  }
  return until.is_never() ? spin.budget : std::min<std::chrono::nanoseconds>(spin.budget, until.when() - clock::now());
}

namespace {

bool is_same_task(const slot_word& found, const task_record::location& where) noexcept {
  return found.short_generation() == where.generation;
}

// Nothing more to wait for in this slot: the task is done, or it is not there any more.
bool has_changed(const slot_word& found, const task_record::location& where) noexcept {
  return !is_same_task(found, where) || (found.state() != slot_state::queued && found.state() != slot_state::claimed);
}

}  // namespace

bool dispatcher::wait(task_record& record, deadline until) {
  for (;;) {
    const auto where = record.where();
    if (where.phase == task_phase::settled) return true;
    if (where.phase == task_phase::waiting) {
      if (!sleep_on_record(record, until)) return is_done(record);
      continue;
    }
    MUSTER_ASSERT(where.phase == task_phase::posted);
    const auto& word = board_.slot(where.slot).word;
    spin_until(spin_budget(until), [&] { return has_changed(slot_protocol::read(word), where); });
    const auto found = slot_protocol::read(word);
    if (is_same_task(found, where) && found.state() == slot_state::done) return true;
    if (is_same_task(found, where) && found.state() == slot_state::queued) wake_for(record.lane_);
    if (has_changed(found, where)) {
      check_slot(record, where);
    } else if (!sleep_on_slot(record, where, until)) {
      return is_done(record);
    }
  }
}

bool dispatcher::is_done(const task_record& record) {
  const auto where = record.where();
  if (where.phase != task_phase::posted) return where.phase == task_phase::settled;
  const auto found = slot_protocol::read(board_.slot(where.slot).word);
  return is_same_task(found, where) && found.state() == slot_state::done;
}

bool dispatcher::sleep_on_slot(task_record& record, task_record::location where, deadline until) noexcept {
  auto& word = board_.slot(where.slot).word;
  // Before the request, which publishes it: whoever moves the task out of the slot after that wakes this thread.
  record.slot_sleeper_.store(true, std::memory_order_relaxed);
  const auto found = slot_protocol::request(word, slot_flag::waiter);
  if (has_changed(found, where)) return true;
  const auto expected = static_cast<std::uint32_t>(found.bits() | slot_word::flag_bits(slot_flag::waiter));
  return futex_wait(futex_address(word), expected, futex_scope::shared, until);
}

bool dispatcher::sleep_on_record(task_record& record, deadline until) {
  std::uint32_t seen = 0;
  {
    const scoped_lock lock(mutex_);
    if (record.phase() != task_phase::waiting) return true;
    record.record_sleeper_ = true;
    seen = record.epoch_.load(std::memory_order_relaxed);
  }
  return futex_wait(futex_address(record.epoch_), seen, futex_scope::within_process, until);
}

// The slot's word and the record disagree. Either the task has moved meanwhile, or the word is not ours any more.
void dispatcher::check_slot(task_record& record, task_record::location where) {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    const auto now = record.where();
    if (now.phase != where.phase || now.slot != where.slot || now.generation != where.generation) return;
    const auto found = slot_protocol::read(board_.slot(where.slot).word);
    if (!has_changed(found, where) || (is_same_task(found, where) && found.state() == slot_state::done)) return;
    fail_corrupted(record, found, finished);
  }
  finished.finish();
}

void dispatcher::wake_waiter(task_record& record) {
  record.epoch_.fetch_add(1, std::memory_order_relaxed);  // guarded by the mutex; the futex compares it
  if (!std::exchange(record.record_sleeper_, false)) return;
  futex_wake(futex_address(record.epoch_), INT_MAX, futex_scope::within_process);
}

// ---- ending

task_reply dispatcher::take(task_record& record) {
  finished_list finished;
  block arguments;  // released after unlocking
  scoped_lock lock(mutex_);
  const bool posted = record.phase() == task_phase::posted;
  MUSTER_ASSERT(posted || record.phase() == task_phase::settled);
  if (posted) arguments = record.reply_.take_kept();
  task_reply reply = posted ? collect(record) : std::move(record.reply_);
  if (posted) {
    count_end(finished);
    if (record.sink_ != nullptr) finished.tell(*std::exchange(record.sink_, nullptr), record);
  }
  if (!reply.succeeded()) reply.set_place(record.place());
  recycle(record);
  const auto fed = take_fed();
  lock.unlock();
  if (fed != 0) wake_for(1, fed);
  finished.finish();
  return reply;
}

// Moves the reply out of the slot and gives the slot away.
task_reply dispatcher::collect(task_record& record) {
  auto& slot = board_.slot(record.where().slot);
  const auto word = slot_protocol::read(slot.word);  // it was done, but words can be overwritten at any time
  const auto worker = std::size_t{word.owner()} - 1;
  const bool done = word.state() == slot_state::done && word.generation() == record.generation_;
  if (!done || worker >= worker_pids_.size()) return lose_to(record, word);
  record.worker_ = static_cast<std::int16_t>(worker);
  record.pid_ = worker_pids_[worker];
  try {
    auto reply = read_reply(slot, word, static_cast<std::uint32_t>(record.generation_));
    // Under the same lock as the slot: a worker that dies from here on is not asked for its blocks any more.
    if (record.chunk_) reply.adopt_attached(memory_);
    slot_protocol::retire(slot.word, record.generation_);
    leave_slot(record);
    return reply;
  } catch (const error& failure) {
    return lose(record, failure.what());
  }
}

// Throws errc::corrupted when the reply is not that of this task.
task_reply dispatcher::read_reply(task_slot& slot, const slot_word& word, std::uint32_t generation) {
  constexpr auto kinds = slot_flag::small_reply | slot_flag::line_reply | slot_flag::block_reply;
  const bool failed = word.has(slot_flag::failed);
  switch (word.flags() & kinds) {
    case slot_flag::small_reply:
      if (!failed) return {std::as_bytes(std::span(&slot.token, 1)), false};
      break;  // errors are longer
    case slot_flag::line_reply: {
      const auto bytes = sealed_line_bytes(slot.reply_bytes, generation, failed);
      if (bytes <= inline_reply_bytes) return {std::as_bytes(std::span(slot.reply)).first(bytes), failed};
      break;
    }
    case slot_flag::block_reply: {
      block_ref ref;
      std::memcpy(&ref, slot.reply.data(), sizeof ref);
      if (slot.reply_bytes == seal_of_block(generation, failed, ref)) return {memory_.adopt(ref), failed};
      break;
    }
    default: break;
  }
  throw error(errc::corrupted, "what should be the task's reply is not: somebody has overwritten it");
}

// Requires: the slot's word says free.
void dispatcher::leave_slot(task_record& record) {
  free_slots_.push_back(record.where().slot);
  vacate(record);
  if (!backlog_.empty()) feed();
}

void dispatcher::vacate(task_record& record) {
  const auto slot = record.where().slot;
  in_slot_[slot] = nullptr;
  if (record.slot_sleeper_.load(std::memory_order_relaxed)) {  // ordered by the slot's word
    futex_wake(futex_address(board_.slot(slot).word), INT_MAX, futex_scope::shared);
  }
}

void dispatcher::settle(task_record& record, task_reply reply, finished_list& finished) {
  if (auto arguments = record.reply_.take_kept()) finished.free(std::move(arguments));
  record.reply_ = std::move(reply);
  record.move_to({.phase = task_phase::settled});
  count_end(finished);
  wake_waiter(record);
  if (record.sink_ != nullptr) {
    finished.tell(*std::exchange(record.sink_, nullptr), record);
  } else if (record.detached_) {
    recycle(record);
  }
}

void dispatcher::count_end(finished_list& finished) {
  ++counters_.ended;
  --pending_;
  if (options_.max_pending != 0) room_.notify_one();
  notice_empty(finished);
}

void dispatcher::notice_empty(finished_list& finished) {
  if (harvesters_ == 0 || !is_empty()) return;
  empty_.notify_all();  // those who wait for it are among the harvesters
  if (closed_ && when_empty_) finished.call(std::exchange(when_empty_, nullptr));
}

dispatcher::reservation dispatcher::reserve() {
  const scoped_lock lock(mutex_);
  if (closed_) closed_->raise();
  ++reserved_;
  return reservation(*this);
}

void dispatcher::end_reservation() noexcept {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    --reserved_;
    notice_empty(finished);
  }
  finished.finish();
}

void dispatcher::detach(task_record& record) noexcept {
  finished_list finished;
  completion_sink* observer = nullptr;
  bool unclaimed = false;
  std::size_t lane = 0;
  {
    const scoped_lock lock(mutex_);
    if (record.phase() == task_phase::settled) {
      recycle(record);
      return;
    }
    observer = std::exchange(record.sink_, nullptr);
    record.detached_ = true;
    if (record.phase() == task_phase::posted) request_notification(record, finished);
    unclaimed = is_unclaimed(record);
    lane = record.lane_;
  }
  if (unclaimed) wake_for(lane);  // nobody will wait for it
  if (observer != nullptr) observer->abandoned();
  finished.finish();
}

void dispatcher::subscribe(task_record& record, completion_sink& sink) {
  finished_list finished;
  bool unclaimed = false;
  std::size_t lane = 0;
  {
    const scoped_lock lock(mutex_);
    if (record.phase() == task_phase::settled) {
      finished.tell(sink, record);
    } else {
      record.sink_ = &sink;
    }
    if (record.phase() == task_phase::posted) request_notification(record, finished);
    unclaimed = is_unclaimed(record);
    lane = record.lane_;
  }
  if (unclaimed) wake_for(lane);  // nobody will wait for it
  finished.finish();
}

bool dispatcher::is_unclaimed(const task_record& record) {
  const auto where = record.where();
  if (where.phase != task_phase::posted) return false;
  return slot_protocol::read(board_.slot(where.slot).word).state() == slot_state::queued;
}

// Late, but safe: either the worker sees the request when it completes the task, or it has completed it already.
void dispatcher::request_notification(task_record& record, finished_list& finished) {
  const auto where = record.where();
  const auto found = slot_protocol::request(board_.slot(where.slot).word, slot_flag::notify);
  if (is_same_task(found, where) && found.state() == slot_state::done) settle(record, collect(record), finished);
}

}  // namespace muster
