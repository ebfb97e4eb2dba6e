// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a state of the task model consists of.

#include <array>
#include <cstdint>
#include <span>

#include <muster/memory/wait/idle_set.hpp>
#include <muster/queue/completion_ring.hpp>
#include <muster/queue/lane.hpp>

#include "execution.hpp"
#include "task_model.hpp"

namespace muster::model {

inline constexpr std::size_t slots = 2;
inline constexpr std::size_t tasks = 2;
inline constexpr std::uint64_t failed_reply = 0x100;  // beside the task that it is of
inline constexpr std::size_t most_model_workers = 2;
inline constexpr std::size_t entries = 4;  // of the lane, and of each ring

// ---- the words

namespace at {
inline constexpr std::size_t slot = 0;
inline constexpr std::size_t lane_head = slot + slots;
inline constexpr std::size_t lane_entries = lane_head + 1;
inline constexpr std::size_t sleeping = lane_entries + entries;
inline constexpr std::size_t parked = sleeping + 1;
inline constexpr std::size_t current = parked + most_model_workers;
inline constexpr std::size_t ring_tail = current + most_model_workers;
inline constexpr std::size_t ring_entries = ring_tail + most_model_workers;
inline constexpr std::size_t armed = ring_entries + most_model_workers * entries;
inline constexpr std::size_t bell = armed + 1;
inline constexpr std::size_t sleeper = bell + 1;       // of each task: somebody may sleep on its slot
inline constexpr std::size_t where = sleeper + tasks;  // of each task: generation, slot, phase
// What follows is no word that the product has.
inline constexpr std::size_t argument = where + tasks;  // of each slot: which task
inline constexpr std::size_t reply = argument + slots;
inline constexpr std::size_t executed = reply + slots;  // of each task: how often; for the checks alone
inline constexpr std::size_t lock = executed + tasks;   // of the parent: process + 1
inline constexpr std::size_t dead = lock + 1;           // set of workers whose death nobody has dealt with
inline constexpr std::size_t killed = dead + 1;         // set of workers that the supervisor has killed
inline constexpr std::size_t end = killed + 1;
}  // namespace at

// ---- what operations depend on: one bit each

namespace resource {
inline constexpr std::uint64_t bit(std::size_t index) { return std::uint64_t{1} << index; }
inline constexpr std::uint64_t slot(std::size_t index) { return bit(index); }
inline constexpr std::uint64_t lane_head = bit(2);  // moved by workers; who reads it late reads it again
inline constexpr std::uint64_t entry(std::size_t index) { return bit(4 + index); }
inline constexpr std::uint64_t all_entries = entry(4) - entry(0);
inline constexpr std::uint64_t all_sleeping = bit(8) | bit(9);  // a bit for each worker
inline constexpr std::uint64_t parked(std::size_t worker) { return bit(10 + worker); }
inline constexpr std::uint64_t current(std::size_t worker) { return bit(12 + worker); }
inline constexpr std::uint64_t ring(std::size_t worker) { return bit(14 + worker); }
inline constexpr std::uint64_t all_rings = ring(0) | ring(1);
inline constexpr std::uint64_t armed = bit(16);
inline constexpr std::uint64_t bell = bit(17);
inline constexpr std::uint64_t wake = bit(18);  // nobody but the one who wakes depends on when
inline constexpr std::uint64_t where(std::size_t task) { return bit(20 + task); }
inline constexpr std::uint64_t lock = bit(22);
inline constexpr std::uint64_t kill(std::size_t worker) { return bit(23 + worker); }
inline constexpr std::uint64_t event = bit(25);  // of the supervisor alone
}  // namespace resource

inline std::array<word, at::argument> make_words() {
  std::array<word, at::argument> made;
  const auto name = [&](std::size_t index, std::uint64_t what, word_kind kind = word_kind::plain) {
    made[index] = word(index, what, kind, entries);
  };
  name(at::lane_head, resource::lane_head, word_kind::head);
  name(at::sleeping, resource::all_sleeping, word_kind::set);
  name(at::armed, resource::armed, word_kind::flag);
  name(at::bell, resource::bell);
  for (std::size_t slot = 0; slot < slots; ++slot) name(at::slot + slot, resource::slot(slot), word_kind::slot);
  for (std::size_t entry = 0; entry < entries; ++entry) {
    name(at::lane_entries + entry, resource::entry(entry), word_kind::entry);
  }
  for (std::size_t worker = 0; worker < most_model_workers; ++worker) {
    name(at::parked + worker, resource::parked(worker), word_kind::parked);
    name(at::current + worker, resource::current(worker));
    name(at::ring_tail + worker, resource::ring(worker));
    // Nobody reads an entry before the tail says that it is there.
    for (std::size_t entry = 0; entry < entries; ++entry) name(at::ring_entries + worker * entries + entry, 0);
  }
  for (std::size_t task = 0; task < tasks; ++task) {
    name(at::sleeper + task, 0, word_kind::unread);
    name(at::where + task, resource::where(task), word_kind::where);
  }
  return made;
}
inline std::array<word, at::argument> words = make_words();

using model_lane = basic_lane<word>;
using model_ring = basic_completion_ring<word>;
using model_set = basic_idle_set<word>;

inline model_lane lane() { return {words[at::lane_head], std::span(words).subspan(at::lane_entries, entries)}; }
inline model_ring ring(std::size_t worker) {
  return {words[at::ring_tail + worker], std::span(words).subspan(at::ring_entries + worker * entries, entries)};
}
inline model_set sleeping() { return model_set(std::span(words).subspan(at::sleeping, 1)); }

/// What a worker's `current` holds while it runs a task.
constexpr std::uint64_t current_task(std::size_t slot, std::uint64_t generation) {
  return std::uint64_t{1} << 63U | std::uint64_t{slot} << 32U | (generation & 0xffffffffU);
}

// ---- private data

enum class phase : std::uint8_t { unused, waiting, posted, settled, taken };
enum class outcome : std::uint8_t { none, value, error, died, cancelled, timeout };

/// What must never happen. A task that it happened to keeps it.
enum class wrong : std::uint8_t {
  none,
  foreign_reply,
  slot_changed_hands,
  settled_twice,
  value_of_nothing,
  run_after_its_end,
  run_too_often,
  paid_without_having_begun,
  lost_a_reply,
  paid_for_anothers_timeout,
  timed_out_as_another,
  timed_out_before_it_began,
};

struct task {
  std::uint64_t generation = 0;
  phase where = phase::unused;
  std::uint8_t slot = 0;
  outcome how = outcome::none;
  std::uint8_t retries = 0;
  std::uint8_t told = 0;
  wrong found = wrong::none;
  std::uint8_t overdue = 0;  // its worker is about to be killed for it
  std::uint8_t padding = 0;
};

// The parent's private memory, changed under its lock.
struct parent_data {
  std::array<task, tasks> all;
  std::array<std::uint64_t, slots> generations{};
  std::uint64_t lane_tail = 0;
  std::array<std::uint8_t, most_model_workers> ring_head{};
  std::array<std::uint8_t, slots> in_slot{nobody, nobody};
  std::array<std::uint8_t, most_model_workers> doomed_for{};  // task + 1; for the checks alone
  std::array<std::uint8_t, 2> padding{};
};

struct local_values {
  std::uint64_t word = 0;  // claimed, or asked; of the supervisor: what comes after waking
  std::uint8_t pc = 0;
  std::uint8_t slept = 0;
  std::uint8_t slot = 0;    // of the supervisor: how many tasks it has posted again and woken nobody for
  std::uint8_t waking = 0;  // worker + 1 that was taken out of the set of sleepers
  std::uint8_t dead = 0;    // worker + 1 that is recovered
  std::uint8_t index = 0;   // of a loop
  std::uint8_t tail = 0;    // of a ring
  std::uint8_t after = 0;   // pc
};

using process = process_state<local_values>;

// Clients, then the supervisor, then workers.
inline constexpr std::size_t supervisor = tasks;
inline constexpr std::size_t first_worker = supervisor + 1;
inline constexpr std::size_t processes = first_worker + most_model_workers;

struct state {
  std::array<std::uint64_t, at::end> memory{};
  parent_data parent;
  std::array<process, processes> each;
  std::array<std::uint8_t, most_model_workers> deaths{};
  std::array<std::uint8_t, most_model_workers> died_by_kill{};
  std::uint8_t crashes_left = 0;
  std::uint8_t timeouts_left = 0;
  std::array<std::uint8_t, 2> padding{};
};

enum client_pc : std::uint8_t { post, wake_one, wake_store, cancel, wait, has_moved, take_reply, client_finished };
enum worker_pc : std::uint8_t {
  look,
  chain,
  chain_store,
  begin,
  complete,
  wake_waiter,
  push_ring,
  ring_bell,
  leave,
  await_death,
  park
};
enum supervisor_pc : std::uint8_t {
  event,
  doom,
  send_kill,
  drain_first,
  recover_set,
  recover_slots,
  wake_all,
  arm,
  drain_rings,
  drain_entries,
  wake_fed,
  wake_fed_store,
  restart
};

}  // namespace muster::model
