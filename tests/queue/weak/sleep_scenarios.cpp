// SPDX-License-Identifier: BSL-1.0
// Falling asleep and being woken: the sets of those that sleep and of those that spin.
#include "scenarios.hpp"
#include "world.hpp"

namespace muster::weak {

namespace {

template <std::size_t self, int tasks>
void serve() {
  for (int served = 0; served < tasks;) {
    if (const auto task = claim(self)) {
      run(self, *task);
      ++served;
    } else {
      park(self);
    }
  }
}

void post_first() {
  put_task(0, 1, 0);
  wake_any();
}

scenario one_sleeper() { return {.name = "ASleeperIsWoken", .threads = {post_first, serve<0, 1>}}; }

template <std::size_t self>
void park_and_serve() {
  park(self);
  if (const auto task = claim(self)) run(self, *task);
}

scenario one_of_two_sleepers() {
  return {
      .name = "OneOfTwoSleepersIsWoken",
      .threads = {post_first, park_and_serve<0>, park_and_serve<1>},
      .may_sleep = 0b110,
      .check = [](const state& end) { return end.notes[1] == 1 ? nullptr : "everybody sleeps, and a task is there"; }};
}

// Two threads of the parent post under its lock, and wake after it: a wake may come late, in a later sleep.
template <std::size_t slot>
void post_to_any() {
  now().lock();
  const auto ticket = word_at(at::where).load(std::memory_order_relaxed);
  put_task(slot, 1, ticket);
  word_at(at::where).store(ticket + 1, std::memory_order_relaxed);
  now().unlock();
  wake_any();
}

scenario late_wake() {
  return {.name = "ALateWakeWakesFromALaterSleep", .threads = {post_to_any<0>, post_to_any<1>, serve<0, 2>}};
}

template <std::size_t slot>
void post_to_one() {
  now().lock();
  const auto ticket = word_at(at::where).load(std::memory_order_relaxed);
  put_task(slot, 1, ticket);
  word_at(at::where).store(ticket + 1, std::memory_order_relaxed);
  now().unlock();
  wake(0);
}

scenario late_wake_of_one() {
  return {.name = "ALateWakeOfOneWorkerWakesItFromALaterSleep",
          .threads = {post_to_one<0>, post_to_one<1>, serve<0, 2>}};
}

// ---- spinning

template <std::size_t self>
void serve_spinning() {
  for (;;) {
    if (const auto task = claim(self)) return run(self, *task);
    if (!spin(self)) park(self);
  }
}

void post_relying_on_spinners() {
  put_task(0, 1, 0);
  if (!somebody_spins()) wake_any();
}

scenario spinner() {
  return {.name = "ASpinnerThatStopsLooksOnceMore", .threads = {post_relying_on_spinners, serve_spinning<0>}};
}

// One task was posted while a worker span, so that nobody was woken for it; now another one comes. The spinner runs one
// of them, for ever as it were, or none: the sleeper must get the rest.
void spin_and_run_one() {
  in(site::sleep, [] {  // the second half of spin(): it has the token already
    static_cast<void>(has_work());
    spinning().remove(0);
    return 0;
  });
  const auto task = claim(0);
  if (!task) return;
  if (has_work() && !somebody_spins()) wake_any();
  run(0, *task);
}

// The second half of park(): it sleeps already.
void sleep_and_run_all() {
  in(site::sleep, [] {
    while (word_at(at::parked + 1).load(std::memory_order_acquire) == 1) now().futex_wait(at::parked + 1, 1);
    sleeping().remove(1);
    return 0;
  });
  for (auto task = claim(1); task; task = claim(1)) run(1, *task);
}

void post_second_relying_on_spinners() {
  put_task(1, 1, 1);
  if (!somebody_spins()) wake_any();
}

scenario chain() {
  return {
      .name = "ASpinnerThatFindsMoreWakesTheNext",
      .threads = {post_second_relying_on_spinners, spin_and_run_one, sleep_and_run_all},
      .may_sleep = 0b100,
      .prepare =
          [](state& first) {
            first.shared.locations[at::slot].initial = slot_word(1, 0, slot_flag::none, slot_state::queued).bits();
            first.shared.locations[at::lane_entry].initial = std::uint64_t{1} << 48U | std::uint64_t{1} << 16U;
            first.shared.locations[at::spinning].initial = 0b01;
            first.shared.locations[at::sleeping].initial = 0b10;
            first.shared.locations[at::parked + 1].initial = 1;
            first.shared.cells[0].value = 1;
          },
      .check = [](const state& end) { return end.notes[1] == 2 ? nullptr : "everybody sleeps, and a task is there"; }};
}

// ---- orders

void order_to_leave() {
  in(site::order, [] { return word_at(at::order).store(2, std::memory_order_release), 0; });
  wake(0);
}

void serve_until_told_to_leave() {
  for (;;) {
    if (is_told_to_leave(0)) return;
    if (const auto task = claim(0)) run(0, *task);
    if (!has_work()) park(0);
  }
}

scenario leaving() {
  return {.name = "ASleeperIsToldToLeave", .threads = {order_to_leave, post_first, serve_until_told_to_leave}};
}

// ---- a worker dies that owed another its wake

void wake_another() { wake_any(); }

void recover_the_waker() {
  now().await_death(1);
  sleeping().remove(1);
  wake_all();
}

scenario dead_waker() {
  return {.name = "ASleeperIsWokenThoughItsWakerDied",
          .threads = {post_first, wake_another, recover_the_waker, park_and_serve<0>},
          .may_die = 0b0010};
}

}  // namespace

std::vector<scenario> sleep_scenarios() {
  return {one_sleeper(), one_of_two_sleepers(), late_wake(), late_wake_of_one(), spinner(), chain(),
          leaving(),     dead_waker()};
}

}  // namespace muster::weak
