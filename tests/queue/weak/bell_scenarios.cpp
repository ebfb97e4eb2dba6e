// SPDX-License-Identifier: BSL-1.0
// Completions that somebody wants to be told of: rings, and the bell on which the parent sleeps.
#include <muster/queue/bell.hpp>

#include "scenarios.hpp"
#include "world.hpp"

namespace muster::weak {

namespace {

// What one drain found. Entries carry their position plus one as the generation.
struct drained {
  std::uint64_t head = 0;
  std::uint64_t seen = 0;  // set of generations
};

// As dispatcher::drain_ring: once entries may have been overwritten it looks at all slots, and so finds everything that
// was completed before.
template <std::size_t worker>
void drain(drained& so_far) {
  in(site::drain, [&] {
    const auto tail = ring(worker).tail();
    const auto first = so_far.head;
    auto head = tail - first >= at::entries ? tail : first;
    for (; head != tail; ++head) so_far.seen |= 1U << ring(worker).read(head).generation;
    if (ring(worker).tail() - first >= at::entries) {
      for (std::uint64_t generation = 1; generation <= tail; ++generation) so_far.seen |= 1U << generation;
    }
    so_far.head = tail;
    return 0;
  });
}

// As dispatcher::drain, of a board with news.
void drain_told(std::array<drained, at::workers>& so_far) {
  const auto told = in(site::drain, [] { return news().take(0); });
  if ((told & 1U) != 0) drain<0>(so_far[0]);
  if ((told & 2U) != 0) drain<1>(so_far[1]);
}

void check_nothing_missed(const drained& so_far) {
  for (std::uint64_t generation = 1; generation <= so_far.head; ++generation) {
    if ((so_far.seen >> generation & 1U) == 0) now().fail("a completion was overwritten, and nobody looked");
  }
}

template <std::size_t worker, unsigned tasks, auto tell = notify>
void complete_tasks() {
  for (unsigned generation = 1; generation <= tasks; ++generation) {
    tell(worker, {.slot = 0, .word = slot_word(generation, 1, slot_flag::none, slot_state::claimed)});
  }
}

// The supervisor: drains, arms, drains once more, sleeps.
template <unsigned from_first, unsigned from_second>
void await_all() {
  drained first;
  drained second;
  for (;;) {
    arm();
    drain<0>(first);
    if (from_second != 0) drain<1>(second);
    check_nothing_missed(first);
    if (first.head == from_first && second.head == from_second) return;
    now().await_bell();
  }
}

template <unsigned from_first, unsigned from_second>
void await_news() {
  std::array<drained, at::workers> so_far;
  for (;;) {
    arm();
    drain_told(so_far);
    if (so_far[0].head == from_first && so_far[1].head == from_second) return;
    now().await_bell();
  }
}

scenario news_of_one() {
  return {.name = "NewsOfARingAreReadBeforeTheParentSleeps",
          .threads = {await_news<2, 0>, complete_tasks<0, 2, notify_and_tell>}};
}

scenario news_of_two() {
  return {.name = "NewsOfTwoRingsAreReadBeforeTheParentSleeps",
          .threads = {await_news<1, 1>, complete_tasks<0, 1, notify_and_tell>, complete_tasks<1, 1, notify_and_tell>}};
}

scenario one_rings() { return {.name = "ACompletionRingsTheBell", .threads = {await_all<1, 0>, complete_tasks<0, 1>}}; }

scenario two_in_a_row() {
  return {.name = "CompletionsInARowRingTheBell", .threads = {await_all<2, 0>, complete_tasks<0, 2>}};
}

scenario two_ring() {
  return {.name = "TwoWorkersRaceForTheBell", .threads = {await_all<1, 1>, complete_tasks<0, 1>, complete_tasks<1, 1>}};
}

// A thread of the parent that drains by itself silences the bell for a while. As dispatcher's begin_help, end_help and
// arm_bell; what is drained and who helps is guarded by the lock.
constexpr plain drained_head(first_free_cell);
constexpr plain helpers(first_free_cell + 1);

void drain_locked() {
  now().lock();
  drained so_far{.head = drained_head.read()};
  drain<0>(so_far);
  drained_head.write(so_far.head);
  now().unlock();
}

void help() {
  now().lock();
  helpers.write(1);
  in(site::bell, [] { return bell::disarm(word_at(at::armed)), 0; });
  now().unlock();
  drain_locked();
  now().lock();
  helpers.write(0);
  arm();
  now().unlock();
  drain_locked();
}

void supervise() {
  for (;;) {
    now().lock();
    if (helpers.read() == 0) arm();
    now().unlock();
    drain_locked();
    now().await_bell();
  }
}

scenario helped() {
  return {.name = "AHelperSilencesTheBellForAWhile",
          .threads = {supervise, help, complete_tasks<0, 1>},
          .may_sleep = 0b001,
          .check = [](const state& end) {
            return end.shared.cells[first_free_cell].value == 1 ? nullptr
                                                                : "everybody sleeps, and a completion is there";
          }};
}

scenario overtaken() {
  return {.name = "ARingThatOvertakesItsReaderIsNoticed",
          .threads = {[] {
                        drained so_far;
                        drain<0>(so_far);
                        check_nothing_missed(so_far);
                        drain<0>(so_far);
                        check_nothing_missed(so_far);
                      },
                      complete_tasks<0, 4>}};
}

}  // namespace

std::vector<scenario> bell_scenarios() {
  return {one_rings(), two_in_a_row(), two_ring(), news_of_one(), news_of_two(), helped(), overtaken()};
}

}  // namespace muster::weak
