// SPDX-License-Identifier: BSL-1.0
// A worker, as worker_end.
#include <muster/memory/wait/parking.hpp>
#include <muster/queue/bell.hpp>

#include "task_step.hpp"

namespace muster::model {

namespace {

// To a worker with a hint, all that its task is not queued under is the same, and will be: generations do not return.
// What it reads otherwise is compared once more when it claims.
weight weigh_for_claim(std::uint64_t value, std::uint64_t short_generation) {
  const slot_word found(value);
  const bool claimable = found.state() == slot_state::queued && found.short_generation() == short_generation;
  return claimable ? weight::settled : weight::nothing;
}

}  // namespace

void step::run_worker(std::size_t self) {
  switch (mine_.pc) {
    case look: return worker_looks(self);
    case chain: return worker_chains();
    case chain_store: return wake_taken();
    case begin: return worker_begins(self);
    case complete: return worker_completes();
    case wake_waiter: futex_wake(at::slot + mine_.slot); return next_duty(push_ring);
    case push_ring:
      ring(self).push({.generation = slot_word(mine_.word).short_generation(), .slot = mine_.slot});
      mine_.pc = ring_bell;
      return;
    case ring_bell: return worker_rings();
    case leave:
      words[at::current + self].store(0, any);
      mine_ = {};
      return;
    case await_death: return never();
    default: return worker_parks(self);
  }
}

void step::worker_looks(std::size_t self) {
  const auto entry = look_at_lane();
  if (!entry.some) {
    mine_.pc = park;
    return;
  }
  execution_.weigh_ = &weigh_for_claim;
  execution_.weigh_context_ = entry.hint.generation;
  auto& word = words[at::slot + entry.hint.slot];
  const auto claim = [&] {
    return slot_protocol::try_claim(word, entry.hint.generation, static_cast<unsigned>(self) + 1)
        .value_or(slot_word())
        .bits();
  };
  const auto claimed = execution_.summarise(claim, word.index());
  lane().advance(entry);
  if (claimed == 0) return;
  mine_.word = claimed;
  mine_.slot = static_cast<std::uint8_t>(entry.hint.slot);
  mine_.pc = mine_.slept != 0 ? chain : begin;
}

void step::worker_chains() {
  mine_.slept = 0;
  if (look_at_lane().some && !leaves_out(mutation::no_chain_wake)) {
    take_sleeper(chain_store, begin);
  } else {
    mine_.pc = begin;
  }
}

// Of the word, nothing else matters now.
bool step::sees_doom() {
  return perform({.reads = resource::slot(mine_.slot)}, [&] {
           return std::uint64_t{slot_word(state_.memory[at::slot + mine_.slot]).has(slot_flag::doomed)};
         }) != 0;
}

// The worker says that it begins, and runs the user's function; its reply is seen by nobody before it completes.
void step::worker_begins(std::size_t self) {
  const slot_word claimed(mine_.word);
  if (what_.timeouts > 0 && !leaves_out(mutation::begin_despite_doom) && sees_doom()) {
    mine_.pc = await_death;
    return;
  }
  perform({.reads = resource::kill(self), .writes = resource::current(self)}, [&] {
    const auto which = state_.memory[at::argument + mine_.slot];
    auto& record = parent_.all[which];
    if (record.how != outcome::none) note(which, wrong::run_after_its_end);
    const auto runs = ++state_.memory[at::executed + which];
    if (runs > 1U + what_.retries) note(which, wrong::run_too_often);
    state_.memory[at::reply + mine_.slot] = (which + 1) | (has_sink(which) && runs <= what_.errors ? failed_reply : 0);
    state_.memory[at::current + self] = current_task(mine_.slot, claimed.generation());
    return which;
  });
  mine_.slept = 0;
  mine_.pc = complete;
}

void step::worker_completes() {
  const slot_word claimed(mine_.word);
  const auto asked = slot_protocol::complete(words[at::slot + mine_.slot], claimed, slot_flag::none);
  mine_.word = slot_word(claimed.generation(), 0, asked.flags(), slot_state::done).bits();
  next_duty(wake_waiter);
}

// What was asked for, in order, from this on.
void step::next_duty(std::uint8_t pc) {
  const slot_word asked(mine_.word);
  if (pc == wake_waiter && asked.has(slot_flag::waiter) && !leaves_out(mutation::complete_without_wake)) {
    mine_.pc = wake_waiter;
  } else if (asked.has(slot_flag::notify) && !leaves_out(mutation::complete_without_ring)) {
    mine_.pc = push_ring;
  } else {
    mine_.pc = after_duties();
  }
}

// A worker that is doomed waits for its death, and claims nothing more.
std::uint8_t step::after_duties() const {
  const bool doomed = slot_word(mine_.word).has(slot_flag::doomed);
  return doomed && !leaves_out(mutation::complete_despite_doom) ? await_death : leave;
}

void step::worker_rings() {
  if (bell::take_armed(words[at::armed]) != 0) words[at::bell].fetch_or(1, any);
  mine_.pc = after_duties();
}

void step::worker_parks(std::size_t self) {
  const auto is_wanted = [&] {
    if (leaves_out(mutation::park_without_second_look)) return false;
    return execution_.summarise([&] { return std::uint64_t{look_at_lane().some}; }) != 0;
  };
  const auto sleep = [&] {
    const auto loaded = execution_.position_ - 1;  // parked == 1, which the source looks at again after this
    futex_wait(at::parked + self, 1);
    execution_.rewind(loaded);
  };
  parking::park(words[at::parked + self], sleeping(), self, is_wanted, sleep);
  mine_ = {};
  mine_.slept = 1;
}

}  // namespace muster::model
