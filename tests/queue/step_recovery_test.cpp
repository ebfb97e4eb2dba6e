// SPDX-License-Identifier: BSL-1.0
// What happens to one worker while another is recovered, at every few instructions of the recovery: the recovering
// thread is stepped by a process of its own. And recovery repeated.
#include <algorithm>
#include <climits>
#include <random>

#include "step_harness.hpp"

namespace muster::step_recovery_test {
namespace {

using test::phase;
using reader = test::watched_task::reader;

class StepRecovery : public test::step_test {
protected:
  static constexpr std::size_t other = 1;
  static constexpr std::size_t third = 2;

  StepRecovery() : step_test(third + 1) {}

  // The victim has died within what it does with the tasks of its lane; the other stands still within its own.
  void begin() {
    begin_attempt();
    land(victim, 0);
    land(other, 3);
    freeze(third);
    post_plain({.number = 4, .lane = lane_of(victim), .retries = random_() % 2 == 0 ? 2U : 0U, .by = reader::sink});
    post_plain({.number = 5, .lane = lane_of(other), .retries = 2, .by = reader::sleeps});
    post_plain({.number = 6, .lane = 1, .by = reader::sink});
    post_plain({.number = 7, .lane = 1, .retries = 2});
    step(victim, some_instructions());
    step(other, some_instructions());
    if (begun_++ % 7 == 0) step_to(other, phase::claimed, longest);
    kill(victim);
  }

  unsigned some_instructions() { return static_cast<unsigned>(random_() % longest); }

  // Recovers the victim in a thread that stands still after so many instructions while `meanwhile` is done.
  unsigned recover_stepped(unsigned instructions, const std::function<void()>& meanwhile) {
    return stepper_.run([&] { world().recover(victim, end_of(victim)); }, instructions, meanwhile);
  }

  // In instructions. How long one takes depends on what the victim had, and on what the parent has allocated before.
  unsigned shortest_recovery() {
    auto shortest = UINT_MAX;
    for (int times = 0; times < 6; ++times) {
      begin();
      shortest = std::min(shortest, recover_stepped(UINT_MAX, [] {}));
      traced(other).release();
      end();
    }
    return shortest;
  }

  // `meanwhile` at `count` points, evenly along the recovery; then `afterwards`.
  void at_points(unsigned count, const std::function<void()>& meanwhile, const std::function<void()>& afterwards) {
    const auto reach = shortest_recovery() * 5 / 4;
    unsigned within = 0;
    unsigned amidst = 0;
    for (unsigned point = 0; point < count && !HasFailure(); ++point) {
      const auto at = reach * point / count;
      SCOPED_TRACE("recovery stopped after " + std::to_string(at) + " instructions");
      begin();
      count_point(phase_held_by(other));
      within += recover_stepped(at,
                                [&] {
                                  amidst += owns_a_slot(victim) ? 1U : 0U;
                                  meanwhile();
                                }) == at
                    ? 1U
                    : 0U;
      verify_recovered(victim);
      afterwards();
      end();
    }
    std::printf("recovery stopped %u times, %u of them before all slots were settled; ", within, amidst);
    EXPECT_GE(within, count / 2);
    EXPECT_GE(amidst, count / 10);
    EXPECT_LT(amidst, within);
  }

  bool owns_a_slot(std::size_t worker) {
    for (std::size_t slot = 0; slot < slots; ++slot) {
      if (slot_word(shared_board().slot(slot).word).owner() == worker + 1) return true;
    }
    return false;
  }

  void end() {
    traced(third).release();
    check_that_others_go_on();
    restart(victim);
    verify_all();
  }

  test::thread_stepper stepper_;
  static constexpr unsigned longest = 600;
  std::minstd_rand random_{1};
  unsigned begun_ = 0;
};

TEST_F(StepRecovery, AnotherMayDieMeanwhile) {
  at_points(
      60, [&] { kill(other); },
      [&] {
        recover(other);
        restart(other);
      });
  report("another dies during recovery", 60, {phase::queued, phase::claimed, phase::running});
}

TEST_F(StepRecovery, AnotherMayGoOnAndDieLater) {
  at_points(
      30, [&] { step(other, 150); },
      [&] {
        kill(other);
        recover(other);
        restart(other);
      });
  report("another goes on during recovery and dies later", 30, {phase::queued, phase::claimed, phase::running});
}

TEST_F(StepRecovery, AnotherMayRunFreely) {
  at_points(30, [&] { traced(other).release(); }, [] {});
  report("another runs during recovery", 30, {phase::queued, phase::claimed, phase::running});
}

TEST_F(StepRecovery, RepeatedChangesNothing) {
  for (unsigned point = 0; point < 60 && !HasFailure(); ++point) {
    SCOPED_TRACE("point " + std::to_string(point));
    begin();
    count_point(phase_held_by(other));
    tasks().recover(victim, end_of(victim));
    if (point % 2 == 0) kill(other);
    tasks().recover(victim, end_of(victim));
    recover(victim);
    tasks().recover(victim, end_of(victim));
    verify_recovered(victim);
    if (point % 2 == 0) {
      recover(other);
      tasks().recover(other, end_of(other));
      restart(other);
    } else {
      traced(other).release();
    }
    end();
  }
  report("recovery repeated", 60, {phase::queued, phase::claimed, phase::running});
}

}  // namespace
}  // namespace muster::step_recovery_test
