// SPDX-License-Identifier: BSL-1.0
// The parent is killed: nothing of it is left.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "leak_check.hpp"
#include "processes.hpp"

namespace muster::orphan_test {
namespace {

struct family {
  std::array<std::atomic<pid_t>, 3> workers;
};

void spin_with_signals_blocked() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  std::atomic<bool> for_ever = true;
  while (for_ever) continue;
}

TEST(Orphan, WorkersOfAKilledParentAreGoneAndSoIsItsMemory) {
  const auto before = test::take_footprint();
  const test::shared<family> shared;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    init(0, nullptr);  // a forked child is another process
    pool pool({.workers = 3});
    auto spinning = pool.apply_async(spin_with_signals_blocked);
    auto large = pool.apply_async([] { return std::string(1U << 20U, 'x'); });
    large.wait();
    for (std::size_t each = 0; each < 3; ++each) shared->workers[each] = pool.workers()[each].pid;
    for (;;) ::pause();
    return 0;
  });
  ASSERT_TRUE(test::eventually([&] { return shared->workers[2] != 0; }));
  ranks->kill(0);
  EXPECT_EQ(ranks->wait(0), exit_status::killed(SIGKILL));
  // Orphans come to this process, which is a subreaper, and are gone once it could reap them.
  for (const auto& each : shared->workers) {
    EXPECT_TRUE(test::eventually([&] { return ::waitpid(each, nullptr, WNOHANG) == each; }));
  }
  EXPECT_EQ(test::take_footprint().shared_memory, before.shared_memory);
}

TEST(Orphan, WorkersThatAreJustStartingGoToo) {
  for (int round = 0; round < 10; ++round) {
    const test::shared<std::atomic<int>> started;
    const auto ranks = test::spawn(1, [&](std::size_t) {
      init(0, nullptr);
      *started = 1;
      pool pool({.workers = 8});
      for (;;) ::pause();
      return 0;
    });
    ASSERT_TRUE(test::eventually([&] { return *started == 1; }));
    test::work_for(std::chrono::microseconds(300 * round));  // somewhere in the start
    ranks->kill(0);
    EXPECT_EQ(ranks->wait(0), exit_status::killed(SIGKILL));
    EXPECT_TRUE(test::eventually([] { return test::take_footprint().children.empty(); }));
  }
}

}  // namespace
}  // namespace muster::orphan_test
