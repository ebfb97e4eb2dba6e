// SPDX-License-Identifier: BSL-1.0
#pragma once

// What scenarios are made of: a small board in the checker's memory, and the procedures of worker and parent over the
// product's templates.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/memory/wait/idle_set.hpp>
#include <muster/queue/completion_ring.hpp>
#include <muster/queue/lane.hpp>
#include <muster/queue/ring_news.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "checker.hpp"

namespace muster::weak {

namespace at {
inline constexpr std::size_t slots = 3;
inline constexpr std::size_t workers = 2;
inline constexpr std::size_t entries = 2;
inline constexpr std::size_t slot = 0;
inline constexpr std::size_t lane_head = slot + slots;
inline constexpr std::size_t lane_entry = lane_head + 1;
inline constexpr std::size_t sleeping = lane_entry + entries;
inline constexpr std::size_t spinning = sleeping + 1;
inline constexpr std::size_t parked = spinning + 1;
inline constexpr std::size_t order = parked + workers;
inline constexpr std::size_t ring_tail = order + workers;
inline constexpr std::size_t ring_entry = ring_tail + workers;
inline constexpr std::size_t news = ring_entry + workers * entries;
inline constexpr std::size_t armed = news + 1;
inline constexpr std::size_t sleeper = armed + 1;  // of the one record: its waiter may sleep on the slot
inline constexpr std::size_t where = sleeper + 1;  // of the one record
inline constexpr std::size_t end = where + 1;
}  // namespace at
static_assert(at::end <= most_locations);

inline constexpr plain argument[at::slots] = {plain(0), plain(1), plain(2)};
inline constexpr plain reply[at::slots] = {plain(3), plain(4), plain(5)};
inline constexpr std::size_t first_free_cell = 6;

[[nodiscard]] word& word_at(std::size_t location);
[[nodiscard]] basic_lane<word> lane();
[[nodiscard]] basic_completion_ring<word> ring(std::size_t worker);
[[nodiscard]] basic_ring_news<word> news();
[[nodiscard]] basic_idle_set<word> sleeping();
[[nodiscard]] basic_idle_set<word> spinning();

/// Calls `f` as a part of that procedure.
template <class F>
auto in(site which, F f) {
  const auto before = now().at(which);
  const auto result = f();
  now().at(before);
  return result;
}

// ---- worker

struct claimed_task {
  std::size_t slot = 0;
  slot_word word;
};

[[nodiscard]] std::optional<claimed_task> claim(std::size_t self);
/// Looks at the arguments, writes the reply, completes, and tells whoever asked. Counts the run under the generation.
void run(std::size_t self, const claimed_task& task);
/// Looks at the arguments and counts, no more: it never ends.
void begin(const claimed_task& task);
/// What comes after the reply was written.
void finish(std::size_t self, const claimed_task& task);
[[nodiscard]] bool has_work();
[[nodiscard]] bool is_told_to_leave(std::size_t self);
void park(std::size_t self);
/// Spins for one look; true when it found something.
[[nodiscard]] bool spin(std::size_t self);
void notify(std::size_t self, const claimed_task& task);
/// As notify, of a board with so many workers that there are news.
void notify_and_tell(std::size_t self, const claimed_task& task);

// ---- parent

[[nodiscard]] slot_word read(std::size_t slot);
/// Writes arguments and hint.
void put_task(std::size_t slot, std::uint64_t generation, std::uint64_t ticket, slot_flag flags = slot_flag::none);
bool wake(std::size_t worker);
bool wake_any();
void wake_all();
[[nodiscard]] bool somebody_spins();
void retire(std::size_t slot, std::uint64_t generation);
slot_word seize(std::size_t slot, std::uint64_t generation);
[[nodiscard]] bool revoke(std::size_t slot, std::uint64_t generation);
void arm();

}  // namespace muster::weak
