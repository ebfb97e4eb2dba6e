// SPDX-License-Identifier: BSL-1.0
#include "world.hpp"

#include <muster/memory/wait/parking.hpp>
#include <muster/queue/bell.hpp>

namespace muster::weak {

namespace {

constexpr part part_of(std::size_t location) {
  if (location < at::lane_head) return part::slot;
  if (location < at::lane_entry) return part::lane_head;
  if (location < at::sleeping) return part::lane_entry;
  if (location < at::spinning) return part::sleeping;
  if (location < at::parked) return part::spinning;
  if (location < at::order) return part::parked;
  if (location < at::ring_tail) return part::order;
  if (location < at::ring_entry) return part::ring_tail;
  if (location < at::news) return part::ring_entry;
  if (location < at::armed) return part::news;
  return location < at::sleeper ? part::armed : part::record;
}

std::array<word, at::end> make_words() {
  std::array<word, at::end> made;
  for (std::size_t location = 0; location < at::end; ++location) made[location] = word(location, part_of(location));
  return made;
}
std::array<word, at::end> all_words = make_words();

void rouse(const word& parked) { now().futex_wake(parked.location()); }

}  // namespace

word& word_at(std::size_t location) { return all_words[location]; }
basic_lane<word> lane() {
  return {all_words[at::lane_head], std::span(all_words).subspan(at::lane_entry, at::entries)};
}
basic_completion_ring<word> ring(std::size_t worker) {
  return {all_words[at::ring_tail + worker],
          std::span(all_words).subspan(at::ring_entry + worker * at::entries, at::entries)};
}
basic_ring_news<word> news() { return basic_ring_news<word>(std::span(all_words).subspan(at::news, 1)); }
basic_idle_set<word> sleeping() { return basic_idle_set<word>(std::span(all_words).subspan(at::sleeping, 1)); }
basic_idle_set<word> spinning() { return basic_idle_set<word>(std::span(all_words).subspan(at::spinning, 1)); }

// ---- worker, as worker_end

std::optional<claimed_task> claim(std::size_t self) {
  for (;;) {
    const auto entry = in(site::look, [] { return lane().look(); });
    if (!entry.some) return std::nullopt;
    const std::size_t slot = entry.hint.slot;
    const auto won = in(site::claim, [&] {
      return slot_protocol::try_claim(all_words[at::slot + slot], entry.hint.generation,
                                      static_cast<unsigned>(self) + 1);
    });
    in(site::advance, [&] { return lane().advance(entry), 0; });
    if (won) return claimed_task{.slot = slot, .word = *won};
  }
}

void begin(const claimed_task& task) {
  if (argument[task.slot].read() != task.word.generation()) now().fail("a worker sees another task's arguments");
  now().count(task.word.generation());
}

void run(std::size_t self, const claimed_task& task) {
  begin(task);
  reply[task.slot].write(task.word.generation());
  finish(self, task);
}

void finish(std::size_t self, const claimed_task& task) {
  auto& word = all_words[at::slot + task.slot];
  const auto asked = in(site::complete, [&] { return slot_protocol::complete(word, task.word, slot_flag::none); });
  if (asked.has(slot_flag::waiter)) now().futex_wake(word.location());
  if (asked.has(slot_flag::notify)) notify(self, task);
}

namespace {

void push(std::size_t self, const claimed_task& task) {
  in(site::push, [&] {
    ring(self).push({.generation = task.word.short_generation(), .slot = static_cast<std::uint16_t>(task.slot)});
    return 0;
  });
}

void ring_bell() {
  if (in(site::bell, [] { return bell::take_armed(all_words[at::armed]); }) != 0) now().ring();
}

}  // namespace

void notify(std::size_t self, const claimed_task& task) {
  push(self, task);
  ring_bell();
}

void notify_and_tell(std::size_t self, const claimed_task& task) {
  push(self, task);
  in(site::push, [&] { return news().tell(self), 0; });
  ring_bell();
}

bool has_work() {
  return in(site::look, [] { return lane().has_entry(); });
}

bool is_told_to_leave(std::size_t self) {
  return in(site::order, [&] { return all_words[at::order + self].load(std::memory_order_acquire) != 0; });
}

void park(std::size_t self) {
  in(site::sleep, [&] {
    auto& parked = all_words[at::parked + self];
    parking::park(
        parked, sleeping(), self, [&] { return has_work() || is_told_to_leave(self); },
        [&] { now().futex_wait(parked.location(), 1); });
    return 0;
  });
}

bool spin(std::size_t self) {
  return in(site::sleep, [&] {
    return parking::spin_alone(spinning(), self, [&] { return has_work() || is_told_to_leave(self); });
  });
}

// ---- parent, as dispatcher and board

slot_word read(std::size_t slot) {
  return in(site::read, [&] { return slot_protocol::read(all_words[at::slot + slot]); });
}

void put_task(std::size_t slot, std::uint64_t generation, std::uint64_t ticket, slot_flag flags) {
  argument[slot].write(generation);
  in(site::publish, [&] { return slot_protocol::publish(all_words[at::slot + slot], generation, flags), 0; });
  in(site::put, [&] {
    lane().put(ticket,
               {.generation = static_cast<std::uint32_t>(generation), .slot = static_cast<std::uint16_t>(slot)});
    return 0;
  });
}

bool wake(std::size_t worker) {
  return in(site::wake, [&] { return parking::wake(all_words[at::parked + worker], sleeping(), worker, rouse); });
}

bool wake_any() {
  return in(site::wake, [] {
    return parking::wake_any(sleeping(), [](std::size_t worker) { return &all_words[at::parked + worker]; }, rouse);
  });
}

void wake_all() {
  in(site::wake, [] {
    for (std::size_t worker = 0; worker < at::workers; ++worker) {
      sleeping().remove(worker);
      parking::unpark(all_words[at::parked + worker], rouse);
    }
    return 0;
  });
}

bool somebody_spins() {
  return in(site::wake, [] { return spinning().check_any(); });
}

void retire(std::size_t slot, std::uint64_t generation) {
  in(site::retire, [&] { return slot_protocol::retire(all_words[at::slot + slot], generation), 0; });
}

slot_word seize(std::size_t slot, std::uint64_t generation) {
  return in(site::seize, [&] { return slot_protocol::seize(all_words[at::slot + slot], generation); });
}

bool revoke(std::size_t slot, std::uint64_t generation) {
  return in(site::revoke, [&] { return slot_protocol::try_revoke(all_words[at::slot + slot], generation); });
}

void arm() {
  in(site::bell, [] { return bell::arm(all_words[at::armed]), 0; });
}

}  // namespace muster::weak
