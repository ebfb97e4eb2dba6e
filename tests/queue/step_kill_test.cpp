// SPDX-License-Identifier: BSL-1.0
// One worker is killed after every few instructions of what it does with a task. What is checked: step_harness.hpp.
#include "step_harness.hpp"

namespace muster {
namespace {

using test::phase;
using test::value_of;
using reader = test::watched_task::reader;

class StepKill : public test::step_test {
protected:
  StepKill() : step_test(2) {}
};

TEST_F(StepKill, AWaiterAsleepGetsItsValue) {
  sweep({.name = "waiter",
         .least = 1,
         .hits = {phase::queued, phase::claimed, phase::running, phase::done, phase::after, phase::lying_down,
                  phase::asleep},
         .begin = [&] {
           land(victim);
           post_plain({.retries = 1, .by = reader::sleeps});
         }});
}

}  // namespace
}  // namespace muster
