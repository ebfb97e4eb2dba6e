// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/wait/place.hpp>

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>
#include <muster/base/detail/current_cpu.hpp>

namespace muster::place_test {
namespace {

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

TEST(Place, OfAThreadThatMovesOrWasWokenSaysSo) {
  const auto here = allowed_cpus().front();
  run_on({here}, [&] {
    place_word elsewhere = here + 2;
    EXPECT_EQ(prospect_of(elsewhere), prospect::usual);
    note_woken(elsewhere);
    EXPECT_EQ(prospect_of(elsewhere), prospect::woken);
    tell_move(elsewhere, here + 1);
    EXPECT_EQ(prospect_of(elsewhere), prospect::coming);
    place_word same = here + 1;
    note_woken(same);
    EXPECT_EQ(prospect_of(same), prospect::futile) << "it is mostly to run where it slept";
    tell_place(same);
    EXPECT_EQ(same.load(), here + 1);
  });
}

}  // namespace
}  // namespace muster::place_test
