// SPDX-License-Identifier: BSL-1.0
// How a step is taken, and what all processes do alike.
#include "task_step.hpp"

#include <cstdlib>
#include <utility>

#include <muster/memory/wait/parking.hpp>

namespace muster::model {

std::size_t step::choices(const state& now, std::size_t who) {
  const bool awaits = who == supervisor && now.each[who].locals.pc == event;
  return awaits ? 1 + most_model_workers + slots : 1;
}

bool step::take(std::size_t choice) {
  choice_ = choice;
  auto& process = state_.each[who_];
  for (;;) {
    const auto how = run_body();
    if (how == ended::too_long) std::abort();  // most_steps is too small
    if (how != ended::after_body) break;
    finish();
  }
  process.steps = static_cast<std::uint8_t>(execution_.position_);
  return execution_.taken_ > 0;
}

step::ended step::run_body() {
  auto& process = state_.each[who_];
  mine_ = process.locals;
  parent_ = state_.parent;
  unlocks_ = false;
  execution_.words_ = state_.memory.data();
  execution_.results_ = process.results.data();
  execution_.origins_ = process.origins.data();
  execution_.recorded_ = process.steps;
  execution_.position_ = 0;
  execution_.blocked_ = false;
  execution_.joined_ = false;
  execution_.reads_lane_ = false;
  execution_.may_join_ = what_.reduced;
  execution_.joins_next_ = false;
  execution_.weigh_ = nullptr;
  execution_.own_bit_ = own_bit();
  execution_.context_ = this;
  execution_.may_follow_ = &step::may_follow;
  execution::current() = &execution_;
  const int how = setjmp(execution_.out_);
  if (how == execution::left) return ended::in_body;
  if (how == execution::overflow) return ended::too_long;
  run();
  return ended::after_body;
}

// Of the set of sleepers: a worker's own bit is set by that worker alone.
std::uint64_t step::own_bit() const {
  const auto dead = state_.each[supervisor].locals.dead;
  if (who_ >= first_worker) return std::uint64_t{1} << (who_ - first_worker);
  return who_ == supervisor && dead != 0 ? std::uint64_t{1} << (dead - 1U) : 0;
}

bool step::may_follow(const void* context, const access& what) {
  const auto& self = *static_cast<const step*>(context);
  if (!self.what_.reduced) return false;
  if (what.reads == 0 && what.writes == 0) return true;
  const bool is_worker = self.who_ >= first_worker;
  if (is_worker && what.writes != 0 && may_die(self.state_, self.who_ - first_worker, self.what_)) return false;
  return commutes(self.state_, self.who_, what, self.what_);
}

void step::finish() {
  auto& process = state_.each[who_];
  state_.parent = parent_;
  if (unlocks_) state_.memory[at::lock] = 0;
  process.locals = mine_;
  process.results = {};
  process.origins = {};
  process.steps = 0;
}

void step::run() {
  if (who_ < supervisor) return run_client();
  if (who_ == supervisor) return run_supervisor();
  run_worker(who_ - first_worker);
}

// Whatever others do between this and the next operation they could have done before.
void step::lock() {
  execution_.perform_with_next(access::to_both(resource::lock), [this]() -> std::uint64_t {
    if (state_.memory[at::lock] != 0) {
      execution_.block();
    } else {
      state_.memory[at::lock] = who_ + 1;
    }
    return 0;
  });
}

void step::never() {
  perform({}, [this] {
    execution_.block();
    return 0;
  });
}

// Whether it may die before it does what it is about to do for others.
bool step::may_owe() const { return who_ >= first_worker && may_die(state_, who_ - first_worker, what_); }

model_lane::found step::look_at_lane() {
  execution_.reads_lane_ = false;
  const auto found = lane().look();
  execution_.reads_lane_ = false;
  return found;
}

// Whoever changes the word wakes those who sleep on it right after. So to sleep although the change is near and to be
// woken comes to the same as not to sleep.
void step::futex_wait(std::size_t index, std::uint64_t expected) {
  const auto sleeps = perform({}, [&] {
    if (static_cast<std::uint32_t>(state_.memory[index]) != static_cast<std::uint32_t>(expected)) return 0;
    state_.each[who_].asleep_on = static_cast<std::uint8_t>(index);
    return 1;
  });
  if (sleeps == 0) return;
  perform({}, [this] {
    if (state_.each[who_].asleep_on != nobody) execution_.block();
    return 0;
  });
}

// To be awake and not to go on yet is like being asleep: a wake may come as soon as it can, unless death comes first.
void step::futex_wake(std::size_t index) {
  perform({.writes = may_owe() ? resource::wake : 0}, [&] {
    for (auto& other : state_.each) {
      if (other.asleep_on == index) other.asleep_on = nobody;
    }
    return 0;
  });
}

void step::wake(std::size_t worker) {
  parking::unpark(words[at::parked + worker], [&](const word& parked) { futex_wake(parked.index()); });
}

void step::take_sleeper(std::uint8_t store, std::uint8_t after) {
  const auto taken = sleeping().remove_first();
  mine_.waking = taken ? static_cast<std::uint8_t>(*taken + 1) : 0;
  mine_.after = taken ? after : 0;
  mine_.pc = taken ? store : after;
}

void step::wake_taken() {
  wake(mine_.waking - 1U);
  mine_.waking = 0;
  mine_.pc = std::exchange(mine_.after, std::uint8_t{0});
}

}  // namespace muster::model
