// SPDX-License-Identifier: BSL-1.0
// Clients, and what they and the supervisor do to tasks, as dispatcher.
#include "task_step.hpp"

namespace muster::model {

namespace {

constexpr std::uint64_t location(const task& of, phase where) {
  return of.generation << 16U | std::uint64_t{of.slot} << 8U | static_cast<std::uint64_t>(where);
}

bool has_changed(const slot_word& found, std::uint64_t generation) {
  return found.generation() != generation ||
         (found.state() != slot_state::queued && found.state() != slot_state::claimed);
}

// To somebody who waits for one generation, all others are the same, and generations do not return. What it reads
// otherwise is looked at once more, by the request or under the lock.
weight weigh_for_wait(std::uint64_t value, std::uint64_t generation) {
  return slot_word(value).generation() != generation ? weight::nothing : weight::settled;
}

// An exchange follows that compares once more.
weight weigh_for_exchange(std::uint64_t, std::uint64_t) { return weight::settled; }

}  // namespace

bool step::has_sink(std::size_t which) const { return which == 0 ? what_.first_has_sink : what_.second_has_sink; }

void step::move_to(std::size_t which, phase where) {
  parent_.all[which].where = where;
  words[at::where + which].store(location(parent_.all[which], where), any);
}

void step::place(std::size_t which) {
  std::size_t slot = 0;
  while (parent_.in_slot[slot] != nobody) ++slot;
  auto& record = parent_.all[which];
  parent_.in_slot[slot] = static_cast<std::uint8_t>(which);
  record.generation = ++parent_.generations[slot];
  record.slot = static_cast<std::uint8_t>(slot);
  move_to(which, phase::posted);
  slot_protocol::publish(words[at::slot + slot], record.generation,
                         has_sink(which) ? slot_flag::notify : slot_flag::none);
  state_.memory[at::argument + slot] = which;
  lane().put(parent_.lane_tail++,
             {.generation = static_cast<std::uint32_t>(record.generation), .slot = static_cast<std::uint16_t>(slot)});
}

void step::leave_slot(std::size_t which, bool wake_sleeper) {
  const auto slot = parent_.all[which].slot;
  parent_.in_slot[slot] = nobody;
  if (words[at::sleeper + which].load(any) != 0 && wake_sleeper) futex_wake(at::slot + slot);
}

void step::settle(std::size_t which, outcome how) {
  auto& record = parent_.all[which];
  if (record.how != outcome::none) note(which, wrong::settled_twice);
  record.how = how;
  if (has_sink(which)) ++record.told;
  move_to(which, phase::settled);
}

void step::collect(std::size_t which) {
  auto& record = parent_.all[which];
  if ((state_.memory[at::reply + record.slot] & ~failed_reply) != which + 1) note(which, wrong::foreign_reply);
  if (state_.memory[at::executed + which] == 0) note(which, wrong::value_of_nothing);
  slot_protocol::retire(words[at::slot + record.slot], record.generation);
  leave_slot(which);
}

// Ends it, or posts it again.
void step::settle_done(std::size_t which) {
  auto& record = parent_.all[which];
  const bool failed = (state_.memory[at::reply + record.slot] & failed_reply) != 0;
  collect(which);
  if (!failed || record.retries == 0) return settle(which, failed ? outcome::error : outcome::value);
  --record.retries;
  if (!leaves_out(mutation::timeout_kept)) record.overdue = 0;
  move_to(which, phase::waiting);
  place(which);
  ++mine_.slot;
}

void step::run_client() {
  switch (mine_.pc) {
    case post:
      lock();
      parent_.all[who_].retries = what_.retries;
      place(who_);
      unlock();
      mine_.pc = wake_one;
      return;
    case wake_one: {
      const bool cancels = who_ == 1 ? what_.second_cancels : what_.first_cancels;
      const auto after = cancels ? cancel : has_sink(who_) ? client_finished : wait;
      if (leaves_out(mutation::post_without_wake)) {
        mine_.pc = after;
      } else {
        take_sleeper(wake_store, after);
      }
      return;
    }
    case wake_store: return wake_taken();
    case cancel: return client_cancels();
    case wait: return client_waits();
    case has_moved: return client_checks_slot();
    case take_reply: return client_takes();
    default: never();
  }
}

void step::client_cancels() {
  lock();
  auto& record = parent_.all[who_];
  if (record.where == phase::posted) {
    auto& word = words[at::slot + record.slot];
    execution_.weigh_ = &weigh_for_exchange;
    const bool revoked = slot_protocol::try_revoke(word, record.generation);
    execution_.weigh_ = nullptr;
    if (revoked) {
      leave_slot(who_);
      settle(who_, outcome::cancelled);
    } else if (slot_protocol::read(word).state() == slot_state::claimed) {
      slot_protocol::request(word, slot_flag::stop);
      record.retries = 0;
    }
  }
  unlock();
  mine_.pc = has_sink(who_) ? client_finished : wait;
}

void step::client_waits() {
  const auto where = words[at::where + who_].load(any);
  mine_.word = 0;
  if (static_cast<phase>(where & 0xffU) == phase::settled) {
    mine_.pc = take_reply;
    return;
  }
  const auto generation = where >> 16U;
  mine_.word = where;
  auto& word = words[at::slot + (where >> 8U & 0xffU)];
  execution_.weigh_ = &weigh_for_wait;
  execution_.weigh_context_ = generation;
  const auto found = slot_protocol::read(word);
  execution_.weigh_ = nullptr;
  if (found.generation() == generation && found.state() == slot_state::done) {
    mine_.pc = take_reply;
    mine_.word = 0;
    return;
  }
  if (static_cast<phase>(where & 0xffU) == phase::waiting || has_changed(found, generation)) {
    mine_.pc = has_moved;
    return;
  }
  mine_.word = 0;
  words[at::sleeper + who_].store(1, any);
  const bool asks = !leaves_out(mutation::wait_without_request);
  const auto before = asks ? slot_protocol::request(word, slot_flag::waiter) : slot_protocol::read(word);
  if (has_changed(before, generation)) return;
  futex_wait(word.index(), before.bits() | (asks ? slot_word::flag_bits(slot_flag::waiter) : 0));
}

// The slot's word and the record disagree: the task has moved, or the word has been overwritten.
void step::client_checks_slot() {
  lock();
  const auto& record = parent_.all[who_];
  if (location(record, record.where) == mine_.word) {
    const auto found = slot_protocol::read(words[at::slot + record.slot]);
    const bool done = found.generation() == record.generation && found.state() == slot_state::done;
    if (has_changed(found, record.generation) && !done) note(who_, wrong::slot_changed_hands);
  }
  unlock();
  mine_ = {};
  mine_.pc = wait;
}

void step::client_takes() {
  lock();
  auto& record = parent_.all[who_];
  if (record.where == phase::posted) {
    collect(who_);
    record.how = outcome::value;
  }
  record.where = phase::taken;
  unlock();
  mine_.pc = client_finished;
}

}  // namespace muster::model
