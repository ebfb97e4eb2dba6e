// SPDX-License-Identifier: BSL-1.0
// The supervisor: draining, run timeouts, recovery.
#include <utility>

#include <muster/queue/bell.hpp>

#include "task_step.hpp"

namespace muster::model {

namespace {

// Who holds the lock is alone in changing the word of a task that is done.
weight weigh_for_drain(std::uint64_t value, std::uint64_t) {
  return slot_word(value).state() == slot_state::done ? weight::settled : weight::matters;
}

// An exchange follows that compares once more.
weight weigh_for_doom(std::uint64_t value, std::uint64_t) {
  return slot_word(value).state() == slot_state::claimed ? weight::settled : weight::matters;
}

}  // namespace

void step::run_supervisor() {
  switch (mine_.pc) {
    case event: return supervisor_awaits();
    case doom: return supervisor_dooms();
    case send_kill: return supervisor_kills();
    case drain_first: lock(); return begin_ring(mine_.dead - 1U);
    case drain_rings:
      if (mine_.index == 0) lock();
      return begin_ring(mine_.index);
    case drain_entries: return drain_entry();
    case recover_set:
      sleeping().remove(mine_.dead - 1U);
      mine_.index = 0;
      mine_.pc = recover_slots;
      return;
    case recover_slots: return recover_next_slot();
    case wake_all: return wake_next();
    case wake_fed: return wake_for_fed();
    case wake_fed_store: return wake_taken();
    case arm:
      lock();
      bell::arm(words[at::armed]);
      unlock();
      mine_.pc = drain_rings;
      mine_.index = 0;
      mine_.after = mine_.dead != 0 ? restart : event;
      return;
    default:
      perform({.writes = resource::event}, [this] {
        state_.each[first_worker + mine_.dead - 1U] = {};
        state_.died_by_kill[mine_.dead - 1U] = 0;
        return 0;
      });
      mine_ = {};
  }
}

// Choices: the bell; a death, by worker; a task whose time is over, by slot.
void step::supervisor_awaits() {
  const auto looks_at_tasks = state_.timeouts_left > 0 ? resource::slot(0) | resource::slot(1) : 0;
  const access what{.reads = resource::bell | resource::event | looks_at_tasks,
                    .writes = resource::bell | resource::event};
  const auto found = perform(what, [this] { return next_event(); });
  if (found == 0) {
    mine_.pc = drain_rings;
    mine_.after = arm;
  } else if (found <= most_model_workers) {
    mine_.dead = static_cast<std::uint8_t>(found);
    mine_.pc = drain_first;
  } else {
    mine_.index = static_cast<std::uint8_t>(found - most_model_workers - 1);
    mine_.pc = doom;
  }
}

// 0: the bell; up to the number of workers: that one's death; more: what has been in a slot for too long.
std::uint64_t step::next_event() {
  if (choice_ > most_model_workers) return next_timeout(choice_ - most_model_workers - 1);
  auto& word = state_.memory[choice_ == 0 ? at::bell : at::dead];
  const auto bit = choice_ == 0 ? std::uint64_t{1} : std::uint64_t{1} << (choice_ - 1);
  if ((word & bit) == 0) execution_.block();
  word &= ~bit;
  return choice_;
}

// Any task that a worker has may be found to run too long, whether it has begun or not.
std::uint64_t step::next_timeout(std::size_t slot) {
  const slot_word found(state_.memory[at::slot + slot]);
  if (state_.timeouts_left == 0 || found.state() != slot_state::claimed || found.has(slot_flag::doomed)) {
    execution_.block();
  } else {
    --state_.timeouts_left;
  }
  return choice_;
}

// The task may have ended meanwhile; then its slot may hold another, which may as well be the one that runs too long.
void step::supervisor_dooms() {
  lock();
  const std::size_t slot = mine_.index;
  const auto which = parent_.in_slot[slot];
  mine_.index = 0;
  mine_.pc = event;
  if (which != nobody) {
    auto& record = parent_.all[which];
    auto& word = words[at::slot + slot];
    execution_.weigh_ = &weigh_for_doom;
    const auto doomed = leaves_out(mutation::timeout_without_doom)
                            ? slot_protocol::read(word)
                            : slot_protocol::try_doom(word, record.generation).value_or(slot_word());
    execution_.weigh_ = nullptr;
    if (doomed.state() == slot_state::claimed) {
      record.overdue = 1;
      mine_.index = static_cast<std::uint8_t>(doomed.owner() - 1);
      mine_.pc = send_kill;
      parent_.doomed_for[mine_.index] = static_cast<std::uint8_t>(which + 1);
    }
  }
  unlock();
}

// The signal is under way from now on: the worker goes on until it dies.
void step::supervisor_kills() {
  perform({.writes = resource::kill(mine_.index)}, [this] {
    if (state_.each[first_worker + mine_.index].gone == 0) state_.memory[at::killed] |= std::uint64_t{1} << mine_.index;
    return 0;
  });
  mine_ = {};
}

void step::begin_ring(std::size_t worker) {
  mine_.tail = static_cast<std::uint8_t>(ring(worker).tail());
  mine_.index = static_cast<std::uint8_t>(worker);
  mine_.pc = drain_entries;
}

void step::drain_entry() {
  auto& head = parent_.ring_head[mine_.index];
  if (head == mine_.tail) return after_ring();
  const auto entry = ring(mine_.index).read(head++);
  const auto which = parent_.in_slot[entry.slot];
  if (which == nobody || parent_.all[which].generation != entry.generation) return;
  execution_.weigh_ = &weigh_for_drain;
  const auto found = slot_protocol::read(words[at::slot + entry.slot]);
  execution_.weigh_ = nullptr;
  if (found.generation() != parent_.all[which].generation || found.state() != slot_state::done) return;
  settle_done(which);
}

void step::after_ring() {
  mine_.tail = 0;
  if (mine_.dead != 0 && mine_.after == 0) {
    mine_.index = 0;
    mine_.slot = 0;  // all are woken
    mine_.pc = recover_set;
  } else if (++mine_.index < what_.workers) {
    mine_.pc = drain_rings;
  } else {
    unlock();
    mine_.index = 0;
    mine_.pc = std::exchange(mine_.after, std::uint8_t{0});
    if (leaves_out(mutation::retry_without_wake)) mine_.slot = 0;
    if (mine_.slot != 0) mine_.word = std::exchange(mine_.pc, wake_fed);
  }
}

void step::wake_for_fed() {
  const bool more = --mine_.slot != 0;
  take_sleeper(wake_fed_store, more ? std::uint8_t{wake_fed} : static_cast<std::uint8_t>(mine_.word));
  if (!more) mine_.word = 0;
}

void step::recover_next_slot() {
  const std::size_t worker = mine_.dead - 1U;
  if (mine_.index == slots) return end_recovery(worker);
  const auto slot = mine_.index++;
  if (parent_.in_slot[slot] != nobody) recover_slot(slot, worker);
}

// Of a slot that is not the dead worker's only the generation matters: it cannot become the dead worker's. Of one that
// is, all is settled but flags.
void step::recover_slot(std::size_t slot, std::size_t worker) {
  const auto which = parent_.in_slot[slot];
  const slot_word found(perform({}, [&] {
    const slot_word now(state_.memory[at::slot + slot]);
    const bool is_his = now.owner() == worker + 1;
    return slot_word(now.generation(), is_his ? now.owner() : 0, slot_flag::none,
                     is_his ? now.state() : slot_state::queued)
        .bits();
  }));
  if (found.generation() != parent_.all[which].generation) note(which, wrong::slot_changed_hands);
  if (found.owner() != worker + 1) return;
  if (found.state() == slot_state::done && !leaves_out(mutation::timeout_without_done)) {
    if (leaves_out(mutation::recover_without_done_slots)) return;
    return settle_done(which);
  }
  recover_claimed(slot, worker);
}

void step::recover_claimed(std::size_t slot, std::size_t worker) {
  const auto which = parent_.in_slot[slot];
  auto& record = parent_.all[which];
  const auto how = outcome_of(slot, worker);
  if (how == outcome::died && state_.memory[at::executed + which] == 0) note(which, wrong::paid_without_having_begun);
  const bool again = how == outcome::none;
  if (again) move_to(which, phase::waiting);
  if (slot_protocol::seize(words[at::slot + slot], record.generation).state() == slot_state::done) {
    note(which, wrong::lost_a_reply);
  }
  leave_slot(which, !leaves_out(mutation::recover_without_waking_waiter));
  if (again) {
    place(which);
  } else {
    settle(which, how);
  }
}

// None: it is posted again.
outcome step::outcome_of(std::size_t slot, std::size_t worker) {
  const auto which = parent_.in_slot[slot];
  auto& record = parent_.all[which];
  const bool begun = state_.memory[at::current + worker] == current_task(slot, record.generation);
  const bool overdue = record.overdue != 0;
  if (!leaves_out(mutation::timeout_kept)) record.overdue = 0;
  if (!begun && !(overdue && leaves_out(mutation::timeout_before_begin))) {
    return leaves_out(mutation::recover_without_requeue) ? outcome::died : outcome::none;
  }
  if (overdue) {
    if (!begun) note(which, wrong::timed_out_before_it_began);
    if (parent_.doomed_for[worker] != which + 1) note(which, wrong::timed_out_as_another);
    return leaves_out(mutation::timeout_reposted) ? outcome::none : outcome::timeout;
  }
  if (state_.died_by_kill[worker] != 0) note(which, wrong::paid_for_anothers_timeout);
  if (record.retries == 0) return outcome::died;
  --record.retries;
  return outcome::none;
}

void step::end_recovery(std::size_t worker) {
  state_.memory[at::parked + worker] = 0;  // nobody looks at a dead worker's line
  state_.memory[at::current + worker] = 0;
  state_.memory[at::killed] &= ~(std::uint64_t{1} << worker);
  parent_.doomed_for[worker] = 0;
  unlock();
  mine_.index = 0;
  mine_.slot = 0;  // all are woken
  mine_.pc = wake_all;
}

void step::wake_next() {
  const bool was_there = sleeping().remove(mine_.index);
  if (was_there || !leaves_out(mutation::recover_without_wake_all)) wake(mine_.index);
  if (++mine_.index < what_.workers) return;
  mine_.index = 0;
  mine_.pc = leaves_out(mutation::recover_without_bell) ? restart : arm;
}

}  // namespace muster::model
