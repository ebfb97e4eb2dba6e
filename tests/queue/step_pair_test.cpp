// SPDX-License-Identifier: BSL-1.0
// Two workers contend for the same tasks, each for so many instructions, and both are killed; a third goes on.
#include <map>
#include <random>

#include "step_harness.hpp"

namespace muster::step_pair_test {
namespace {

using test::phase;
using reader = test::watched_task::reader;

class StepPair : public test::step_test {
protected:
  static constexpr std::size_t other = 1;
  static constexpr std::size_t third = 2;
  static constexpr unsigned longest = 700;  // from inside one task until through with the next

  StepPair() : step_test(third + 1) {}

  // Both stand inside of a task, the third where it sleeps; three tasks are there for whoever comes.
  void begin() {
    begin_attempt();
    land(victim, 0);
    land(other, 3);
    freeze(third);
    post_plain({.number = 4, .lane = 1, .retries = 2, .by = reader::sleeps});
    post_plain({.number = 5, .lane = 1, .by = reader::sink});
    post_plain({.number = 6, .lane = 1, .by = random_() % 2 == 0 ? reader::sink : reader::nobody});
  }

  unsigned some_instructions() { return static_cast<unsigned>(random_() % longest); }

  // Takes turns of up to so many instructions.
  void step_both(unsigned first, unsigned second) {
    while (first > 0 || second > 0) {
      const auto turn = static_cast<unsigned>(random_() % longest);
      step(victim, std::min(first, turn));
      first -= std::min(first, turn);
      step(other, std::min(second, turn));
      second -= std::min(second, turn);
    }
  }

  void count_pair() {
    count_point(phase_held_by(victim));
    ++seen_[{phase_held_by(victim), phase_held_by(other)}];
  }

  void release_third() {
    traced(third).release();
    check_that_others_go_on();
  }

  void end() {
    restart(victim);
    restart(other);
    verify_all();
  }

  std::minstd_rand random_{1};
  std::map<std::pair<phase, phase>, unsigned> seen_;
};

TEST_F(StepPair, TwoThatDieTogetherAreRecoveredInAnyOrder) {
  for (unsigned pair = 0; pair < 100 && !HasFailure(); ++pair) {
    begin();
    step_both(some_instructions(), some_instructions());
    if (pair % 7 == 0) step_to(victim, phase::claimed, longest);
    SCOPED_TRACE("pair " + std::to_string(pair));
    count_pair();
    kill(victim);
    kill(other);
    release_third();
    recover(pair % 2 == 0 ? victim : other);
    recover(pair % 2 == 0 ? other : victim);
    end();
  }
  EXPECT_GE(seen_.size(), 5U) << "combinations of phases";
  report("pairs", 100, {phase::queued, phase::claimed, phase::running});
}

TEST_F(StepPair, OneThatDiesAfterTheOthersRecovery) {
  for (unsigned pair = 0; pair < 60 && !HasFailure(); ++pair) {
    begin();
    const auto at_first = some_instructions();
    step_both(some_instructions(), at_first);
    if (pair % 7 == 0) step_to(victim, phase::claimed, longest);
    SCOPED_TRACE("pair " + std::to_string(pair));
    count_pair();
    kill(victim);
    recover(victim);
    if (pair % 2 == 0) restart(victim);  // which may take what the first had
    step(other, some_instructions() / 2);
    kill(other);
    release_third();
    recover(other);
    if (pair % 2 != 0) restart(victim);
    restart(other);
    verify_all();
  }
  EXPECT_GE(seen_.size(), 5U) << "combinations of phases";
  report("pairs, one after the other", 60, {phase::queued, phase::claimed, phase::running});
}

}  // namespace
}  // namespace muster::step_pair_test
