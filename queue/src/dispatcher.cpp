// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/dispatcher.hpp>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/room.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/reply_seal.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "nested_request.hpp"

namespace muster {

dispatcher::dispatcher(board& board, arena& memory, options settings)
    : board_(board),
      memory_(memory),
      options_(std::move(settings)),
      ring_heads_(board.sizes().workers),
      timing_(board.sizes().workers) {
  const scoped_lock lock(mutex_);
  const auto& sizes = board_.sizes();
  in_slot_.resize(sizes.task_slots);
  generations_.resize(sizes.task_slots);
  lane_tails_.resize(board::shared_lanes + sizes.workers);
  lane_heads_.resize(lane_tails_.size());
  worker_pids_.resize(sizes.workers);
  done_.resize(sizes.workers);
  suspects_.resize(sizes.workers);
  absent_.resize(sizes.workers);
  finished_seen_.resize(sizes.workers);
  requests_.resize(sizes.workers);
  private_.resize(sizes.workers);
  private_listed_.reserve(sizes.workers);
  for (std::size_t slot = sizes.task_slots; slot > 0; --slot) {
    free_slots_.push_back(static_cast<std::uint16_t>(slot - 1));
  }
  queued_.reserve(sizes.task_slots);
  late_.reserve(sizes.task_slots);
  make_requests(board_.used());
}

dispatcher::~dispatcher() = default;

// ---- accepting

task_record& dispatcher::post(task_request&& request) {
  finished_list finished;
  const auto until = options_.max_pending == 0 ? deadline::never() : deadline::after(options_.overflow_wait);
  scoped_lock lock(mutex_);
  if (attention_) attend(request);
  for (bool may_be = true; may_be && request.admitted == admission::limited && is_full();) {
    lock.unlock();
    may_be = wait_for_a_place(until);
    lock.lock();
    if (attention_) attend(request);
  }
  if (!request.chunk) {
    counters_.argument_bytes_copied += request.frame.size();
    counters_.argument_bytes_referenced += request.frame.referenced_bytes();
  }
  const bool overflows = request.admitted == admission::limited && is_full();
  auto& record = new_record(request);
  const bool is_late = record.has_terms_ && deadline_of(terms_.of(record).asked) <= clock::now();
  bool placed = false;
  if (overflows) {
    settle(record, task_reply(error_info::described(errc::overflow, [&] { return describe_overflow("submit later"); })),
           finished);
  } else if (is_late && record.sink_ == nullptr) {
    fail_unbegun(record, finished);
  } else {
    const auto& line = request.frame.line();
    record.reply_.keep(request.frame.take_payload());
    record.reply_.keep(request.frame.take_attachments());
    // Its sink is told of nothing inside this call, whose caller may hold what it needs: check_times() ends it.
    const auto delay = is_late ? std::chrono::nanoseconds(1) : delay_of(record);
    placed = delay.count() == 0 && may_place_in(request.lane) && try_place(record, line);
    if (!placed) {
      record.keep_arguments(line);
      record.move_to({.phase = task_phase::waiting});
      wait_for(delay, record, finished);
    }
  }
  if (placed && record.sink_ == nullptr && !record.retries_errors_)
    record.unwoken_ = may_rely_on_spinning(request.lane);
  const bool wakes = placed && !record.unwoken_;
  const auto fed = take_fed();
  lock.unlock();
  if (fed != 0) wake_for(1, fed);
  if (wakes) wake_for(request.lane);
  finished.finish();
  return record;
}

// One flag for all that is rare, so that posting looks at one.
void dispatcher::attend(const task_request& request) {
  if (closed_ && (stopped_ || request.admitted != admission::reserved)) closed_->raise();
  if (!std::exchange(watched_, true) && options_.watch) options_.watch();
  attention_ = closed_.has_value();
}

std::string dispatcher::describe_overflow(const char* advice) const {
  return text("there are already ", options_.max_pending, " pending calls (max_pending): ", advice);
}

// True when there may be room, or the dispatcher was closed; false when the task is to fail; throws when the policy
// does not allow to wait (longer).
bool dispatcher::wait_for_a_place(deadline until) {
  finished_list finished;
  scoped_lock lock(mutex_);
  begin_harvest(finished);  // ends that nobody waits for must be noticed now
  lock.unlock();
  finished.finish();
  retire_loop();  // it may be this very thread's
  lock.lock();
  const bool blocks = options_.overflow == overflow_policy::block;
  while (blocks && is_full() && !closed_ && !until.expired()) room_.wait_until(lock, until);
  end_harvest();
  if (!is_full() || closed_) return true;
  if (options_.overflow == overflow_policy::fail_task) return false;
  throw error(errc::overflow,
              describe_overflow(blocks ? "none ended in time (overflow_wait); submit later, or raise max_pending"
                                       : "the overflow policy is to throw; submit later, or raise max_pending"));
}

task_record& dispatcher::new_record(const task_request& request) {
  if (unused_.empty()) make_records();
  auto label = labels_.find_or_add(request.label);
  auto& record = *unused_.back();
  record.retries_errors_ = false;
  if (request.terms != nullptr) begin_terms(record, request);
  try {
    if (timing_.is_on()) begin_timing(record, request);
  } catch (...) {
    if (record.has_terms_) end_terms(record);
    throw;
  }
  // Nothing throws from here on.
  unused_.pop_back();
  record.label_ = std::move(label);
  record.slot_sleeper_.store(false, std::memory_order_relaxed);
  record.detached_ = false;
  record.chunk_ = request.chunk;
  record.has_place_ = request.admitted == admission::limited;
  record.block_arguments_ = !request.frame.is_inline();
  record.overdue_ = false;
  record.doomed_ = false;
  record.caller_ = 0;
  record.lane_ = static_cast<std::uint16_t>(request.lane);
  record.attempt_ = request.attempt;
  record.retries_left_ = request.retries;
  record.worker_ = -1;
  record.function_ = request.function;
  record.id_ = ++counters_.accepted;
  record.sink_ = request.sink;
  record.deaths_ = 0;
  record.unwoken_ = false;
  ++pending_;
  if (record.has_place_ && options_.max_pending != 0) ++places_;
  return record;
}

// With room for all of them in unused_: to recycle one allocates nothing.
void dispatcher::make_records() {
  auto made = std::make_unique<record_batch>();
  make_room(records_);
  const auto all = (records_.size() + 1) * made->size();
  if (unused_.capacity() < all) unused_.reserve(2 * all);
  for (auto& each : *made) unused_.push_back(&each);
  records_.push_back(std::move(made));
}

void dispatcher::recycle(task_record& record) {
  if (record.phase() == task_phase::settled) record.reply_ = {};  // else there was none
  if (record.has_terms_) end_terms(record);
  if (record.timed_) forget_timing(record);
  record.label_.reset();
  record.move_to({});
  unused_.push_back(&record);
}

bool dispatcher::try_place(task_record& record, const argument_line& arguments) {
  if (free_slots_.empty() || !has_room(record.lane_)) return false;
  const auto index = free_slots_.back();
  free_slots_.pop_back();
  in_slot_[index] = &record;
  const auto generation = ++generations_[index];
  const lane_hint hint{.generation = static_cast<std::uint32_t>(generation), .slot = index};
  record.move_to({.generation = hint.generation, .slot = index, .phase = task_phase::posted});

  auto& slot = board_.slot(index);
  slot.token = static_cast<std::uint64_t>(record.function_);
  slot.arguments = arguments;
  auto flags = record.block_arguments_ ? slot_flag::block_arguments : slot_flag::none;
  if (record.has_terms_) {
    watch_posted(record);
    if (terms_.of(record).asked.timeout.count() > 0) flags = flags | slot_flag::timed;
  }
  if (record.attempt_ > 1) {  // rare: the second line is the worker's
    flags = flags | slot_flag::again;
    slot.reply_bytes = record.attempt_;
  }
  if (record.sink_ != nullptr || record.detached_ || record.retries_errors_ || ends_must_be_noticed() ||
      loop() == loop_state::polls) {
    flags = flags | slot_flag::notify;
  }
  record.notified_ = (flags & slot_flag::notify) != slot_flag::none;
  if (record.timed_) note_posted(record);
  slot_protocol::publish(slot.word, generation, flags);
  board_.lane_at(record.lane_).put(lane_tails_[record.lane_]++, hint);
  if (record.lane_ >= board::shared_lanes) note_private(record.lane_ - board::shared_lanes);
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

// ---- ending

task_reply dispatcher::take(task_record& record) {
  finished_list finished;
  block arguments;  // released after unlocking
  attachment_list attachments;
  // The worker has written there just now, if times are taken: the way of that line costs as much as all else of them.
  if (const auto where = record.where(); where.phase == task_phase::posted) {
    __builtin_prefetch(&board_.times(where.slot));
  }
  scoped_lock lock(mutex_);
  const bool posted = record.phase() == task_phase::posted;
  MUSTER_ASSERT(posted || record.phase() == task_phase::settled);
  if (posted) {
    arguments = record.reply_.take_kept();
    attachments = record.reply_.take_kept_attachments();
  }
  task_reply reply = posted ? collect(record) : std::move(record.reply_);
  if (posted) {
    count_end(record, finished);
    if (record.sink_ != nullptr) finished.tell(*std::exchange(record.sink_, nullptr), record);
    if (record.timed_) end_timing(record, reply);
  }
  note_place(record, reply);
  recycle(record);
  const auto fed = take_fed();
  lock.unlock();
  if (fed != 0) wake_for(1, fed);
  finished.finish();
  return reply;
}

task_reply dispatcher::failed(errc code, std::string_view text) noexcept { return task_reply(error_of(code, text)); }

error_info dispatcher::error_of(errc code, std::string_view text) noexcept {
  return error_info::described(code, [&] { return std::string(text); });
}

// Of an error.
void dispatcher::note_place(const task_record& record, task_reply& reply) const noexcept {
  if (reply.succeeded()) return;
  try {
    reply.set_place(place_of(record));
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the error is told without
  }
}

task_place dispatcher::place_of(const task_record& record) const {
  task_place place{.task = record.id_,
                   .label = text_of(record.label_),
                   .element = std::nullopt,
                   .attempt = record.attempt_,
                   .worker = record.worker_,
                   .pid = record.pid_};
  const auto& devices = options_.devices;
  if (place.worker >= 0 && !devices.empty()) {
    place.device = devices[static_cast<std::size_t>(place.worker) % devices.size()];
  }
  return place;
}

// Whole, what slots' words and records' locations have a part of. Requires: it is in a slot.
std::uint64_t dispatcher::generation_of(const task_record& record) const {
  const auto slot = record.where().slot;
  MUSTER_ASSERT(in_slot_[slot] == &record);  // else it would take another task's slot
  return generations_[slot];
}

// Moves the reply out of the slot and gives the slot away.
task_reply dispatcher::collect(task_record& record) {
  auto& slot = board_.slot(record.where().slot);
  const auto word = slot_protocol::read(slot.word);  // it was done, but words can be overwritten at any time
  const auto worker = std::size_t{word.owner()} - 1;
  const bool done = word.state() == slot_state::done && word.generation() == generation_of(record);
  if (!done || worker >= worker_pids_.size()) return lose_to(record, word);
  record.worker_ = static_cast<std::int16_t>(worker);
  record.pid_ = worker_pids_[worker];
  task_reply reply;
  try {
    // Under the same lock as the slot: a worker that dies from here on is not asked for its blocks any more.
    reply = receive_reply(record, slot, word);
  } catch (const error& failure) {
    return lose(record, failure.what());
  }
  ++done_[worker];
  if (record.timed_) note_reply(record, reply);
  slot_protocol::retire(slot.word, word.generation());
  leave_slot(record);
  return reply;
}

// Throws errc::corrupted, as read_reply(). For want of memory it is the reply that fails.
task_reply dispatcher::receive_reply(const task_record& record, task_slot& slot, const slot_word& word) {
  try {
    auto reply = read_reply(slot, word, word.short_generation());
    if (record.chunk_) reply.adopt_attached(memory_);
    return reply;
  } catch (const std::bad_alloc&) {
    return failed(errc::out_of_memory, "the program has no memory for the task's reply");
  }
}

// Without memory for them, a chunk's blocks are lost with their worker.
void dispatcher::adopt_attached(task_reply& reply) noexcept {
  try {
    reply.adopt_attached(memory_);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): its elements fail
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
      if (slot.reply_bytes == seal_of_block(generation, failed, ref)) return task_reply::adopt(memory_, ref, failed);
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
  if (has_backlog()) feed();
}

void dispatcher::vacate(task_record& record) {
  const auto slot = record.where().slot;
  in_slot_[slot] = nullptr;
  if (record.lane_ >= board::shared_lanes) --private_[record.lane_ - board::shared_lanes].posted;
  if (record.slot_sleeper_.load(std::memory_order_relaxed)) {  // ordered by the slot's word
    futex_wake(futex_address(board_.slot(slot).word), INT_MAX, futex_scope::shared);
  }
}

void dispatcher::settle(task_record& record, task_reply reply, finished_list& finished) {
  if (record.has_terms_) end_terms(record);
  if (record.timed_) end_timing(record, reply);
  if (auto arguments = record.reply_.take_kept()) finished.free(std::move(arguments));
  if (auto lent = record.reply_.take_kept_attachments(); !lent.empty()) finished.free(std::move(lent));
  count_end(record, finished);
  record.reply_ = std::move(reply);
  record.move_to({.phase = task_phase::settled});
  wake_waiter(record);
  if (record.sink_ != nullptr) {
    finished.tell(*std::exchange(record.sink_, nullptr), record);
  } else if (record.detached_) {
    recycle(record);
  }
}

void dispatcher::count_end(const task_record& record, finished_list& finished) {
  ++counters_.ended;
  --pending_;
  if (record.has_place_ && options_.max_pending != 0) {
    --places_;
    room_.notify_one();
  }
  notice_empty(finished);
}

void dispatcher::notice_empty(finished_list& finished) {
  if (harvesters_ == 0 || !is_empty()) return;
  empty_.notify_all();  // those who wait for it are among the harvesters
  if (closed_ && !when_empty_.empty()) finished.call(std::exchange(when_empty_, {}));
}

dispatcher::reservation dispatcher::reserve() {
  const scoped_lock lock(mutex_);
  if (closed_) closed_->raise();
  ++reserved_;
  return reservation(*this);
}

bool dispatcher::take_place() {
  if (options_.max_pending == 0) return true;
  const auto until = deadline::after(options_.overflow_wait);
  scoped_lock lock(mutex_);
  for (bool may_be = true; may_be && is_full() && !closed_;) {
    lock.unlock();
    may_be = wait_for_a_place(until);
    lock.lock();
  }
  if (closed_) closed_->raise();
  if (is_full()) return false;
  ++places_;
  return true;
}

void dispatcher::free_place() noexcept {
  if (options_.max_pending == 0) return;
  const scoped_lock lock(mutex_);
  --places_;
  room_.notify_one();
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
    unclaimed = must_be_woken_for(record);
    lane = record.lane_;
  }
  if (unclaimed) wake_for(lane);
  if (observer != nullptr) observer->abandoned();
  finished.finish();
}

}  // namespace muster
