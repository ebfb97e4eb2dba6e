// SPDX-License-Identifier: BSL-1.0
// The dispatcher's slower half: noticing ends that nobody waits for, cancelling, settling what dead workers had.
#include <bit>
#include <climits>
#include <utility>

#include <muster/base/detail/futex.hpp>
#include <muster/base/text.hpp>
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
  for (std::size_t group = 0; group < board_.groups(); ++group) {
    for (auto told = board_.take_news(group); told != 0; told &= told - 1) {
      drain_ring(64 * group + static_cast<std::size_t>(std::countr_zero(told)), finished);
    }
  }
  look_at_late(finished);
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
    if (tail - head > attempts(worker)) suspect(worker);
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
  return some_late_.load(std::memory_order_relaxed) || has_entries();
}

bool dispatcher::has_entries() const noexcept {
  if (const auto news = board_.has_news()) return *news;
  for (std::size_t worker = 0; worker < board_.used(); ++worker) {
    if (board_.ring(worker).tail() != ring_heads_[worker].load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void dispatcher::settle_if_done(std::uint16_t slot, std::uint32_t generation, finished_list& finished) {
  auto* record = slot < in_slot_.size() ? in_slot_[slot] : nullptr;
  if (record == nullptr || record->where().generation != generation) return;  // taken already
  const auto found = slot_protocol::read(board_.slot(slot).word);
  if (found.generation() != generation_of(*record) || found.state() != slot_state::done) return;
  settle_done(*record, finished);
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

// ---- cancelling and asking

bool dispatcher::cancel(task_record& record, cancellation how) {
  finished_list finished;
  scoped_lock lock(mutex_);
  const bool withdrawn = cancel(record, how, finished);
  lock.unlock();
  finished.finish();
  return withdrawn;
}

bool dispatcher::cancel_if_still(task_record& record, std::uint64_t id, cancellation how) {
  finished_list finished;
  scoped_lock lock(mutex_);
  const bool withdrawn = record.id_ == id && cancel(record, how, finished);
  lock.unlock();
  finished.finish();
  return withdrawn;
}

bool dispatcher::cancel(task_record& record, cancellation how, finished_list& finished) {
  if (withdraw(record)) {
    settle(record, failed(errc::cancelled, "cancelled before a worker had begun it"), finished);
    return true;
  }
  if (how == cancellation::withdraw) return false;
  record.retries_left_ = 0;  // nobody wants it any more; also when an attempt has ended that nobody has looked at yet
  if (request_stop(record) && how == cancellation::kill && !record.chunk_) doom(record);
  return false;
}

// False when no worker has begun it.
bool dispatcher::request_stop(task_record& record) {
  const auto where = record.where();
  if (where.phase != task_phase::posted) return false;
  auto& word = board_.slot(where.slot).word;
  if (slot_protocol::read(word).state() != slot_state::claimed) return false;
  slot_protocol::request(word, slot_flag::stop);
  futex_wake(futex_address(word), INT_MAX, futex_scope::shared);  // a task that has a stop token sleeps there
  return true;
}

void dispatcher::ask_to_stop(task_record& record) {
  const scoped_lock lock(mutex_);
  static_cast<void>(request_stop(record));
}

std::size_t dispatcher::pending() const {
  const scoped_lock lock(mutex_);
  return pending_;
}

dispatcher::statistics dispatcher::read_statistics() const {
  const scoped_lock lock(mutex_);
  auto counters = counters_;
  counters.waiting = waiting_ + private_waiting_;
  return counters;
}

// ---- recovery

void dispatcher::set_worker(std::size_t worker, pid_t pid) {
  const scoped_lock lock(mutex_);
  worker_pids_[worker] = pid;
  ask_for_times(worker);
  absent_[worker] = false;
}

void dispatcher::recover(std::size_t worker, const exit_status& how, const last_words& words) {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    drain_ring(worker, finished);
    board_.sleeping().remove(worker);
    board_.spinning().remove(worker);
    forget_requests(worker, finished);
    words_ = &words;
    for (std::size_t slot = 0; slot < in_slot_.size(); ++slot) {
      if (in_slot_[slot] != nullptr) recover_slot(*in_slot_[slot], worker, how, finished);
    }
    words_ = nullptr;
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
  if (found.state() == slot_state::done) return settle_done(record, finished);
  record.worker_ = static_cast<std::int16_t>(worker);
  record.pid_ = worker_pids_[worker];
  const auto current = board_.line(worker).current.load(std::memory_order_acquire);
  // If it names another task, that one has called this one, and ran it in place: it has begun too.
  const bool is_named = current == current_task(slot, found.short_generation());
  if (current != 0 && !is_named && !was_called_by(record, worker)) note_damage();  // it may have begun
  const bool overdue = std::exchange(record.overdue_, false);
  if (current != 0 && record.timed_) {
    const bool unwanted = record.doomed_ || (will_be_killed_ && !overdue);
    note_run(record, unwanted  ? task_outcome::cancelled
                     : overdue ? task_outcome::timed_out
                               : task_outcome::worker_died);
  }
  if (record.doomed_) {
    fail_after_cancelling(record, finished);
  } else if (current == 0) {
    ++counters_.requeued;
    repost(record, finished);
  } else if (overdue) {
    fail_after_timeout(record, finished);
  } else if (will_be_killed_ && !record.chunk_) {
    end_claimed(record, error_info::copy_of(*will_be_killed_), finished);
  } else {
    fail_after_death(record, how, finished);
  }
}

void dispatcher::repost(task_record& record, finished_list& finished) {
  free_slots_.push_back(record.where().slot);
  take_back(record);
  enter_waiting(record, true, finished);  // it has waited longest
}

// The slot is of nobody then. The arguments are still in it; the token may have been overwritten by a reply, but the
// record knows it.
void dispatcher::take_back(task_record& record) {
  const auto index = record.where().slot;
  record.keep_arguments(arguments_of(record));
  record.move_to({.slot = index, .phase = task_phase::waiting});
  slot_protocol::seize(board_.slot(index).word, generation_of(record));
  vacate(record);
}

void dispatcher::fail_after_death(task_record& record, const exit_status& how, finished_list& finished) {
  if (record.deaths_ < UINT32_MAX) ++record.deaths_;
  const bool poisonous = options_.quarantine_after != 0 && record.deaths_ >= options_.quarantine_after;
  const bool again = !record.chunk_ && may_try_again(record) && retries_of(record).after_death();
  if (again && !poisonous) return try_again(record, finished);
  if (!record.chunk_) ++counters_.lost;  // its sink knows what becomes of the element
  if (!again) return end_claimed(record, error_info::died(how), finished);
  ++counters_.quarantined;
  end_claimed(record, error_info::quarantined(how, record.deaths_), finished);
}

// What the worker had written of its reply goes with the error.
void dispatcher::end_claimed(task_record& record, error_info why, finished_list& finished) {
  auto& slot = board_.slot(record.where().slot);
  const auto& line = board_.line(static_cast<std::size_t>(record.worker_));
  const bool by_death = why == errc::worker_died || why == errc::timed_out || why == errc::quarantined;
  if (by_death && words_ != nullptr) why.set_words(*words_);
  record.element_ = unseal_number(line.element.load(std::memory_order_acquire)) & task_record::most_element;
  task_reply reply(std::move(why), std::as_bytes(std::span(slot.reply)));
  if (record.chunk_) adopt_attached(reply);
  slot_protocol::seize(slot.word, generation_of(record));
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
    when_empty_.push_back(std::move(when_empty));  // when this throws, it is closed all the same
    begin_harvest(finished);                       // for good: no end must go unnoticed
    notice_empty(finished);                        // unless the harvest did
  }
  finished.finish();
}

void dispatcher::expect_kills(error_info why) {
  const scoped_lock lock(mutex_);
  if (!will_be_killed_) will_be_killed_ = std::move(why);
}

void dispatcher::settle_all(waiting_list& waiting, std::size_t& count, const error_info& why, finished_list& finished) {
  while (!waiting.empty()) {
    auto& record = waiting.front();
    waiting.pop_front();
    --count;
    settle(record, task_reply(error_info::copy_of(why)), finished);
  }
}

void dispatcher::stop(const error_info& why) {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    if (!closed_) closed_ = error_info::copy_of(why);
    attention_ = true;
    stopped_ = true;
    postponed_.clear();
    look_at_all_slots(finished);  // what was completed counts
    for (auto& each : backlog_) settle_all(each, waiting_, why, finished);
    for (auto& each : private_) settle_all(each.waiting, private_waiting_, why, finished);
    while (auto* const record = terms_.first_delayed()) settle(*record, task_reply(error_info::copy_of(why)), finished);
    for (auto* record : in_slot_) {
      if (record == nullptr) continue;
      slot_protocol::seize(board_.slot(record->where().slot).word, generation_of(*record));
      leave_slot(*record);
      settle(*record, task_reply(error_info::copy_of(why)), finished);
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
  retire_loop();  // it may be this very thread's
  lock.lock();
  while (!is_empty() && !until.expired()) empty_.wait_until(lock, until);
  end_harvest();
  return is_empty();
}

}  // namespace muster
