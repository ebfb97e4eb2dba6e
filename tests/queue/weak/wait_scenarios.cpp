// SPDX-License-Identifier: BSL-1.0
// Waiting for a task's end on its slot's word, while it ends, is withdrawn, moved, or its slot given away.
#include "scenarios.hpp"
#include "world.hpp"

namespace muster::weak {

namespace {

// The one record of these scenarios, in the slot 0 at first; guarded by the lock.
enum phase : std::uint64_t { posted, settled };
constexpr plain generation_of(first_free_cell);
constexpr plain outcome_of(first_free_cell + 1);  // what the reply was; 100: withdrawn, 101: died

constexpr std::uint64_t location_of(std::uint64_t which, phase how) { return which << 8U | how; }
phase phase_of(std::uint64_t where) { return static_cast<phase>(where & 0xffU); }

std::uint64_t where() { return word_at(at::where).load(std::memory_order_acquire); }
void move_to(std::uint64_t location) { word_at(at::where).store(location, std::memory_order_release); }

void prepare_posted(state& first, slot_state how, unsigned owner) {
  first.shared.locations[at::slot].initial = slot_word(1, owner, slot_flag::none, how).bits();
  first.shared.locations[at::where].initial = location_of(1, posted);
  first.shared.cells[0].value = 1;
  first.shared.cells[first_free_cell].value = 1;
}
void prepare_claimed(state& first) { prepare_posted(first, slot_state::claimed, 1); }
void prepare_queued(state& first) {
  prepare_posted(first, slot_state::queued, 0);
  first.shared.locations[at::lane_entry].initial = std::uint64_t{1} << 48U | std::uint64_t{1} << 16U;
}

// ---- the parent's procedures, as dispatcher's

bool has_changed(const slot_word& found, std::uint64_t wanted) {
  return found.generation() != wanted || (found.state() != slot_state::queued && found.state() != slot_state::claimed);
}

void leave_slot() {
  if (word_at(at::sleeper).load(std::memory_order_relaxed) != 0) now().futex_wake(at::slot);
}

void collect() {
  const auto which = generation_of.read();
  if (read(0).state() != slot_state::done) now().fail("a slot that was done is not done any more");
  if (reply[0].read() != which) now().fail("a task got another's reply");
  outcome_of.write(which);
  retire(0, which);
  leave_slot();
}

void settle(std::uint64_t how) {
  outcome_of.write(how);
  move_to(location_of(0, settled));
}

void take() {
  now().lock();
  if (phase_of(where()) == posted) collect();
  const auto how = outcome_of.read();
  now().unlock();
  if (how == 0) now().fail("a task has ended without an outcome");
}

bool sleep_on_slot(std::uint64_t which) {
  auto& word = word_at(at::slot);
  word_at(at::sleeper).store(1, std::memory_order_relaxed);
  const auto found = in(site::request, [&] { return slot_protocol::request(word, slot_flag::waiter); });
  if (has_changed(found, which)) return false;
  now().futex_wait(at::slot, found.bits() | slot_word::flag_bits(slot_flag::waiter));
  return true;
}

void wait() {
  for (;;) {
    const auto place = where();
    if (phase_of(place) == settled) return take();
    const auto which = place >> 8U;
    const auto found = read(0);
    if (found.generation() == which && found.state() == slot_state::done) return take();
    if (has_changed(found, which)) {  // check_slot
      now().lock();
      now().unlock();
    } else {
      sleep_on_slot(which);
    }
  }
}

// ---- scenarios

void complete_first() {
  if (argument[0].read() != 1) now().fail("a worker sees another task's arguments");
  reply[0].write(1);
  finish(0, {.slot = 0, .word = slot_word(1, 1, slot_flag::none, slot_state::claimed)});
}

scenario completed() {
  return {.name = "AWaiterIsWokenByTheCompletion", .threads = {wait, complete_first}, .prepare = prepare_claimed};
}

void recover_request() {
  now().await_death(1);
  now().lock();
  if (phase_of(where()) == posted) {
    const auto found = read(0);
    if (found.owner() == 1 && found.state() == slot_state::done) {
      collect();
      settle(1);
    } else if (found.owner() == 1 && found.state() == slot_state::claimed) {
      seize(0, 1);
      leave_slot();
      settle(101);
    }
  }
  now().unlock();
}

scenario died() {
  return {.name = "AWaiterIsWokenWhenTheWorkerDies",
          .threads = {wait, complete_first, recover_request},
          .may_die = 0b010,
          .prepare = prepare_claimed};
}

// The task is posted again, into the same slot, by which its waiter sleeps.
void recover_by_posting_again() {
  now().await_death(1);
  now().lock();
  const auto found = read(0);
  if (phase_of(where()) == posted && found.owner() == 1 && found.state() == slot_state::claimed) {
    seize(0, 1);
    leave_slot();
    generation_of.write(2);
    move_to(location_of(2, posted));
    put_task(0, 2, 0);
  } else if (phase_of(where()) == posted && found.owner() == 1 && found.state() == slot_state::done) {
    collect();
    settle(1);
  }
  now().unlock();
  if (const auto task = claim(1)) run(1, *task);  // another worker's part, by the same thread
}

scenario posted_again() {
  return {.name = "AWaiterFollowsATaskThatIsPostedAgain",
          .threads = {wait, complete_first, recover_by_posting_again},
          .may_die = 0b0010,
          .prepare = prepare_claimed};
}

void cancel() {
  now().lock();
  if (phase_of(where()) == posted) {
    if (revoke(0, 1)) {
      leave_slot();
      settle(100);
    } else if (read(0).state() == slot_state::claimed) {
      in(site::request, [] { return slot_protocol::request(word_at(at::slot), slot_flag::stop); });
    }
  }
  now().unlock();
}

void claim_and_run() {
  if (const auto task = claim(0)) run(0, *task);
}

scenario cancelled() {
  return {.name = "AWaiterIsWokenWhenTheTaskIsWithdrawn",
          .threads = {wait, cancel, claim_and_run},
          .prepare = prepare_queued,
          .check = [](const state& end) {
            const bool withdrawn = end.shared.cells[first_free_cell + 1].value == 100;
            return withdrawn && end.notes[1] != 0 ? "a task was withdrawn and run" : nullptr;
          }};
}

// Somebody else takes the reply out and gives the slot to another task, while the waiter asks late.
void drain_and_use_again() {
  in(site::request, [] { return slot_protocol::request(word_at(at::slot), slot_flag::notify); });
  now().lock();
  if (phase_of(where()) == posted && read(0).state() == slot_state::done) {
    collect();
    settle(1);
    put_task(0, 2, 0);
  }
  now().unlock();
}

scenario drained() {
  return {.name = "AWaiterThatAsksLateIsNotLeftOnAnotherTask",
          .threads = {wait, drain_and_use_again, complete_first},
          .prepare = prepare_claimed};
}

}  // namespace

std::vector<scenario> wait_scenarios() { return {completed(), died(), posted_again(), cancelled(), drained()}; }

}  // namespace muster::weak
