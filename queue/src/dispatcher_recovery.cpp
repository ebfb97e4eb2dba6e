// SPDX-License-Identifier: BSL-1.0
// The dispatcher's slower half: noticing ends that nobody waits for, cancelling, settling what dead workers had.
#include <climits>
#include <utility>

#include <muster/base/futex.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/bell.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/reply_seal.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "current_task.hpp"
#include "nested_request.hpp"

namespace muster {

// ---- draining

void dispatcher::drain() {
  finished_list finished;
  scoped_lock lock(mutex_);
  for (std::size_t worker = 0; worker < ring_heads_.size(); ++worker) drain_ring(worker, finished);
  look_at_postponed(finished);
  notice_empty(finished);  // what lay in the rings counted
  const auto fed = take_fed();
  lock.unlock();
  wake_for(1, fed);
  finished.finish();
}

void dispatcher::drain_ring(std::size_t worker, finished_list& finished) {
  const auto ring = board_.ring(worker);
  const auto tail = ring.tail();
  auto head = ring_heads_[worker].load(std::memory_order_relaxed);
  const auto first = head;
  if (tail - head >= ring.capacity()) {  // it has overtaken us, or somebody has overwritten it
    if (tail - head > attempts()) suspect(worker);
    head = tail;
  }
  for (; head != tail; ++head) {
    const auto entry = ring.read(head);
    if (entry.slot >= first_request_entry) {
      look_at_request(worker, entry.slot - first_request_entry, finished);
    } else {
      settle_if_done(entry.slot, entry.generation, finished);
    }
  }
  // Entries may have been overwritten, now or while they were read: the slots' and cells' words know.
  if (ring.tail() - first >= ring.capacity()) {
    look_at_all_slots(finished);
    look_at_all_requests(worker, finished);
  }
  ring_heads_[worker].store(tail, std::memory_order_relaxed);
}

bool dispatcher::has_completions() const noexcept {
  for (std::size_t worker = 0; worker < ring_heads_.size(); ++worker) {
    if (board_.ring(worker).tail() != ring_heads_[worker].load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void dispatcher::settle_if_done(std::uint16_t slot, std::uint32_t generation, finished_list& finished) {
  auto* record = slot < in_slot_.size() ? in_slot_[slot] : nullptr;
  if (record == nullptr || record->where().generation != generation) return;  // taken already
  const auto found = slot_protocol::read(board_.slot(slot).word);
  if (found.generation() != record->generation_ || found.state() != slot_state::done) return;
  settle(*record, collect(*record), finished);
}

void dispatcher::look_at_all_slots(finished_list& finished) {
  for (std::size_t slot = 0; slot < in_slot_.size(); ++slot) {
    if (in_slot_[slot] == nullptr) continue;
    settle_if_done(static_cast<std::uint16_t>(slot), in_slot_[slot]->where().generation, finished);
  }
}

void dispatcher::begin_harvest(finished_list& finished) {
  const bool noticed = ends_must_be_noticed();
  ++harvesters_;
  if (!noticed) request_all_notifications(finished);
}

// Tasks with a sink, and those that nobody will take, are entered into rings anyway: leaving them to those means that
// nobody is told of anything inside post(), where the caller may hold what its sinks need.
void dispatcher::request_all_notifications(finished_list& finished) {
  for (auto* record : in_slot_) {
    if (record == nullptr || record->sink_ != nullptr || record->detached_) continue;
    request_notification(*record, finished);
  }
}

void dispatcher::arm_bell() {
  {
    const scoped_lock lock(mutex_);
    if (helpers_ == 0) bell::arm(board_.bell_armed());
  }
  drain();
}

void dispatcher::begin_help() {
  const scoped_lock lock(mutex_);
  if (helpers_++ == 0) bell::disarm(board_.bell_armed());
}

// What was completed while the bell was silent is seen by this last drain or rings the bell.
void dispatcher::end_help() {
  {
    const scoped_lock lock(mutex_);
    if (--helpers_ > 0) return;
    bell::arm(board_.bell_armed());
  }
  drain();
}

// ---- cancelling and asking

bool dispatcher::cancel(task_record& record) {
  finished_list finished;
  bool withdrawn = false;
  {
    const scoped_lock lock(mutex_);
    withdrawn = withdraw(record);
    const auto where = record.where();
    if (!withdrawn && where.phase == task_phase::posted) {
      auto& word = board_.slot(where.slot).word;
      if (slot_protocol::read(word).state() == slot_state::claimed) slot_protocol::request(word, slot_flag::stop);
    }
    if (withdrawn) {
      settle(record, task_reply(error_info(errc::cancelled, "cancelled before a worker had begun it")), finished);
    }
  }
  finished.finish();
  return withdrawn;
}

std::size_t dispatcher::pending() const {
  const scoped_lock lock(mutex_);
  return pending_;
}

dispatcher::statistics dispatcher::read_statistics() const {
  const scoped_lock lock(mutex_);
  auto counters = counters_;
  counters.waiting = backlog_.size();
  return counters;
}

// ---- recovery

void dispatcher::set_worker(std::size_t worker, pid_t pid) {
  const scoped_lock lock(mutex_);
  worker_pids_[worker] = pid;
  absent_[worker] = false;
}

void dispatcher::recover(std::size_t worker, const exit_status& how) {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    drain_ring(worker, finished);
    board_.sleeping().remove(worker);
    board_.spinning().remove(worker);
    forget_requests(worker, finished);
    for (std::size_t slot = 0; slot < in_slot_.size(); ++slot) {
      if (in_slot_[slot] != nullptr) recover_slot(*in_slot_[slot], worker, how, finished);
    }
    auto& line = board_.line(worker);
    line.parked.store(0, std::memory_order_relaxed);
    line.current.store(0, std::memory_order_relaxed);
    line.leaving.store(0, std::memory_order_relaxed);
    line.finished.store(0, std::memory_order_relaxed);
    finished_seen_[worker] = 0;
    suspects_[worker] = false;
    absent_[worker] = true;
    fed_ = 0;  // all are woken below
  }
  finished.finish();
  // A wake may have gone to the dead worker, or been owed by it; so may a ring of the bell.
  board_.wake_all();
  arm_bell();
}

void dispatcher::recover_slot(task_record& record, std::size_t worker, const exit_status& how,
                              finished_list& finished) {
  const auto slot = record.where().slot;
  const auto found = slot_protocol::read(board_.slot(slot).word);
  if (!is_possible(found, record)) return fail_corrupted(record, found, finished);
  if (found.owner() != worker + 1) return;
  if (found.state() == slot_state::done) return settle(record, collect(record), finished);
  record.worker_ = static_cast<std::int16_t>(worker);
  record.pid_ = worker_pids_[worker];
  const auto current = board_.line(worker).current.load(std::memory_order_acquire);
  // If it names another task, that one has called this one, and ran it in place: it has begun too.
  const bool is_named = current == current_task(slot, found.short_generation());
  if (current != 0 && !is_named && !was_called_by(record, worker)) note_damage();  // it may have begun
  const bool overdue = std::exchange(record.overdue_, false);
  if (current == 0) {
    ++counters_.requeued;
    repost(record, finished);
  } else if (overdue) {
    fail_after_timeout(record, finished);
  } else if (!record.chunk_ && record.retries_left_ > 0) {
    --record.retries_left_;
    ++record.attempt_;
    ++counters_.retried;
    repost(record, finished);
  } else {
    fail_after_death(record, how, finished);
  }
}

// The arguments are still in the slot; the token may have been overwritten by a reply, but the record knows it.
void dispatcher::repost(task_record& record, finished_list& finished) {
  const bool noticed = ends_must_be_noticed();
  free_slots_.push_back(record.where().slot);
  take_back(record);
  feed();  // at once, unless its lane is full
  if (!noticed && ends_must_be_noticed()) request_all_notifications(finished);
}

// The slot is of nobody then.
void dispatcher::take_back(task_record& record) {
  const auto index = record.where().slot;
  record.keep_arguments(arguments_of(record));
  record.move_to({.slot = index, .phase = task_phase::waiting});
  slot_protocol::seize(board_.slot(index).word, record.generation_);
  backlog_.push_front(&record);  // it has waited longest
  vacate(record);
}

void dispatcher::fail_after_death(task_record& record, const exit_status& how, finished_list& finished) {
  if (!record.chunk_) ++counters_.lost;  // its sink knows what becomes of the element
  end_claimed(record, error_info::died(how), finished);
}

// What the worker had written of its reply goes with the error.
void dispatcher::end_claimed(task_record& record, error_info why, finished_list& finished) {
  auto& slot = board_.slot(record.where().slot);
  const auto& line = board_.line(static_cast<std::size_t>(record.worker_));
  record.element_ = unseal_number(line.element.load(std::memory_order_acquire));
  task_reply reply(std::move(why), std::as_bytes(std::span(slot.reply)));
  if (record.chunk_) reply.adopt_attached(memory_);
  slot_protocol::seize(slot.word, record.generation_);
  leave_slot(record);
  settle(record, std::move(reply), finished);
}

// ---- the end

void dispatcher::close(error_info why, std::function<void()> when_empty) {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    if (!closed_) closed_ = std::move(why);
    attention_ = true;
    room_.notify_all();
    if (!when_empty) return;
    when_empty_ = std::move(when_empty);
    begin_harvest(finished);  // for good: no end must go unnoticed
    notice_empty(finished);   // unless the harvest did
  }
  finished.finish();
}

void dispatcher::stop(const error_info& why) {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    if (!closed_) closed_ = why;
    attention_ = true;
    stopped_ = true;
    postponed_.clear();
    look_at_all_slots(finished);  // what was completed counts
    for (auto* record : std::exchange(backlog_, {})) settle(*record, task_reply(why), finished);
    for (auto* record : in_slot_) {
      if (record == nullptr) continue;
      slot_protocol::seize(board_.slot(record->where().slot).word, record->generation_);
      leave_slot(*record);
      settle(*record, task_reply(why), finished);
    }
    room_.notify_all();
    empty_.notify_all();
  }
  finished.finish();
}

bool dispatcher::wait_until_empty(deadline until) {
  finished_list finished;
  scoped_lock lock(mutex_);
  begin_harvest(finished);
  lock.unlock();
  finished.finish();
  lock.lock();
  while (!is_empty() && !until.expired()) empty_.wait_until(lock, until);
  end_harvest();
  return is_empty();
}

}  // namespace muster
