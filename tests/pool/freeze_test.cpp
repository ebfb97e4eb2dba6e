// SPDX-License-Identifier: BSL-1.0
// A worker that is stopped (SIGSTOP) in whatever phase holds up nobody else, and ends what it was at when it goes on.
// The phases within a task, instruction by instruction: tests/queue/step_freeze_test.cpp.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <ranges>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/this_pool.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::freeze_test {
namespace {

using namespace std::chrono_literals;

int add(int a, int b) { return a + b; }
int twice(int x) { return 2 * x; }
void stop_myself() { ::raise(SIGSTOP); }

// What /proc says of a process: R, S, T (stopped), …
char state_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(in, line);
  const auto end_of_name = line.rfind(')');
  return end_of_name == std::string::npos ? '?' : line[end_of_name + 2];
}
bool wait_until_stopped(pid_t process) {
  return test::eventually([&] { return state_of(process) == 'T'; });
}
bool wait_until_asleep(pid_t process) {
  return test::eventually([&] { return state_of(process) == 'S'; });
}
pid_t freeze(pid_t process) {
  ::kill(process, SIGSTOP);
  EXPECT_TRUE(wait_until_stopped(process));
  return process;
}

struct quick_end {
  const clock::time_point start = clock::now();
  ~quick_end() { EXPECT_LT(clock::now() - start, 30s); }
};

// Everything that a program does with a pool, without a look at the frozen worker.
void use_in_all_ways(pool& pool) {
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
  EXPECT_EQ(pool.with({.chunk = 3}).map(twice, std::views::iota(0, 50)).back(), 98);
  int sum = 0;
  for (const int each : pool.imap(twice, std::views::iota(0, 50))) sum += each;
  EXPECT_EQ(sum, 2450);
  sum = 0;
  for (const int each : pool.imap_unordered(twice, std::views::iota(0, 50))) sum += each;
  EXPECT_EQ(sum, 2450);
  std::atomic<int> told = 0;
  pool.apply_async(add, 1, 2).on_complete([&](int value) { told = value; }, [&](const error_info&) { told = -1; });
  EXPECT_TRUE(test::eventually([&] { return told == 3; }));
  auto cancelled = pool.apply_async(add, 1, 2);
  cancelled.cancel();
  cancelled.wait();
  EXPECT_EQ(pool.stats().workers.started, pool.workers().size());
}

TEST(Freeze, OneAsleepHoldsUpNobody) {
  pool pool({.workers = 2});
  const auto workers = pool.workers();
  for (const auto& each : workers) ASSERT_TRUE(wait_until_asleep(each.pid));
  const auto frozen = freeze(workers[0].pid);
  use_in_all_ways(pool);
  ::kill(frozen, SIGCONT);
  use_in_all_ways(pool);
}

// The wake goes to the one that is stopped, and nobody waits who could send another.
TEST(Freeze, ACallbackComesThoughTheWakeWentToAFrozenWorker) {
  for (const std::size_t which : {0U, 1U}) {
    pool pool({.workers = 2});
    const auto workers = pool.workers();
    for (const auto& each : workers) ASSERT_TRUE(wait_until_asleep(each.pid));
    const auto frozen = freeze(workers[which].pid);
    std::atomic<int> told = 0;
    pool.apply_async(add, 1, 2).on_complete([&](int value) { told = value; }, [&](const error_info&) { told = -1; });
    EXPECT_TRUE(test::eventually([&] { return told == 3; })) << which;
    ::kill(frozen, SIGCONT);
  }
}

// As above; and here nothing but an audit sends another.
TEST(Freeze, AMapOfOneElementEndsThoughItsWakeWentToAFrozenWorker) {
  for (const std::size_t which : {0U, 1U}) {
    pool pool({.workers = 2});
    const auto workers = pool.workers();
    for (const auto& each : workers) ASSERT_TRUE(wait_until_asleep(each.pid));
    const auto frozen = freeze(workers[which].pid);
    EXPECT_EQ(pool.map(twice, std::vector{21}), std::vector{42});
    ::kill(frozen, SIGCONT);
  }
}

// The worker takes these tasks up itself, many of them before the program looks again: no damage, for which it would be
// killed.
TEST(Freeze, ThousandsOfCallsOfATaskWhileTheProgramIsStoppedKillNobody) {
  pool pool({.workers = 1});
  const auto sum = pool.apply(
      [](int count) {
        const auto program = freeze(::getppid());
        int found = 0;
        for (int each = 0; each < count; ++each) found += this_pool::apply(twice, each);
        ::kill(program, SIGCONT);
        return found;
      },
      3000);
  EXPECT_EQ(sum, 3000 * 2999);
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
  const auto counted = pool.stats().workers;
  EXPECT_EQ(counted.started, 1U);
  EXPECT_EQ(counted.killed + counted.exited, 0U);
}

TEST(Freeze, OneInUserCodeHoldsUpItsTaskAlone) {
  pool pool({.workers = 2});
  auto running = pool.apply_async(
      [](int x) {
        stop_myself();
        return x;
      },
      5);
  pid_t frozen = 0;
  ASSERT_TRUE(test::eventually([&] {
    for (const auto& each : pool.workers()) {
      if (each.pid != 0 && state_of(each.pid) == 'T') frozen = each.pid;
    }
    return frozen != 0;
  }));
  use_in_all_ways(pool);
  EXPECT_FALSE(running.cancel()) << "it has begun";
  EXPECT_FALSE(running.wait_for(1500ms)) << "audits leave it alone";
  ::kill(frozen, SIGCONT);
  EXPECT_EQ(running.get(), 5);
  EXPECT_EQ(pool.stats().workers.started, 2U);
  EXPECT_EQ(pool.stats().tasks.damaged, 0U);
}

TEST(Freeze, AllOfThemStoppedAndGoingOnLoseNothing) {
  pool pool({.workers = 2});
  std::vector<future<int>> futures;
  for (int round = 0; round < 20; ++round) {
    for (int each = 0; each < 50; ++each) futures.push_back(pool.apply_async(add, each, 1));
    for (const auto& each : pool.workers()) freeze(each.pid);
    futures.push_back(pool.apply_async(add, round, 1));
    for (const auto& each : pool.workers()) ::kill(each.pid, SIGCONT);
  }
  for (auto& each : futures) {
    ASSERT_TRUE(each.wait_for(60s));
    EXPECT_GT(each.get(), 0);
  }
  EXPECT_EQ(pool.stats().tasks.accepted, 20U * 51U);
  EXPECT_EQ(pool.stats().tasks.damaged, 0U);
}

TEST(Freeze, OneThatStartsHoldsUpNobody) {
  pool pool({.workers = 2, .initializer = worker_task([] {
                             if (this_worker::id() == 0 && this_worker::incarnation() == 1) stop_myself();
                           })});
  const auto frozen = pool.workers()[0].pid;
  ASSERT_TRUE(wait_until_stopped(frozen));
  use_in_all_ways(pool);
  EXPECT_EQ(pool.workers()[0].state, worker_lifecycle::state::initializing);
  ::kill(frozen, SIGCONT);
  EXPECT_TRUE(test::eventually([&] { return pool.workers()[0].state == worker_lifecycle::state::working; }));
  use_in_all_ways(pool);
}

TEST(Freeze, OneThatIsStoppedAtOnceAfterItsStartHoldsUpNobody) {
  pool pool({.workers = 2, .log = [](log_level, std::string_view) {}});
  pool.apply(add, 1, 1);
  ::kill(pool.workers()[0].pid, SIGKILL);
  ASSERT_TRUE(test::eventually([&] { return pool.workers()[0].incarnation == 2 && pool.workers()[0].pid != 0; }));
  const auto frozen = freeze(pool.workers()[0].pid);  // somewhere between exec and its first task
  for (int each = 0; each < 50; ++each) {
    auto result = pool.apply_async(add, each, 1);
    EXPECT_TRUE(result.wait_for(30s));
  }
  ::kill(frozen, SIGCONT);
  EXPECT_TRUE(test::eventually([&] { return pool.workers()[0].state == worker_lifecycle::state::working; }));
}

TEST(Freeze, TerminatingKillsOneThatIsStoppedInATask) {
  const quick_end bounded;
  pool pool({.workers = 2});
  auto running = pool.apply_async(stop_myself);
  ASSERT_TRUE(test::eventually(
      [&] { return std::ranges::any_of(pool.workers(), [](const auto& each) { return state_of(each.pid) == 'T'; }); }));
  pool.terminate();
  pool.join();
  EXPECT_FALSE(running.get_result());
}

TEST(Freeze, TheDestructorKillsOneThatIsAsleepAndStopped) {
  const quick_end bounded;
  pool pool({.workers = 2});
  for (const auto& each : pool.workers()) ASSERT_TRUE(wait_until_asleep(each.pid));
  freeze(pool.workers()[1].pid);
}

TEST(Freeze, TheDestructorKillsOneThatIsStoppedWhileItStarts) {
  const quick_end bounded;
  pool pool({.workers = 1, .initializer = worker_task(stop_myself)});
  ASSERT_TRUE(wait_until_stopped(pool.workers()[0].pid));
}

TEST(Freeze, OneThatIsStoppedWhileItLeavesHoldsUpJoinAloneUntilItGoesOn) {
  pool pool({.workers = 2, .finalizer = worker_task([] {
                             if (this_worker::id() == 0) stop_myself();
                           })});
  const auto frozen = pool.workers()[0].pid;
  auto last = pool.apply_async(add, 1, 2);
  pool.close();
  EXPECT_EQ(last.get(), 3);
  ASSERT_TRUE(wait_until_stopped(frozen));
  EXPECT_FALSE(pool.join_for(1200ms));
  ::kill(frozen, SIGCONT);
  EXPECT_TRUE(pool.join_for(30s));
}

TEST(Freeze, TerminatingKillsOneThatIsStoppedWhileItLeaves) {
  const quick_end bounded;
  pool pool({.workers = 1, .finalizer = worker_task(stop_myself)});
  const auto frozen = pool.workers()[0].pid;
  pool.close();
  ASSERT_TRUE(wait_until_stopped(frozen));
  pool.terminate();
  pool.join();
}

TEST(Freeze, AClosedPoolsTasksEndThoughAnIdleWorkerIsStopped) {
  pool pool({.workers = 2});
  for (const auto& each : pool.workers()) ASSERT_TRUE(wait_until_asleep(each.pid));
  const auto frozen = freeze(pool.workers()[0].pid);
  std::vector<future<int>> futures;
  for (int each = 0; each < 50; ++each) futures.push_back(pool.apply_async(add, each, 1));
  EXPECT_TRUE(pool.drain(30s));
  EXPECT_FALSE(pool.join_for(10ms)) << "the frozen one has not left";
  ::kill(frozen, SIGCONT);
  EXPECT_TRUE(pool.join_for(30s));
}

}  // namespace
}  // namespace muster::freeze_test
