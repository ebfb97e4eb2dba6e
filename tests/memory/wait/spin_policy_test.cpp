// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/spin_policy.hpp>

#include <sched.h>

#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>
#include <muster/base/effective_cpus.hpp>

#include "processes.hpp"

namespace muster::spin_policy_test {
namespace {

TEST(SpinPolicy, IsTheUsualOneWhereThereAreProcessorsForIt) {
  const auto policy = spin_policy::of_process();
  EXPECT_EQ(policy.processors, effective_cpus());
  EXPECT_EQ(policy.budget, policy.processors < 2 ? std::chrono::nanoseconds(0) : spin_policy::usual_budget);
}

TEST(SpinPolicy, IsThatOfTheProcessWhateverTheCallingThreadIsBoundTo) {
  const auto before = spin_policy::of_process();
  const affinity_scope one({allowed_cpus().front()});
  EXPECT_EQ(spin_policy::of_process().processors, before.processors);
}

TEST(SpinPolicy, OneProcessorMeansNoSpinning) {
  const auto ranks = test::spawn(1, [](std::size_t) {
    cpu_set_t one;
    CPU_ZERO(&one);
    cpu_set_t all;
    if (::sched_getaffinity(0, sizeof all, &all) != 0) return 2;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    }
    if (::sched_setaffinity(0, sizeof one, &one) != 0) return 3;
    detail::note_process_cpus();  // as muster::init of a program that was started so
    const auto policy = spin_policy::of_process();
    return policy.processors == 1 && policy.budget.count() == 0 ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

}  // namespace
}  // namespace muster::spin_policy_test
