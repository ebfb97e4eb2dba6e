// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to two tasks, with workers killed at any step, is gone through; and every step that wakes
// or recovers is left out in turn, which must be noticed. Results: docs/design/model.md.
#include <cstdio>

#include <gtest/gtest.h>

#include "model/task_model.hpp"

namespace muster::model {
namespace {

verdict explore_and_tell(const scenario& what) {
  auto found = explore_tasks(what);
  std::printf("%zu states, %zu transitions, %zu ends%s%s\n", found.states, found.transitions, found.ends,
              found.failure.empty() ? "" : ": ", found.failure.c_str());
  return found;
}

void expect_right(const scenario& what) {
  const auto found = explore_and_tell(what);
  EXPECT_EQ(found.failure, "");
  EXPECT_GT(found.ends, 0U);
}

// In every order of steps, and in those that are left when no order is looked at that nobody can tell from another.
void expect_same_ends(scenario what) {
  const auto reduced = explore_and_tell(what);
  what.reduced = false;
  const auto full = explore_and_tell(what);
  EXPECT_EQ(full.failure, "");
  EXPECT_EQ(reduced.failure, "");
  EXPECT_EQ(reduced.ends, full.ends);
  EXPECT_EQ(reduced.ends_digest, full.ends_digest);
  EXPECT_LT(reduced.states, full.states);
}

void expect_noticed(scenario what, mutation left_out) {
  what.left_out = left_out;
  const auto found = explore_and_tell(what);
  EXPECT_NE(found.failure, "");
  EXPECT_NE(found.failure, "too many states");
}

void expect_noticed_in_any_order(scenario what, mutation left_out) {
  expect_noticed(what, left_out);
  what.reduced = false;
  expect_noticed(what, left_out);
}

constexpr scenario one_worker{.crashes = 0, .workers = 1};
constexpr scenario two_workers{.crashes = 0, .workers = 2, .clients = 1};
constexpr scenario one_worker_dies{.crashes = 1, .workers = 1};
constexpr scenario one_worker_times_out{.crashes = 0, .timeouts = 1, .workers = 1};
constexpr scenario one_worker_fails{
    .first_has_sink = true, .retries = 1, .errors = 1, .crashes = 0, .workers = 1, .clients = 1};

// Two workers, two slots, two clients: one waits, one has a sink. Each worker may die, at any step, also while the
// supervisor recovers what the other had.
TEST(TaskModel, BothWorkersDieAtAnyStep) { expect_right({.crashes = 2}); }
TEST(TaskModel, AWorkerDiesWhileATaskIsCancelled) { expect_right({.second_cancels = true, .crashes = 1}); }
TEST(TaskModel, ATaskOfTwoRunsTooLong) { expect_right({.crashes = 0, .timeouts = 1}); }
TEST(TaskModel, BothTasksAreCancelled) { expect_right({.first_cancels = true, .second_cancels = true, .crashes = 0}); }

// Smaller ones, for what those have not.
TEST(TaskModel, TheOnlyWorkerDiesUnderTwoSinks) { expect_right({.first_has_sink = true, .crashes = 1, .workers = 1}); }
TEST(TaskModel, TheOnlyWorkerDiesAndTasksAreRunAgain) { expect_right({.retries = 1, .crashes = 1, .workers = 1}); }
TEST(TaskModel, ATaskRunsTooLongWhileEitherWorkerMayDie) {
  expect_right({.crashes = 2, .timeouts = 1, .workers = 2, .clients = 1});
}
TEST(TaskModel, BothTasksRunTooLongAndMayBeRunAgain) {
  expect_right({.retries = 1, .crashes = 0, .timeouts = 2, .workers = 1});
}
TEST(TaskModel, ATaskThatRunsTooLongIsCancelled) {
  expect_right({.first_cancels = true, .crashes = 0, .timeouts = 1, .workers = 1});
}

// Errors, after which tasks are run again.
TEST(TaskModel, TasksThatFailAreRunAgainWhileEitherWorkerMayDie) {
  expect_right({.first_has_sink = true, .retries = 1, .errors = 1, .crashes = 2, .workers = 2, .clients = 1});
}
TEST(TaskModel, TasksThatFailAreRunAgainBesideAnother) {
  expect_right({.retries = 1, .errors = 1, .crashes = 1, .workers = 1});
}
TEST(TaskModel, TasksThatFailAndAreCancelledAreNotRunAgain) {
  expect_right({.second_cancels = true, .retries = 2, .errors = 2, .crashes = 1, .workers = 1});
  expect_right({.first_has_sink = true, .first_cancels = true, .retries = 1, .errors = 1, .clients = 1});
}
TEST(TaskModel, TasksThatFailMayAlsoRunTooLong) {
  expect_right({.retries = 1, .errors = 1, .crashes = 1, .timeouts = 1, .workers = 1});
}

// The reduction: the same ends are reached as without it.
TEST(TaskModelReduction, OneWorkerTwoClients) { expect_same_ends(one_worker); }
TEST(TaskModelReduction, TwoWorkersCompeteForATask) { expect_same_ends(two_workers); }
TEST(TaskModelReduction, TheOnlyWorkerDiesAtAnyStep) { expect_same_ends(one_worker_dies); }
TEST(TaskModelReduction, TheOnlyWorkerDiesUnderTwoWaiters) {
  expect_same_ends({.second_has_sink = false, .crashes = 1, .workers = 1});
}
TEST(TaskModelReduction, TheOnlyWorkerDiesWhileATaskIsCancelled) {
  expect_same_ends({.second_cancels = true, .crashes = 1, .workers = 1});
}
TEST(TaskModelReduction, OneOfTwoWorkersDiesAtAnyStep) { expect_same_ends({.crashes = 1, .workers = 2, .clients = 1}); }
TEST(TaskModelReduction, ATaskRunsTooLong) { expect_same_ends(one_worker_times_out); }
TEST(TaskModelReduction, ATaskRunsTooLongOnOneOfTwoWorkers) {
  expect_same_ends({.crashes = 0, .timeouts = 1, .workers = 2, .clients = 1});
}

TEST(TaskModelReduction, AFailedTaskIsRunAgain) { expect_same_ends(one_worker_fails); }
TEST(TaskModelReduction, AFailedTaskIsRunAgainByEitherWorker) {
  expect_same_ends({.first_has_sink = true, .retries = 1, .errors = 1, .crashes = 0, .workers = 2, .clients = 1});
}
TEST(TaskModelReduction, AFailedTaskIsRunAgainAlthoughTheWorkerDies) {
  expect_same_ends({.first_has_sink = true, .retries = 1, .errors = 1, .crashes = 1, .workers = 1, .clients = 1});
}

TEST(TaskModelMutation, RunningAgainWithoutAWakeIsNoticed) {
  expect_noticed_in_any_order(one_worker_fails, mutation::retry_without_wake);
}
TEST(TaskModelMutation, ParkingWithoutASecondLookIsNoticed) {
  expect_noticed_in_any_order(two_workers, mutation::park_without_second_look);
}
TEST(TaskModelMutation, CompletingWithoutWakingTheWaiterIsNoticed) {
  expect_noticed_in_any_order(two_workers, mutation::complete_without_wake);
}
TEST(TaskModelMutation, CompletingWithoutTheRingIsNoticed) {
  expect_noticed_in_any_order(one_worker, mutation::complete_without_ring);
}
TEST(TaskModelMutation, PostingWithoutAWakeIsNoticed) {
  expect_noticed_in_any_order(two_workers, mutation::post_without_wake);
}
TEST(TaskModelMutation, SleepingWithoutAskingForAWakeIsNoticed) {
  expect_noticed_in_any_order(two_workers, mutation::wait_without_request);
}
TEST(TaskModelMutation, RecoveryThatForgetsWhatWasDoneIsNoticed) {
  expect_noticed_in_any_order(one_worker_dies, mutation::recover_without_done_slots);
}
TEST(TaskModelMutation, RecoveryThatFailsWhatHadNotBegunIsNoticed) {
  expect_noticed_in_any_order(one_worker_dies, mutation::recover_without_requeue);
}
TEST(TaskModelMutation, RecoveryThatMovesATaskUnderItsWaiterIsNoticed) {
  expect_noticed_in_any_order(one_worker_dies, mutation::recover_without_waking_waiter);
}
TEST(TaskModelMutation, RecoveryThatForgetsARingOwedByTheDeadIsNoticed) {
  expect_noticed_in_any_order({.first_has_sink = true, .crashes = 1, .workers = 1}, mutation::recover_without_bell);
}
TEST(TaskModelMutation, AKillWithoutBindingTheWorkerToTheTaskIsNoticed) {
  expect_noticed_in_any_order(one_worker_times_out, mutation::timeout_without_doom);
}
TEST(TaskModelMutation, AWorkerThatGoesOnAlthoughItIsDoomedIsNoticed) {
  expect_noticed_in_any_order(one_worker_times_out, mutation::complete_despite_doom);
}
TEST(TaskModelMutation, ATimeoutThatForgetsWhatWasDoneIsNoticed) {
  expect_noticed_in_any_order(one_worker_times_out, mutation::timeout_without_done);
}
TEST(TaskModelMutation, ATimeoutOfWhatHadNotBegunIsNoticed) {
  expect_noticed_in_any_order(one_worker_times_out, mutation::timeout_before_begin);
}
TEST(TaskModelMutation, ATimeoutRememberedForTheNextRunIsNoticed) {
  expect_noticed_in_any_order({.crashes = 1, .timeouts = 1, .workers = 2, .clients = 1}, mutation::timeout_kept);
}
TEST(TaskModelMutation, ATimedOutTaskThatIsPostedAgainIsNoticed) {
  expect_noticed_in_any_order(one_worker_times_out, mutation::timeout_reposted);
}
TEST(TaskModelMutation, RecoveryThatForgetsAWakeOwedByTheDeadIsNoticed) {
  expect_noticed({.crashes = 1}, mutation::recover_without_wake_all);
}
// Without spinning workers every task has a wake of its own: the chain only saves the parent system calls.
TEST(TaskModelMutation, TheChainOfWakesIsAnOptimisation) {
  auto what = one_worker_dies;
  what.left_out = mutation::no_chain_wake;
  expect_right(what);
}
// A doomed task that begins all the same times out like any other. The look before it begins spares it that mostly.
TEST(TaskModelMutation, LookingForDoomBeforeATaskBeginsIsAnOptimisation) {
  auto what = one_worker_times_out;
  what.left_out = mutation::begin_despite_doom;
  expect_right(what);
}

}  // namespace
}  // namespace muster::model
