// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to two tasks, with workers killed at any step, is gone through; and every step that wakes
// or recovers is left out in turn, which must be noticed. Results: docs/design/model.md.
#include <cstdio>

#include <gtest/gtest.h>

#include "model/task_model.hpp"

namespace muster::model {
namespace {

void expect_right(const scenario& what) {
  const auto found = explore_tasks(what);
  std::printf("%zu states, %zu ends\n", found.states, found.ends);
  EXPECT_EQ(found.failure, "");
  EXPECT_GT(found.ends, 0U);
}

void expect_noticed(scenario what, mutation left_out) {
  what.left_out = left_out;
  const auto found = explore_tasks(what);
  std::printf("after %zu states: %s\n", found.states, found.failure.c_str());
  EXPECT_NE(found.failure, "");
  EXPECT_NE(found.failure, "too many states");
}

constexpr scenario two_workers{.crashes = 0, .workers = 2, .clients = 1};
constexpr scenario one_worker_dies{.crashes = 1, .workers = 1};

TEST(TaskModel, OneWorkerTwoClients) { expect_right({.crashes = 0, .workers = 1}); }
TEST(TaskModel, TheOnlyWorkerDiesAtAnyStep) { expect_right(one_worker_dies); }
TEST(TaskModel, TheOnlyWorkerDiesUnderTwoWaiters) {
  expect_right({.second_has_sink = false, .crashes = 1, .workers = 1});
}
TEST(TaskModel, TheOnlyWorkerDiesUnderTwoSinks) { expect_right({.first_has_sink = true, .crashes = 1, .workers = 1}); }
TEST(TaskModel, TheOnlyWorkerDiesWhileATaskIsCancelled) {
  expect_right({.second_cancels = true, .crashes = 1, .workers = 1});
}
TEST(TaskModel, TheOnlyWorkerDiesAndTasksAreRunAgain) { expect_right({.retries = 1, .crashes = 1, .workers = 1}); }
TEST(TaskModel, TwoWorkersCompeteForATask) { expect_right(two_workers); }
TEST(TaskModel, OneOfTwoWorkersDiesAtAnyStep) { expect_right({.crashes = 1, .workers = 2, .clients = 1}); }

TEST(TaskModelMutation, ParkingWithoutASecondLookIsNoticed) {
  expect_noticed(two_workers, mutation::park_without_second_look);
}
TEST(TaskModelMutation, CompletingWithoutWakingTheWaiterIsNoticed) {
  expect_noticed(two_workers, mutation::complete_without_wake);
}
TEST(TaskModelMutation, CompletingWithoutTheRingIsNoticed) {
  expect_noticed({.crashes = 0, .workers = 1}, mutation::complete_without_ring);
}
TEST(TaskModelMutation, PostingWithoutAWakeIsNoticed) { expect_noticed(two_workers, mutation::post_without_wake); }
TEST(TaskModelMutation, SleepingWithoutAskingForAWakeIsNoticed) {
  expect_noticed(two_workers, mutation::wait_without_request);
}
TEST(TaskModelMutation, RecoveryThatForgetsWhatWasDoneIsNoticed) {
  expect_noticed(one_worker_dies, mutation::recover_without_done_slots);
}
TEST(TaskModelMutation, RecoveryThatFailsWhatHadNotBegunIsNoticed) {
  expect_noticed(one_worker_dies, mutation::recover_without_requeue);
}
TEST(TaskModelMutation, RecoveryThatMovesATaskUnderItsWaiterIsNoticed) {
  expect_noticed(one_worker_dies, mutation::recover_without_waking_waiter);
}
TEST(TaskModelMutation, RecoveryThatForgetsARingOwedByTheDeadIsNoticed) {
  expect_noticed({.first_has_sink = true, .crashes = 1, .workers = 1}, mutation::recover_without_bell);
}
// Without spinning workers every task has a wake of its own: the chain only saves the parent system calls.
TEST(TaskModelMutation, TheChainOfWakesIsAnOptimisation) {
  auto what = one_worker_dies;
  what.left_out = mutation::no_chain_wake;
  expect_right(what);
}

}  // namespace
}  // namespace muster::model
