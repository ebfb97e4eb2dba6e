// SPDX-License-Identifier: BSL-1.0
// What other processes may still do: an upper bound, from where each of them is. docs/design/model.md has the argument.
#include "task_step.hpp"

namespace muster::model {

bool may_die(const state& now, std::size_t worker, const scenario& what) {
  if (now.each[first_worker + worker].gone != 0) return false;
  if ((now.memory[at::killed] >> worker & 1U) != 0) return true;
  if (now.crashes_left == 0 || now.deaths[worker] >= what.deaths_each) return false;
  if (!what.then_in_recovery || now.crashes_left == what.crashes) return true;
  for (std::size_t other = 0; other < what.workers; ++other) {
    if (now.each[first_worker + other].gone != 0) return true;
  }
  return false;
}

namespace {

class bound {
public:
  bound(const state& now, std::size_t who, const scenario& what) : now_(now), who_(who), what_(what) {
    has_lock_ = now.memory[at::lock] == who + 1;
    for (std::size_t worker = 0; worker < what.workers; ++worker) {
      if (first_worker + worker == who_) continue;
      if (may_die(now, worker, what) || may_be_killed(worker)) others_may_die_ = true;
    }
    const auto& its = now.each[supervisor].locals;
    const bool recovers = its.dead != 0 && its.pc <= wake_all && its.pc >= drain_first;
    recovery_ = who_ != supervisor && (others_may_die_ || now.memory[at::dead] != 0 || recovers);
    for (std::size_t task = 0; task < what.clients; ++task) {
      if (has_sink(task) && now.parent.all[task].where < phase::settled) sink_waits_ = true;
    }
    bool others_ring = false;
    for (std::size_t worker = 0; worker < what.workers; ++worker) {
      if (is_other_worker(worker) && may_ring(worker)) others_ring = true;
    }
    supervisor_acts_ = who_ != supervisor &&
                       (recovery_ || others_ring || may_time_out() || now.memory[at::bell] != 0 || its.pc != event);
    posting_ = false;
    for (std::size_t client = 0; client < what.clients; ++client) {
      if (client != who_ && now.each[client].locals.pc == post) posting_ = true;
    }
    retrying_ = what.errors > 0 && supervisor_acts_;
    placing_ = !has_lock_ && (posting_ || recovery_ || retrying_);
  }

  access all() {
    for (std::size_t worker = 0; worker < what_.workers; ++worker) {
      if (is_other_worker(worker)) add_worker(worker);
    }
    for (std::size_t client = 0; client < what_.clients; ++client) {
      if (client != who_) add_client(client);
    }
    if (who_ != supervisor) add_supervisor();
    if (placing_) add_placing();
    add_parked();
    return found_;
  }

private:
  void both(std::uint64_t what) {
    found_.reads |= what;
    found_.writes |= what;
  }

  [[nodiscard]] bool may_time_out() const {
    bool any = false;
    for (std::size_t worker = 0; worker < what_.workers; ++worker) any = any || may_be_killed(worker);
    return any;
  }
  // The supervisor may come to kill it, before `who` takes another step.
  [[nodiscard]] bool may_be_killed(std::size_t worker) const {
    const auto& its = now_.each[supervisor].locals;
    if (its.pc == send_kill && its.index == worker) return true;
    if (!may_doom() || now_.parent.doomed_for[worker] != 0) return false;
    return first_worker + worker != who_ || has_task(worker);
  }
  // The supervisor may come to bind a worker to a task.
  [[nodiscard]] bool may_doom() const {
    return now_.timeouts_left > 0 || (now_.each[supervisor].locals.pc == doom && !has_lock_);
  }
  [[nodiscard]] bool has_task(std::size_t worker) const {
    for (std::size_t index = 0; index < slots; ++index) {
      if (slot(index).state() == slot_state::claimed && slot(index).owner() == worker + 1) return true;
    }
    return false;
  }

  // It lives, or one in its place may.
  [[nodiscard]] bool is_other_worker(std::size_t worker) const {
    if (first_worker + worker == who_) return false;
    return now_.each[first_worker + worker].gone == 0 || who_ != supervisor;
  }

  [[nodiscard]] bool has_sink(std::size_t task) const {
    return task == 0 ? what_.first_has_sink : what_.second_has_sink;
  }
  // It has, or may get, something to enter into its ring.
  [[nodiscard]] bool may_ring(std::size_t worker) const {
    const auto pc = now_.each[first_worker + worker].locals.pc;
    return sink_waits_ || pc == push_ring || pc == ring_bell;
  }

  [[nodiscard]] slot_word slot(std::size_t index) const { return slot_word(now_.memory[at::slot + index]); }

  // `who` runs the task in it: nobody else ends that, and only the one who waits for it or cancels it asks for more.
  [[nodiscard]] bool is_held(std::size_t index) const {
    if (who_ < first_worker) return false;
    return slot(index).state() == slot_state::claimed && slot(index).owner() == who_ - first_worker + 1;
  }

  void add_slot(std::size_t index) {
    if (!is_held(index)) both(resource::slot(index));
  }

  void add_worker(std::size_t worker) {
    both(resource::all_sleeping | resource::current(worker));
    if (may_ring(worker)) both(resource::armed | resource::bell | resource::ring(worker));
    found_.reads |= resource::all_entries | resource::kill(worker);
    if (may_die(now_, worker, what_) || may_be_killed(worker)) both(resource::event);
    for (std::size_t index = 0; index < slots; ++index) {
      const auto word = slot(index);
      const bool his = word.owner() == worker + 1 && word.state() == slot_state::claimed;
      if (his || word.state() == slot_state::queued || placing_) add_slot(index);
    }
  }

  void add_client(std::size_t client) {
    const auto pc = now_.each[client].locals.pc;
    if (pc == client_finished) return;
    const bool cancels = pc <= cancel && (client == 0 ? what_.first_cancels : what_.second_cancels);
    if (pc <= wake_store) both(resource::all_sleeping);
    if (pc == post) {
      both(resource::lock | resource::where(client));
      for (std::size_t index = 0; index < slots; ++index) {
        if (!has_lock_) add_slot(index);
      }
    }
    if (has_sink(client) && !cancels) return;
    both(resource::lock | resource::where(client));
    add_slots_of(client);
  }

  // Where its task is, where it thinks that it is, and where it may come to be.
  void add_slots_of(std::size_t client) {
    const auto& process = now_.each[client];
    const auto& record = now_.parent.all[client];
    const bool looks = process.locals.pc == wait && process.steps > 0;
    const auto seen = looks ? process.results[0] : now_.memory[at::where + client];
    both(resource::slot(seen >> 8U & 0xffU));
    if (record.where == phase::posted) both(resource::slot(record.slot));
    const auto written = now_.memory[at::where + client];
    if (static_cast<phase>(written & 0xffU) == phase::posted) both(resource::slot(written >> 8U & 0xffU));
    if (!placing_) return;
    for (std::size_t index = 0; index < slots; ++index) {
      if (!is_held(index)) both(resource::slot(index));
    }
  }

  void add_supervisor() {
    if (may_doom()) add_doom();
    for (std::size_t worker = 0; worker < what_.workers; ++worker) {
      if (may_be_killed(worker)) found_.writes |= resource::kill(worker);
    }
    if (!supervisor_acts_) return;
    both(resource::bell | resource::event);
    found_.writes |= resource::armed;
    if (recovery_ || retrying_) both(resource::all_sleeping);
    if (has_lock_) return;
    both(resource::lock);
    found_.reads |= resource::all_rings;
    for (std::size_t task = 0; task < tasks; ++task) {
      if (!has_sink(task) && !recovery_) continue;
      both(resource::where(task));
      if (now_.parent.all[task].where == phase::posted) add_slot(now_.parent.all[task].slot);
    }
  }

  // It looks at all slots, and changes the word of one that somebody has.
  void add_doom() {
    both(resource::event);
    found_.reads |= resource::slot(0) | resource::slot(1);
    if (has_lock_) return;
    both(resource::lock);
    for (std::size_t index = 0; index < slots; ++index) {
      const auto state = slot(index).state();
      if (state == slot_state::queued || state == slot_state::claimed || placing_) both(resource::slot(index));
    }
  }

  // A task may be entered into any slot that is free or becomes free, and at the lane's end.
  void add_placing() {
    for (std::size_t index = 0; index < slots; ++index) add_slot(index);
    both(resource::lock);
    std::uint64_t filled = 0;
    for (auto ticket = now_.memory[at::lane_head]; ticket < now_.parent.lane_tail; ++ticket) {
      filled |= resource::entry(ticket % entries);
    }
    found_.writes |= resource::all_entries & ~filled;
  }

  // A sleeper is touched by whoever takes or took its bit, by itself, and in recovery.
  void add_parked() {
    for (std::size_t worker = 0; worker < most_model_workers; ++worker) {
      bool touched = is_other_worker(worker) || recovery_ || (now_.memory[at::sleeping] >> worker & 1U) != 0;
      for (std::size_t each = 0; each < processes; ++each) {
        if (each != who_ && now_.each[each].locals.waking == worker + 1) touched = true;
      }
      if (touched) both(resource::parked(worker));
    }
  }

  const state& now_;
  const std::size_t who_;
  const scenario& what_;
  bool has_lock_ = false;
  bool others_may_die_ = false;
  bool recovery_ = false;
  bool supervisor_acts_ = false;
  bool posting_ = false;
  bool retrying_ = false;    // a task is posted again after an error
  bool sink_waits_ = false;  // for a task
  bool placing_ = false;
  access found_;
};

}  // namespace

// A worker's write also depends on the signal that may kill it: who sent that matters.
bool commutes(const state& now, std::size_t who, access uses, const scenario& what) {
  if (uses.reads == 0 && uses.writes == 0) return true;
  if (who >= first_worker && uses.writes != 0) uses.reads |= resource::kill(who - first_worker);
  return !uses.conflicts_with(bound(now, who, what).all());
}

}  // namespace muster::model
