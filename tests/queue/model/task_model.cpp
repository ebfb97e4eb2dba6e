// SPDX-License-Identifier: BSL-1.0
#include "task_model.hpp"

#include <span>

#include <muster/queue/completion_ring.hpp>
#include <muster/queue/idle_set.hpp>
#include <muster/queue/lane.hpp>
#include <muster/queue/slot_protocol.hpp>

namespace muster::model {

namespace {

// ---- the words

constexpr std::size_t slots = 2;
constexpr std::size_t tasks = 2;
constexpr std::size_t most_model_workers = 2;
constexpr std::size_t entries = 4;  // of the lane, and of each ring

namespace at {
constexpr std::size_t slot = 0;
constexpr std::size_t lane_head = slot + slots;
constexpr std::size_t lane_entries = lane_head + 1;
constexpr std::size_t sleeping = lane_entries + entries;
constexpr std::size_t parked = sleeping + 1;
constexpr std::size_t current = parked + most_model_workers;
constexpr std::size_t ring_tail = current + most_model_workers;
constexpr std::size_t ring_entries = ring_tail + most_model_workers;
constexpr std::size_t armed = ring_entries + most_model_workers * entries;
constexpr std::size_t bell = armed + 1;
constexpr std::size_t sleeper = bell + 1;          // of each task: somebody may sleep on its slot
constexpr std::size_t argument = sleeper + tasks;  // of each slot: which task
constexpr std::size_t reply = argument + slots;
constexpr std::size_t executed = reply + slots;  // of each task: how often; for the checks alone
constexpr std::size_t lock = executed + tasks;   // of the parent: process + 1
constexpr std::size_t dead = lock + 1;           // set of workers whose death nobody has dealt with
constexpr std::size_t end = dead + 1;
}  // namespace at
static_assert(at::end <= most_words);

std::array<word, most_words> all_words() {
  std::array<word, most_words> made;
  for (std::size_t index = 0; index < most_words; ++index) made[index] = word(index);
  return made;
}
std::array<word, most_words> words = all_words();

using model_lane = basic_lane<word>;
using model_ring = basic_completion_ring<word>;
using model_set = basic_idle_set<word>;

model_lane lane() { return {words[at::lane_head], std::span(words).subspan(at::lane_entries, entries)}; }
model_ring ring(std::size_t worker) {
  return {words[at::ring_tail + worker], std::span(words).subspan(at::ring_entries + worker * entries, entries)};
}
model_set sleeping() { return model_set(std::span(words).subspan(at::sleeping, 1)); }

constexpr std::memory_order any = std::memory_order_seq_cst;

std::uint64_t current_task(std::size_t slot, std::uint64_t generation) {
  return std::uint64_t{1} << 63U | std::uint64_t{slot} << 32U | (generation & 0xffffffffU);
}

// ---- the state

enum class phase : std::uint8_t { unused, posted, settled, taken };
enum class outcome : std::uint8_t { none, value, died, cancelled };

struct task {
  std::uint64_t generation = 0;
  phase where = phase::unused;
  std::uint8_t slot = 0;
  outcome how = outcome::none;
  std::uint8_t retries = 0;
  std::uint8_t told = 0;
  std::uint8_t wrong = 0;
  std::array<std::uint8_t, 2> padding{};
};

// The parent's private memory, changed under its lock.
struct parent_data {
  std::array<task, tasks> all;
  std::array<std::uint64_t, slots> generations{};
  std::uint64_t lane_tail = 0;
  std::array<std::uint64_t, most_model_workers> ring_head{};
  std::array<std::uint8_t, slots> in_slot{nobody, nobody};
  std::array<std::uint8_t, 6> padding{};
};

struct local_values {
  std::uint64_t claimed = 0;
  std::uint8_t pc = 0;
  std::uint8_t slept = 0;
  std::uint8_t slot = 0;
  std::uint8_t dead = 0;
  std::array<std::uint8_t, 4> padding{};
};

using process = process_state<local_values>;

// Clients, then the supervisor, then workers.
constexpr std::size_t supervisor = tasks;
constexpr std::size_t first_worker = supervisor + 1;
constexpr std::size_t processes = first_worker + most_model_workers;

struct state {
  std::array<std::uint64_t, most_words> memory{};
  parent_data parent;
  std::array<process, processes> each;
  std::uint64_t crashes_left = 0;
};

// ---- what processes do

constexpr std::uint8_t client_finished = 5;

// One step of one process, on a state that it may change.
class step {
public:
  step(state& on, std::size_t who, const scenario& what)
      : state_(on), who_(who), what_(what), mine_(on.each[who].locals), parent_(on.parent) {}

  /// False when the process cannot go on now.
  bool take() {
    execution_.words_ = state_.memory.data();
    execution_.results_ = state_.each[who_].results.data();
    execution_.recorded_ = state_.each[who_].steps;
    execution::current() = &execution_;
    const int how = setjmp(execution_.out_);
    if (how == execution::stuck) return false;
    if (how == execution::left) {
      ++state_.each[who_].steps;
      return true;
    }
    run();
    finish();
    return true;
  }

private:
  void finish() {
    auto& process = state_.each[who_];
    if (state_.memory[at::lock] == who_ + 1) {
      state_.parent = parent_;
      state_.memory[at::lock] = 0;
    }
    process.locals = mine_;
    process.results = {};
    process.steps = 0;
  }

  void run() {
    if (who_ < supervisor) return run_client();
    if (who_ == supervisor) return run_supervisor();
    run_worker(who_ - first_worker);
  }

  // -- operations that no word has

  template <class F>
  std::uint64_t perform(F operation) {
    return execution_.perform(operation);
  }
  void lock() {
    perform([this] {
      if (state_.memory[at::lock] != 0) execution_.block();
      return state_.memory[at::lock] = who_ + 1;
    });
  }
  void futex_wait(std::size_t index, std::uint64_t expected) {
    const auto sleeps = perform([&] {
      if (static_cast<std::uint32_t>(state_.memory[index]) != static_cast<std::uint32_t>(expected)) return 0;
      state_.each[who_].asleep_on = static_cast<std::uint8_t>(index);
      return 1;
    });
    if (sleeps == 0) return;
    perform([this] {
      if (state_.each[who_].asleep_on != nobody) execution_.block();
      return 0;
    });
  }
  void futex_wake(std::size_t index) {
    perform([&] {
      for (auto& other : state_.each) {
        if (other.asleep_on == index) other.asleep_on = nobody;
      }
      return 0;
    });
  }

  // -- waking, as board does

  void wake(std::size_t worker) {
    words[at::parked + worker].store(0, any);
    futex_wake(at::parked + worker);
  }
  void wake_any() {
    auto set = words[at::sleeping].fetch_or(0, any);
    for (std::size_t worker = 0; worker < what_.workers; ++worker) {
      if ((set >> worker & 1U) == 0 || !sleeping().remove(worker)) continue;
      wake(worker);
      return;
    }
  }

  // -- a worker, as worker_end

  enum worker_pc : std::uint8_t { look, wake_next, run_task, park };

  void run_worker(std::size_t self) {
    switch (mine_.pc) {
      case look: return worker_looks(self);
      case wake_next:
        if (lane().look().some && what_.left_out != mutation::no_chain_wake) wake_any();
        mine_.slept = 0;
        mine_.pc = run_task;
        return;
      case run_task: return worker_runs(self);
      default: return worker_parks(self);
    }
  }

  void worker_looks(std::size_t self) {
    const auto entry = lane().look();
    if (!entry.some) {
      mine_.pc = park;
      return;
    }
    const auto claimed = slot_protocol::try_claim(words[at::slot + entry.hint.slot], entry.hint.generation,
                                                  static_cast<unsigned>(self) + 1);
    lane().advance(entry);
    if (!claimed) return;
    mine_.claimed = claimed->bits();
    mine_.slot = static_cast<std::uint8_t>(entry.hint.slot);
    mine_.pc = mine_.slept != 0 ? wake_next : run_task;
  }

  void worker_runs(std::size_t self) {
    const slot_word claimed(mine_.claimed);
    const std::size_t slot = mine_.slot;
    perform([&] {  // the worker says that it begins, and runs the user's function: nobody else looks at any of it
      const auto which = state_.memory[at::argument + slot];
      ++state_.memory[at::executed + which];
      state_.memory[at::reply + slot] = which + 1;
      return state_.memory[at::current + self] = current_task(slot, claimed.generation());
    });
    const auto asked = slot_protocol::complete(words[at::slot + slot], claimed, slot_flag::none);
    if (asked.has(slot_flag::waiter) && what_.left_out != mutation::complete_without_wake) futex_wake(at::slot + slot);
    if (asked.has(slot_flag::notify) && what_.left_out != mutation::complete_without_ring) {
      ring(self).push({.generation = claimed.short_generation(), .slot = static_cast<std::uint16_t>(slot)});
      if (words[at::armed].load(any) != 0 && words[at::armed].exchange(0, any) != 0) words[at::bell].fetch_or(1, any);
    }
    words[at::current + self].store(0, any);
    mine_.claimed = 0;
    mine_.slot = 0;
    mine_.pc = look;
  }

  void worker_parks(std::size_t self) {
    auto& parked = words[at::parked + self];
    parked.store(1, any);
    sleeping().insert(self);
    if (what_.left_out != mutation::park_without_second_look && lane().look().some) {
      parked.store(0, any);
    } else {
      while (parked.load(any) == 1) futex_wait(at::parked + self, 1);
    }
    sleeping().remove(self);
    mine_.slept = 1;
    mine_.pc = look;
  }

  // -- the parent, as dispatcher

  [[nodiscard]] bool has_sink(std::size_t which) const {
    return which == 0 ? what_.first_has_sink : what_.second_has_sink;
  }

  void place(std::size_t which) {
    std::size_t slot = 0;
    while (parent_.in_slot[slot] != nobody) ++slot;
    auto& record = parent_.all[which];
    parent_.in_slot[slot] = static_cast<std::uint8_t>(which);
    record.generation = ++parent_.generations[slot];
    record.slot = static_cast<std::uint8_t>(slot);
    record.where = phase::posted;
    state_.memory[at::argument + slot] = which;  // before the word is published: nobody looks yet
    slot_protocol::publish(words[at::slot + slot], record.generation,
                           has_sink(which) ? slot_flag::notify : slot_flag::none);
    lane().put(parent_.lane_tail++,
               {.generation = static_cast<std::uint32_t>(record.generation), .slot = static_cast<std::uint16_t>(slot)});
  }

  void leave_slot(std::size_t which, bool wake_sleeper = true) {
    const auto slot = parent_.all[which].slot;
    parent_.in_slot[slot] = nobody;
    if (words[at::sleeper + which].load(any) != 0 && wake_sleeper) futex_wake(at::slot + slot);
  }

  void settle(std::size_t which, outcome how) {
    auto& record = parent_.all[which];
    record.where = phase::settled;
    record.how = how;
    if (has_sink(which)) ++record.told;
  }

  void collect(std::size_t which) {
    auto& record = parent_.all[which];
    if (state_.memory[at::reply + record.slot] != which + 1) record.wrong = 1;
    slot_protocol::retire(words[at::slot + record.slot], record.generation);
    leave_slot(which);
  }

  void drain_ring(std::size_t worker) {
    const auto tail = ring(worker).tail();
    for (; parent_.ring_head[worker] != tail; ++parent_.ring_head[worker]) {
      const auto entry = ring(worker).read(parent_.ring_head[worker]);
      const auto which = parent_.in_slot[entry.slot];
      if (which == nobody || parent_.all[which].generation != entry.generation) continue;
      const auto found = slot_protocol::read(words[at::slot + entry.slot]);
      if (found.generation() != parent_.all[which].generation || found.state() != slot_state::done) continue;
      collect(which);
      settle(which, outcome::value);
    }
  }

  // -- a client

  enum client_pc : std::uint8_t { post, wake_one, cancel, wait, take_reply, finished = client_finished };

  void run_client() {
    switch (mine_.pc) {
      case post:
        lock();
        parent_.all[who_].retries = what_.retries;
        place(who_);
        mine_.pc = wake_one;
        return;
      case wake_one:
        if (what_.left_out != mutation::post_without_wake) wake_any();
        mine_.pc = who_ == 1 && what_.second_cancels ? cancel : wait;
        return;
      case cancel: return client_cancels();
      case wait: return client_waits();
      case take_reply: return client_takes();
      default:
        perform([this] {
          execution_.block();
          return 0;
        });
    }
  }

  void client_cancels() {
    lock();
    auto& record = parent_.all[who_];
    if (record.where == phase::posted) {
      auto& word = words[at::slot + record.slot];
      if (slot_protocol::try_revoke(word, record.generation)) {
        leave_slot(who_);
        settle(who_, outcome::cancelled);
      } else if (slot_protocol::read(word).state() == slot_state::claimed) {
        slot_protocol::request(word, slot_flag::stop);
      }
    }
    mine_.pc = wait;
  }

  void client_waits() {
    if (has_sink(who_)) {
      perform([this] {
        if (state_.parent.all[who_].told == 0) execution_.block();
        return 0;
      });
      mine_.pc = finished;
      return;
    }
    const auto where = perform([this] {  // one private word, read without the lock
      const auto& record = state_.parent.all[who_];
      return record.generation << 16U | std::uint64_t{record.slot} << 8U | static_cast<std::uint64_t>(record.where);
    });
    if (static_cast<phase>(where & 0xffU) == phase::settled) {
      mine_.pc = take_reply;
      return;
    }
    const auto index = at::slot + (where >> 8U & 0xffU);
    const auto generation = where >> 16U;
    const auto found = slot_protocol::read(words[index]);
    if (found.generation() == generation && found.state() == slot_state::done) {
      mine_.pc = take_reply;
    } else if (!has_changed(found, generation)) {
      words[at::sleeper + who_].store(1, any);
      const auto before = what_.left_out == mutation::wait_without_request
                              ? slot_protocol::read(words[index])
                              : slot_protocol::request(words[index], slot_flag::waiter);
      if (!has_changed(before, generation)) {
        futex_wait(index, before.bits() | (what_.left_out == mutation::wait_without_request
                                               ? 0
                                               : slot_word::flag_bits(slot_flag::waiter)));
      }
    }
  }

  static bool has_changed(const slot_word& found, std::uint64_t generation) {
    return found.generation() != generation ||
           (found.state() != slot_state::queued && found.state() != slot_state::claimed);
  }

  void client_takes() {
    lock();
    auto& record = parent_.all[who_];
    if (record.where == phase::posted) {
      collect(who_);
      record.how = outcome::value;
    }
    record.where = phase::taken;
    mine_.pc = finished;
  }

  // -- the supervisor

  enum supervisor_pc : std::uint8_t { event, recover, wake_all, drain, arm, drain_again, restart };

  void run_supervisor() {
    switch (mine_.pc) {
      case event: return supervisor_awaits();
      case recover: return supervisor_recovers(mine_.dead - 1U);
      case wake_all: return supervisor_wakes_all();
      case drain:
      case drain_again:
        lock();
        for (std::size_t worker = 0; worker < what_.workers; ++worker) drain_ring(worker);
        mine_.pc = mine_.pc == drain ? arm : (mine_.dead != 0 ? restart : event);
        return;
      case arm:
        words[at::armed].store(1, any);
        mine_.pc = drain_again;
        return;
      default:
        perform([this] {
          state_.each[first_worker + mine_.dead - 1U] = {};
          return 0;
        });
        mine_.dead = 0;
        mine_.pc = event;
    }
  }

  void supervisor_awaits() {
    const auto what = perform([this]() -> std::uint64_t {
      auto& dead = state_.memory[at::dead];
      for (std::size_t worker = 0; worker < what_.workers; ++worker) {
        if ((dead >> worker & 1U) == 0) continue;
        dead &= ~(std::uint64_t{1} << worker);
        return worker + 1;
      }
      if (state_.memory[at::bell] == 0) execution_.block();
      state_.memory[at::bell] = 0;
      return 0;
    });
    mine_.dead = static_cast<std::uint8_t>(what);
    mine_.pc = what != 0 ? recover : drain;
  }

  void supervisor_recovers(std::size_t worker) {
    lock();
    drain_ring(worker);
    sleeping().remove(worker);
    for (std::size_t slot = 0; slot < slots; ++slot) {
      if (parent_.in_slot[slot] != nobody) recover_slot(slot, parent_.in_slot[slot], worker);
    }
    state_.memory[at::parked + worker] = 0;  // nobody looks at a dead worker's line
    state_.memory[at::current + worker] = 0;
    mine_.pc = wake_all;
  }

  void recover_slot(std::size_t slot, std::size_t which, std::size_t worker) {
    auto& record = parent_.all[which];
    auto& word = words[at::slot + slot];
    const auto found = slot_protocol::read(word);
    if (found.generation() != record.generation) record.wrong = 2;
    if (found.owner() != worker + 1) return;
    if (found.state() == slot_state::done) {
      if (what_.left_out == mutation::recover_without_done_slots) return;
      collect(which);
      settle(which, outcome::value);
      return;
    }
    const bool begun = state_.memory[at::current + worker] == current_task(slot, found.generation());
    const bool again = !begun || record.retries > 0;
    if (begun && record.retries > 0) --record.retries;
    slot_protocol::seize(word, record.generation);
    leave_slot(which, what_.left_out != mutation::recover_without_waking_waiter);
    if (again && !(what_.left_out == mutation::recover_without_requeue && !begun)) {
      place(which);
    } else {
      settle(which, outcome::died);
    }
  }

  void supervisor_wakes_all() {
    for (std::size_t worker = 0; worker < what_.workers; ++worker) {
      const bool was_there = sleeping().remove(worker);
      if (was_there || what_.left_out != mutation::recover_without_wake_all) wake(worker);
    }
    mine_.pc = what_.left_out == mutation::recover_without_bell ? restart : arm;
  }

  state& state_;
  const std::size_t who_;
  const scenario& what_;
  local_values mine_;
  parent_data parent_;
  execution execution_;
};

// ---- what must hold

std::string check_task(const state& now, std::size_t which, const scenario& what) {
  const auto& record = now.parent.all[which];
  const auto executed = now.memory[at::executed + which];
  if (record.wrong == 1) return "a task got another's reply";
  if (record.wrong == 2) return "a slot changed hands behind its record";
  if (record.told > 1) return "a sink was told twice";
  if (record.how == outcome::value && executed == 0) return "a value of a task that nobody ran";
  if (record.how == outcome::cancelled && executed > 0) return "a task was withdrawn and run";
  if (record.how == outcome::died && executed == 0) return "a task paid that nobody had begun";
  if (executed > 1U + what.retries) return "a task was run more often than it may be";
  return {};
}

std::string check(const state& now, bool is_end, const scenario& what) {
  for (std::size_t which = 0; which < tasks; ++which) {
    if (auto wrong = check_task(now, which, what); !wrong.empty()) return wrong;
  }
  if (!is_end) return {};
  for (std::size_t client = 0; client < tasks; ++client) {
    if (now.each[client].locals.pc != client_finished) return "a client waits for ever";
  }
  for (const auto each : now.parent.in_slot) {
    if (each != nobody) return "a slot is never free again";
  }
  for (std::size_t worker = 0; worker < what.workers; ++worker) {
    const bool sleeps = now.each[first_worker + worker].asleep_on == at::parked + worker;
    if (sleeps && (now.memory[at::sleeping] >> worker & 1U) == 0) return "a worker sleeps that nobody will wake";
  }
  return {};
}

}  // namespace

verdict explore_tasks(const scenario& what, std::size_t most_states) {
  state first;
  first.crashes_left = what.crashes;
  first.memory[at::armed] = 1;
  if (what.clients < tasks) first.each[1].locals.pc = client_finished;
  if (what.workers < most_model_workers) first.each[first_worker + 1].gone = 1;
  const auto successors = [&](const state& from, const auto& emit) {
    bool goes_on = false;
    for (std::size_t who = 0; who < processes; ++who) {
      if (from.each[who].gone != 0) continue;
      state next = from;
      if (!step(next, who, what).take()) continue;
      goes_on = true;
      emit(next);
    }
    for (std::size_t worker = 0; worker < what.workers && from.crashes_left > 0; ++worker) {
      if (from.each[first_worker + worker].gone != 0) continue;
      state next = from;
      --next.crashes_left;
      next.each[first_worker + worker] = {};
      next.each[first_worker + worker].gone = 1;
      next.memory[at::dead] |= std::uint64_t{1} << worker;
      emit(next);
    }
    return goes_on;
  };
  return explore(first, most_states, successors,
                 [&](const state& now, bool is_end) { return check(now, is_end, what); });
}

}  // namespace muster::model
