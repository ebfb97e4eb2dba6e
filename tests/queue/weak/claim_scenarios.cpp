// SPDX-License-Identifier: BSL-1.0
// Claiming, completing, withdrawing, and using slots and lane entries again.
#include "scenarios.hpp"
#include "world.hpp"

namespace muster::weak {

namespace {

constexpr std::uint64_t word_of(std::uint64_t generation, unsigned owner, slot_state how) {
  return slot_word(generation, owner, slot_flag::none, how).bits();
}

constexpr std::uint64_t hint_of(std::uint64_t lap, std::uint64_t generation, std::uint64_t slot) {
  return lap << 48U | generation << 16U | slot;
}

template <std::size_t self>
void claim_all() {
  for (auto task = claim(self); task; task = claim(self)) run(self, *task);
}

template <std::size_t self>
void begin_all() {
  for (auto task = claim(self); task; task = claim(self)) begin(*task);
}

template <std::size_t self>
void begin_one() {
  if (const auto task = claim(self)) begin(*task);
}

// A hint that was used up, though its task was not claimed and is still there, is a lost task.
const char* check_first_task(const state& end) {
  if (end.notes[1] > 1) return "a task was run twice";
  const bool is_queued = slot_word(end.shared.last_value(at::slot)).state() == slot_state::queued;
  if (end.shared.last_value(at::lane_head) > 0 && is_queued) return "a hint was used up, and its task left";
  return nullptr;
}

scenario claimed_once() {
  return {.name = "ATaskIsClaimedOnce",
          .threads = {[] { put_task(0, 1, 0); }, claim_all<0>, claim_all<1>},
          .check = check_first_task};
}

// The slot goes through two more generations under a worker that may still hold the hint to the first.
void use_slot_twice() {
  put_task(0, 2, 1);
  const auto found = read(0);
  if (found.state() != slot_state::done) return;
  if (reply[0].read() != 2) now().fail("a task got another's reply");
  retire(0, 2);
  if (in(site::room, [] { return lane().has_room(2); })) put_task(0, 3, 2);
}

const char* check_reuse(const state& end) {
  if (end.notes[1] != 0 || end.notes[2] > 1 || end.notes[3] > 1) return "a task was run again";
  const slot_word last(end.shared.last_value(at::slot));
  if (last.state() == slot_state::queued && end.shared.last_value(at::lane_head) >= last.generation()) {
    return "a hint was used up, and its task left";
  }
  return nullptr;
}

scenario used_again() {
  return {.name = "ASlotAndItsHintAreUsedAgain",
          .threads = {use_slot_twice, claim_all<0>, begin_one<1>},
          .prepare =
              [](state& first) {
                first.shared.locations[at::slot].initial = word_of(1, 0, slot_state::free);
                first.shared.locations[at::lane_entry].initial = hint_of(1, 1, 0);
              },
          .check = check_reuse};
}

// An entry is put over one that is used up.
void fill_lane_beyond_its_end() {
  put_task(0, 1, 0);
  put_task(1, 1, 1);
  if (in(site::room, [] { return lane().has_room(2); })) put_task(2, 1, 2);
}

const char* check_wrap(const state& end) {
  const auto head = end.shared.last_value(at::lane_head);
  for (std::size_t slot = 0; slot < at::slots; ++slot) {
    const slot_word last(end.shared.last_value(at::slot + slot));
    if (last.state() == slot_state::queued && head > slot) return "a hint was used up, and its task left";
  }
  return end.notes[1] <= at::slots ? nullptr : "a task was run twice";
}

scenario lane_wraps() {
  return {.name = "TheLaneIsFilledBeyondItsEnd",
          .threads = {fill_lane_beyond_its_end, begin_all<0>, begin_one<1>},
          .check = check_wrap};
}

// A worker that is late with moving the head does not move it back, over entries that are not there any more. The
// hints are those of tasks long gone.
template <int times>
void use_up() {
  for (int time = 0; time < times; ++time) {
    const auto entry = in(site::look, [] { return lane().look(); });
    if (entry.some) in(site::advance, [&] { return lane().advance(entry), 0; });
  }
}

void put_hints() {
  for (std::uint64_t ticket = at::entries; ticket < at::entries + 2; ++ticket) {
    if (!in(site::room, [&] { return lane().has_room(ticket); })) return;
    in(site::put, [&] { return lane().put(ticket, {}), 0; });
    now().count(0);
  }
}

scenario head_moves_on() {
  return {.name = "TheHeadOfALaneDoesNotMoveBack",
          .threads = {put_hints, use_up<1>, use_up<2>},
          .prepare =
              [](state& first) {
                for (std::size_t entry = 0; entry < at::entries; ++entry) {
                  first.shared.locations[at::lane_entry + entry].initial = hint_of(1, 0, 0);
                }
              },
          .check =
              [](const state& end) {
                const auto head = end.shared.last_value(at::lane_head);
                return end.notes[0] > head ? "the head is further behind than the lane is long" : nullptr;
              }};
}

// What is withdrawn makes room for another task in the same slot.
void withdraw_and_use_again() {
  put_task(0, 1, 0);
  if (revoke(0, 1)) {
    now().count(7);
    put_task(0, 2, 1);
  }
}

const char* check_withdrawn(const state& end) {
  if (end.notes[7] + end.notes[1] > 1) return "a task was withdrawn and run";
  if (end.notes[2] > 1) return "a task was run twice";
  const slot_word last(end.shared.last_value(at::slot));
  if (last.state() == slot_state::queued && end.shared.last_value(at::lane_head) >= last.generation()) {
    return "a hint was used up, and its task left";
  }
  return nullptr;
}

scenario withdrawn() {
  return {.name = "ATaskIsWithdrawnOrClaimed",
          .threads = {withdraw_and_use_again, claim_all<0>, begin_one<1>},
          .check = check_withdrawn};
}

// ---- a worker dies; recovery posts its task again

template <std::size_t self>
void claim_or_park() {
  for (;;) {
    if (const auto task = claim(self)) {
      run(self, *task);
      return;
    }
    park(self);
  }
}

void put_back_task() {
  now().await_death(1);
  sleeping().remove(0);
  const auto found = read(0);
  if (found.owner() == 1 && found.state() == slot_state::claimed) {
    seize(0, 1);
    put_task(0, 2, 1);
  }
  if (found.state() == slot_state::done && reply[0].read() != 1) now().fail("a task got another's reply");
  wake_all();
}

const char* check_recovered(const state& end) {
  const slot_word last(end.shared.last_value(at::slot));
  return last.state() == slot_state::done ? nullptr : "a task is left";
}

scenario recovered() {
  return {.name = "TheTaskOfADeadWorkerIsRunByAnother",
          .threads = {put_back_task, claim_or_park<0>, claim_or_park<1>},
          .may_sleep = 0b110,
          .may_die = 0b010,
          .prepare =
              [](state& first) {
                first.shared.locations[at::slot].initial = word_of(1, 0, slot_state::queued);
                first.shared.locations[at::lane_entry].initial = hint_of(1, 1, 0);
                first.shared.cells[0].value = 1;
              },
          .check = check_recovered};
}

}  // namespace

std::vector<scenario> claim_scenarios() {
  return {claimed_once(), used_again(), lane_wraps(), head_moves_on(), withdrawn(), recovered()};
}

}  // namespace muster::weak
