// SPDX-License-Identifier: BSL-1.0
// Waiting for a task: spinning and then sleeping on its slot's word, or on its record while it has no slot; and waking
// the workers that are to run it.
#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/memory/wait/outlook.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "nested_request.hpp"

namespace muster {

std::chrono::nanoseconds dispatcher::spin_budget(deadline until) noexcept {
  const auto spin = board_.spin();
  const auto workers = board_.active();
  const bool enough_for_all = workers < spin.processors;  // then there is no need to count
  if (!enough_for_all && workers - std::min(workers, board_.sleeping().count()) >= spin.processors) {
    return std::chrono::nanoseconds(0);
  }
  return until.left(spin.budget);
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
bool dispatcher::may_rely_on_spinning(std::size_t lane) noexcept {
  return lane < board::shared_lanes && board_.active() > 1 && board_.spinning().check_any();
}

prospect dispatcher::ask_of_many() noexcept {
  tell_place(board_.caller_place());
  const auto place_of = [this](std::size_t worker) -> const place_word& { return board_.line(worker).place; };
  return outlook::of_many(board_.sleeping(), board_.active(), place_of);
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
  for (bool may_sleep_on_later = true;;) {
    const auto where = record.where();
    if (where.phase == task_phase::settled) return true;
    if (where.phase == task_phase::waiting || record.retries_errors_) {
      if (!sleep_on_record(record, where.phase, until)) return is_done(record);
      continue;
    }
    MUSTER_ASSERT(where.phase == task_phase::posted);
    const auto spin = spin_budget(until);
    spin_for(record, where, spin);
    const auto found = slot_protocol::read(board_.slot(where.slot).word);
    if (is_same_task(found, where) && found.state() == slot_state::done) return true;
    if (is_same_task(found, where) && found.state() == slot_state::queued) wake_for(record.lane_);
    if (has_changed(found, where)) {
      check_slot(record, where);
    } else if (spin.count() == 0 && std::exchange(may_sleep_on_later, false) && sleep_on_later(record.lane_, until)) {
      continue;
    } else if (!sleep_on_slot(record, where, until)) {
      return is_done(record);
    }
  }
}

// The next to act is its worker; before one has claimed it, the worker it is for, or any.
prospect dispatcher::ask(const slot_word& found, std::size_t lane) noexcept {
  tell_place(board_.caller_place());
  std::optional<std::size_t> next;
  if (found.state() == slot_state::claimed) {
    next = found.owner() - 1;
  } else if (lane >= board::shared_lanes) {
    next = lane - board::shared_lanes;
  }
  const auto place_of = [this](std::size_t worker) -> const place_word& { return board_.line(worker).place; };
  if (next && *next < board_.sizes().workers) return prospect_of(place_of(*next));
  return outlook::of_any(board_.spinning(), board_.sleeping(), board_.active(), place_of);
}

void dispatcher::spin_for(const task_record& record, task_record::location where, std::chrono::nanoseconds budget) {
  const auto& word = board_.slot(where.slot).word;
  tell_place(board_.caller_place());  // also where it is done at once: the worker may be the one to step aside
  const auto look = [&] { return has_changed(slot_protocol::read(word), where); };
  look_until(budget, look, [&] { return ask(slot_protocol::read(word), record.lane_); });
}

bool dispatcher::is_done(const task_record& record) {
  const auto where = record.where();
  if (where.phase != task_phase::posted || record.retries_errors_) return where.phase == task_phase::settled;
  const auto found = slot_protocol::read(board_.slot(where.slot).word);
  return is_same_task(found, where) && found.state() == slot_state::done;
}

// All processors are busy and many tasks wait: each wake-up takes a processor from a worker. So the first sleep is
// until a later task has ended, and several results are there at once, but no longer than a few wake-ups would take.
// False when there are not so many.
bool dispatcher::sleep_on_later(std::size_t lane, deadline until) noexcept {
  constexpr std::uint64_t tasks_ahead = 32;
  constexpr auto longest = std::chrono::microseconds(50);
  auto& tasks = board_.lane_at(lane);
  const auto later = tasks.peek(tasks.head() + tasks_ahead);
  if (!later.some || later.hint.slot >= board_.sizes().task_slots) return false;
  auto& word = board_.slot(later.hint.slot).word;
  const auto found = slot_protocol::request(word, slot_flag::waiter);
  if (found.short_generation() != later.hint.generation || found.state() != slot_state::queued) return false;
  const auto expected = static_cast<std::uint32_t>(found.bits() | slot_word::flag_bits(slot_flag::waiter));
  const auto soon = deadline::after(longest);
  futex_wait(futex_address(word), expected, futex_scope::shared, soon.when() < until.when() ? soon : until);
  return true;
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

// Until it moves on, or sooner.
bool dispatcher::sleep_on_record(task_record& record, task_phase from, deadline until) {
  retire_loop();  // it may be this very thread's
  std::uint32_t seen = 0;
  {
    const scoped_lock lock(mutex_);
    if (record.phase() != from) return true;
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

}  // namespace muster
