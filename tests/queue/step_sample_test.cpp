// SPDX-License-Identifier: BSL-1.0
// What the gate has of the stepped kills, which are a stage of scripts/verify: a worker is killed in every phase, on
// both sides of every change that others can see. After every few instructions, and in all other scenarios:
// step_kill_test.cpp. What is checked: step_harness.hpp.
#include <sys/ptrace.h>

#include <gtest/gtest.h>

#include "step_harness.hpp"

namespace muster::step_sample_test {
namespace {

using test::phase;
using reader = test::watched_task::reader;

bool may_be_traced() {
  const auto asks = [](std::size_t) { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1; };
  return test::spawn(1, asks)->wait(0) == exit_status::exited(0);
}

class StepSample : public test::step_test {
protected:
  static constexpr unsigned far = 1000;  // instructions from one point to the next where nothing is seen to change

  StepSample() : step_test(2) {}

  void SetUp() override {
    if (!may_be_traced()) GTEST_SKIP() << "this machine does not let one process trace another";
  }
};

TEST_F(StepSample, AWorkerKilledInAnyPhaseIsReplacedAndEveryTaskEndsOnce) {
  // The further task finds the victim awake, about to sleep, or asleep.
  sweep({.name = "over a task to sleep",
         .begin =
             [&] {
               land(victim);
               look_at(post_plain({.lane = lane_of(victim), .by = reader::sink}));
             },
         .stride = far,
         .sparse = far,
         .behind = far,
         .at_point = [&] { post_plain({.number = 2, .lane = lane_of(victim), .retries = 1}); }});
  sweep({.name = "leaving",
         .begin =
             [&] {
               land(victim);
               post_plain({.lane = lane_of(victim), .retries = 1});
               shared_board().line(victim).order = static_cast<std::uint32_t>(worker_order::leave);
             },
         .until = phase::leaving,
         .beyond = 20,
         .stride = far,
         .behind = far});
  report("sample", 24,
         {phase::queued, phase::claimed, phase::running, phase::done, phase::entered, phase::bell_taken, phase::after,
          phase::lying_down, phase::asleep, phase::leaving});
}

}  // namespace
}  // namespace muster::step_sample_test
