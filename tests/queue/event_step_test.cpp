// SPDX-License-Identifier: BSL-1.0
// Somebody who sets, clears or waits for an event is killed after every few instructions. Afterwards nobody sleeps
// through a set() that took place, and the event goes on.
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>

#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"
#include "tracee.hpp"

namespace muster::event_step_test {
namespace {

using namespace std::chrono_literals;

struct stage {
  std::atomic<std::uint32_t> traced = 0;
  std::atomic<bool> ended = false;
};

struct scenario {
  const char* name;
  bool is_set;  // at first
  void (*act)(const event&);
  unsigned stride = 1;  // instructions from one point to the next
};

constexpr scenario scenarios[] = {
    {.name = "Set", .is_set = false, .act = [](const event& on) { on.set(); }},
    {.name = "SetAgain", .is_set = true, .act = [](const event& on) { on.set(); }},
    {.name = "Clear", .is_set = true, .act = [](const event& on) { on.clear(); }},
    {.name = "Wait",
     .is_set = false,
     .act = [](const event& on) { static_cast<void>(on.wait_for(1us)); },
     .stride = 17},
    {.name = "WaitForSeveral",
     .is_set = false,
     .act = [](const event& on) { static_cast<void>(any_of(on, all_of(on, on)).wait_for(1us)); },
     .stride = 37},
};

class EventStep : public testing::TestWithParam<scenario> {
protected:
  // Kills the victim after so many instructions; false when it had come to its end before.
  bool kill_after(unsigned instructions) {
    const event on(host_);
    if (GetParam().is_set) on.set();
    const auto sleeper = test::spawn(1, [&](std::size_t) { return on.wait_for(100s) ? 0 : 1; });
    if (!GetParam().is_set) {
      EXPECT_TRUE(test::eventually([&] { return test::sleeps_on_futex(sleeper->pid(0)); }));
    }
    const test::shared<stage> with;
    const auto id = host_->participants().enrol();
    const auto victim = test::spawn(1, [&](std::size_t) { return act(*with, on); });
    test::tracee traced(victim->pid(0));
    with->traced = 1;
    futex_wake(futex_address(with->traced), 1, futex_scope::shared);
    traced.run_to_landing();
    unsigned done = 0;
    for (; done < instructions && !with->ended; ++done) {
      if (traced.step() != test::tracee::outcome::stopped) break;
    }
    victim->kill(0);
    static_cast<void>(victim->wait(0));
    host_->bury(id);
    if (!on.is_set()) on.set();
    EXPECT_EQ(sleeper->wait(0), exit_status::exited(0));
    on.clear();
    EXPECT_FALSE(on.wait_for(1us));
    on.set();
    EXPECT_TRUE(on.wait_for(0s));
    return done == instructions;
  }

  static int act(stage& with, const event& on) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);   // also when the test is killed
    static_cast<void>(on.wait_for(1us));  // what is done once in a process has been done
    while (with.traced == 0) futex_wait(futex_address(with.traced), 0, futex_scope::shared);
    ::raise(SIGTRAP);
    GetParam().act(on);
    with.ended = true;
    for (;;) ::pause();
  }

  const std::shared_ptr<domain> host_ =
      std::make_shared<domain>(domain_options{.arena_bytes = std::size_t{16} << 20U, .inherited = true});
};

TEST_P(EventStep, AKillAtAnyInstructionHarmsNobodyElse) {
  unsigned points = 0;
  for (bool more = true; more && !HasFailure(); ++points) {
    const auto at = points * GetParam().stride;
    more = kill_after(at);
    if (HasFailure()) ADD_FAILURE() << "killed after " << at << " instructions";
  }
  std::printf("%u kill points\n", points);
  EXPECT_GE(points, 10U);
}

INSTANTIATE_TEST_SUITE_P(Queue, EventStep, testing::ValuesIn(scenarios),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace muster::event_step_test
