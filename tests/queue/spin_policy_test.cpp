// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/spin_policy.hpp>

#include <sched.h>

#include <cerrno>

#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>
#include <muster/base/effective_cpus.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::spin_policy_test {
namespace {

TEST(SpinPolicy, IsBoundedByFiftyMicroseconds) {
  const auto policy = spin_policy::calibrate();
  EXPECT_EQ(policy.processors, effective_cpus());
  EXPECT_LE(policy.budget, std::chrono::microseconds(50));
}

TEST(SpinPolicy, WithoutThreadsItIsWhatIsUsual) {
  for (const int allowed : {0, 1}) {
    const test::refused_calls scope("pthread_create", EAGAIN, -1, allowed);
    const auto policy = spin_policy::calibrate();
    EXPECT_EQ(policy.budget, std::chrono::microseconds(policy.processors < 2 ? 0 : 10));
  }
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
    const auto policy = spin_policy::calibrate();
    return policy.processors == 1 && policy.budget.count() == 0 ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

}  // namespace
}  // namespace muster::spin_policy_test
