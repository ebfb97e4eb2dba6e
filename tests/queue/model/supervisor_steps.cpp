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

}  // namespace

void step::run_supervisor() {
  switch (mine_.pc) {
    case event: return supervisor_awaits();
    case mark: return supervisor_marks();
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

// Choices: the bell; a death, by worker; a task whose time is over, by worker.
void step::supervisor_awaits() {
  const auto looks_at_tasks = state_.timeouts_left > 0 ? resource::current(0) | resource::current(1) : 0;
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
    mine_.index = static_cast<std::uint8_t>((choice_ - 1) % most_model_workers);
    mine_.word = found;
    mine_.pc = mark;
  }
}

// 0: the bell; up to the number of workers: that one's death; more: what a worker has been running for too long.
std::uint64_t step::next_event() {
  const auto worker = (choice_ - 1) % most_model_workers;
  if (choice_ > most_model_workers) return next_timeout(worker);
  auto& word = state_.memory[choice_ == 0 ? at::bell : at::dead];
  const auto bit = choice_ == 0 ? std::uint64_t{1} : std::uint64_t{1} << worker;
  if ((word & bit) == 0) execution_.block();
  word &= ~bit;
  return choice_;
}

std::uint64_t step::next_timeout(std::size_t worker) {
  const auto running = state_.memory[at::current + worker];
  if (state_.timeouts_left == 0 || running == 0 || state_.parent.overrun[worker] != 0) {
    execution_.block();
  } else {
    --state_.timeouts_left;
  }
  return running;
}

// The task may have ended meanwhile, and its slot may hold another.
void step::supervisor_marks() {
  lock();
  const auto slot = static_cast<std::size_t>(mine_.word >> 32U & 0xffffU);
  const auto which = parent_.in_slot[slot];
  const bool same = which != nobody && current_task(slot, parent_.all[which].generation) == mine_.word;
  const bool marks = which != nobody && (same || leaves_out(mutation::timeout_without_generation));
  if (marks) {
    parent_.all[which].timed_out = 1;
    parent_.overrun[mine_.index] = mine_.word;
  }
  unlock();
  mine_.word = 0;
  mine_.pc = marks ? send_kill : event;
  if (!marks) mine_.index = 0;
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
  collect(which);
  settle(which, outcome::value);
}

void step::after_ring() {
  mine_.tail = 0;
  if (mine_.dead != 0 && mine_.after == 0) {
    mine_.index = 0;
    mine_.pc = recover_set;
  } else if (++mine_.index < what_.workers) {
    mine_.pc = drain_rings;
  } else {
    unlock();
    mine_.index = 0;
    mine_.pc = std::exchange(mine_.after, std::uint8_t{0});
  }
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
    collect(which);
    settle(which, outcome::value);
    return;
  }
  recover_claimed(slot, worker);
}

void step::recover_claimed(std::size_t slot, std::size_t worker) {
  const auto which = parent_.in_slot[slot];
  auto& record = parent_.all[which];
  const auto current = current_task(slot, record.generation);
  const bool begun = state_.memory[at::current + worker] == current;
  const bool was_killed = parent_.overrun[worker] != 0;
  const bool overran = leaves_out(mutation::timeout_by_worker) ? was_killed && begun : record.timed_out != 0;
  outcome how = outcome::none;
  if (overran && !leaves_out(mutation::timeout_reposted)) {
    how = outcome::timeout;
    if (parent_.overrun[worker] != current) note(which, wrong::timed_out_as_another);
  } else if (!begun) {
    if (leaves_out(mutation::recover_without_requeue)) how = outcome::died;
  } else if (was_killed && !leaves_out(mutation::timeout_charges_others)) {
    if (parent_.overrun[worker] != current) ++record.pardoned;
  } else {
    if (state_.died_by_kill[worker] != 0) note(which, wrong::paid_for_anothers_timeout);
    if (record.retries > 0) {
      --record.retries;
    } else {
      how = outcome::died;
    }
  }
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

void step::end_recovery(std::size_t worker) {
  state_.memory[at::parked + worker] = 0;  // nobody looks at a dead worker's line
  state_.memory[at::current + worker] = 0;
  state_.memory[at::killed] &= ~(std::uint64_t{1} << worker);
  parent_.overrun[worker] = 0;
  unlock();
  mine_.index = 0;
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
