// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/place.hpp>

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>
#include <muster/base/current_cpu.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/wait/step_aside.hpp>

namespace muster::place_test {
namespace {

using namespace std::chrono_literals;

// Runs `what` in a thread that may run on these processors only.
template <class F>
void run_on(const cpu_list& cpus, F what) {
  std::thread([&] {
    const affinity_scope scope(cpus);
    what();
  }).join();
}

TEST(CurrentCpu, IsTheProcessorToWhichTheThreadIsBound) {
  for (const auto cpu : allowed_cpus()) {
    run_on({cpu}, [&] { EXPECT_EQ(current_cpu(), cpu); });
  }
}

TEST(Place, IsSharedByThreadsOfOneProcessor) {
  const auto cpus = allowed_cpus();
  place_word told = 0;
  run_on({cpus.front()}, [&] {
    EXPECT_FALSE(shares_processor(told)) << "nobody has told it yet";
    tell_place(told);
    EXPECT_TRUE(shares_processor(told));
  });
  EXPECT_EQ(told.load(), cpus.front() + 1);
  if (cpus.size() > 1) run_on({cpus.back()}, [&] { EXPECT_FALSE(shares_processor(told)); });
}

TEST(StepAside, MovesTheThreadAfterSomeMeetingsAndLeavesItsProcessorsAsTheyWere) {
  const auto cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "there is nowhere to go";
  std::thread([&] {
    step_aside aside;
    for (int each = 0; each < 3; ++each) aside.met();
    EXPECT_EQ(aside.moves(), 0U);
    aside.met();
    EXPECT_EQ(aside.moves(), 1U);
    EXPECT_EQ(allowed_cpus(), cpus);
  }).join();
}

TEST(StepAside, CountsOnlyMeetingsInARow) {
  step_aside aside;
  for (int each = 0; each < 100; ++each) {
    aside.met();
    aside.met();
    aside.met();
    aside.passed();
  }
  EXPECT_EQ(aside.moves(), 0U);
}

TEST(StepAside, GoesNowhereWhereItMayNot) {
  run_on({allowed_cpus().front()}, [] {
    step_aside aside;
    for (int each = 0; each < 4; ++each) aside.met();
    EXPECT_EQ(aside.moves(), 0U);
    EXPECT_EQ(allowed_cpus().size(), 1U);
  });
}

TEST(SpinUntil, GivesUpAtOnceWhereItIsFutile) {
  int looks = 0;
  EXPECT_FALSE(spin_until(1h, [&] { return ++looks == 0; }, [] { return true; }));
  EXPECT_EQ(looks, 2) << "once at first, once at the end";
}

TEST(SpinUntil, GivesUpOnceItBecomesFutile) {
  int questions = 0;
  EXPECT_FALSE(spin_until(1h, [] { return false; }, [&] { return ++questions == 5; }));
}

TEST(SpinUntil, LooksOnceMoreBehindTheQuestion) {
  bool is_there = false;
  EXPECT_TRUE(spin_until(1h, [&] { return is_there; }, [&] { return is_there = true; }));
}

}  // namespace
}  // namespace muster::place_test
