// SPDX-License-Identifier: BSL-1.0
#include <muster/process/lifecycle.hpp>

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle_test {
namespace {

using action = worker_lifecycle::action;
using state = worker_lifecycle::state;
using testing::HasSubstr;

const auto killed = exit_status::killed(SIGKILL);
const error_info no_model(errc::start_failed, "no model");

worker_lifecycle working(unsigned tries = 3) {
  worker_lifecycle life(tries);
  life.start();
  life.greeted();
  life.ready();
  return life;
}

TEST(Lifecycle, AGoodStartEndsInWorking) {
  worker_lifecycle life(3);
  EXPECT_EQ(life.now(), state::absent);
  EXPECT_EQ(life.start(), action::spawn);
  EXPECT_EQ(life.now(), state::starting);
  EXPECT_EQ(life.greeted(), action::none);
  EXPECT_EQ(life.now(), state::initializing);
  EXPECT_EQ(life.ready(), action::none);
  EXPECT_EQ(life.now(), state::working);
}

TEST(Lifecycle, AnEndThatIsNoFaultOfItsOwnIsNoFailedStart) {
  worker_lifecycle life(1);
  life.start();
  for (int each = 0; each < 5; ++each) {
    life.excuse();
    EXPECT_EQ(life.failed(no_model), action::kill);
    EXPECT_EQ(life.ended(killed), action::spawn);
    EXPECT_EQ(life.failures(), 0U);
  }
  EXPECT_EQ(life.ended(killed), action::give_up) << "the excuse was for one end";
}

TEST(Lifecycle, AWorkerThatClosesItsSocketIsKilledAndReplaced) {
  auto life = working();
  EXPECT_EQ(life.deserted(), action::kill);
  EXPECT_EQ(life.ended(killed), action::spawn);
  EXPECT_EQ(life.failures(), 0U);
}

TEST(Lifecycle, AWorkerThatClosesItsSocketBeforeItWorksIsAFailedStart) {
  for (const bool greeted : {false, true}) {
    worker_lifecycle life(1);
    life.start();
    if (greeted) life.greeted();
    EXPECT_EQ(life.deserted(), action::kill);
    EXPECT_EQ(life.ended(killed), action::give_up);
    EXPECT_THAT(life.failure().message(), HasSubstr("closed its control socket"));
  }
}

TEST(Lifecycle, AWorkerThatClosesItsSocketWhenItIsToldToLeaveIsKilledAndNotReplaced) {
  auto life = working();
  life.stop();
  EXPECT_EQ(life.deserted(), action::kill);
  EXPECT_EQ(life.ended(killed), action::none);
  EXPECT_EQ(life.deserted(), action::none) << "there is no process";
}

TEST(Lifecycle, AWorkerThatDiesIsReplaced) {
  auto life = working();
  EXPECT_EQ(life.ended(killed), action::spawn);
  EXPECT_EQ(life.now(), state::starting);
  EXPECT_EQ(life.failures(), 0U);
}

TEST(Lifecycle, DeathsAtWorkNeverBreakTheCrew) {
  auto life = working(2);
  for (int death = 0; death < 100; ++death) {
    ASSERT_EQ(life.ended(killed), action::spawn);
    life.greeted();
    life.ready();
  }
}

TEST(Lifecycle, StartsThatFailInARowGiveUpWithTheReason) {
  worker_lifecycle life(3);
  life.start();
  EXPECT_EQ(life.ended(exit_status::exited(1)), action::spawn);
  EXPECT_EQ(life.ended(exit_status::exited(1)), action::spawn);
  EXPECT_EQ(life.ended(exit_status::exited(1)), action::give_up);
  EXPECT_EQ(life.failure(), errc::start_failed);
  EXPECT_THAT(life.failure().message(), testing::AllOf(HasSubstr("exited with code 1"), HasSubstr("muster::init")));
}

TEST(Lifecycle, WhatAFailedStartHasLeftBehindIsInTheReason) {
  worker_lifecycle life(1);
  life.start();
  EXPECT_EQ(life.ended(exit_status::exited(1), {.output = "no such file\n", .crash = ""}), action::give_up);
  EXPECT_EQ(life.failure().last_output(), "no such file\n");
}

TEST(Lifecycle, AGoodStartForgetsEarlierFailures) {
  worker_lifecycle life(2);
  life.start();
  ASSERT_EQ(life.ended(killed), action::spawn);
  life.greeted();
  life.ready();
  ASSERT_EQ(life.ended(killed), action::spawn);
  EXPECT_EQ(life.ended(killed), action::spawn) << "the first failure in a row again";
  EXPECT_EQ(life.ended(killed), action::give_up);
}

TEST(Lifecycle, AFailingInitializerIsKilledAndItsErrorKept) {
  worker_lifecycle life(1);
  life.start();
  life.greeted();
  EXPECT_EQ(life.failed(no_model), action::kill);
  EXPECT_EQ(life.ended(killed), action::give_up);
  EXPECT_EQ(life.failure().message(), "no model");
}

TEST(Lifecycle, ASilentStartIsKilled) {
  worker_lifecycle life(1);
  life.start();
  EXPECT_EQ(life.timed_out(), action::kill);
  EXPECT_EQ(life.ended(killed), action::give_up);
  EXPECT_THAT(life.failure().message(), HasSubstr("silent for too long before it reached muster::init"));
}

TEST(Lifecycle, ASilentInitializerIsKilled) {
  worker_lifecycle life(1);
  life.start();
  life.greeted();
  EXPECT_EQ(life.timed_out(), action::kill);
  EXPECT_THAT((life.ended(killed), life.failure().message()), HasSubstr("initialized"));
}

TEST(Lifecycle, ATimerThatFiresLateDoesNothing) {
  auto life = working();
  EXPECT_EQ(life.timed_out(), action::none);
}

TEST(Lifecycle, AStoppedWorkerIsNotReplaced) {
  auto life = working();
  EXPECT_EQ(life.stop(), action::none) << "it was told to leave";
  EXPECT_EQ(life.now(), state::stopping);
  EXPECT_EQ(life.ended(exit_status::exited(0)), action::none);
  EXPECT_EQ(life.now(), state::absent);
}

TEST(Lifecycle, AWorkerStoppedBeforeItWasGreetedIsKilled) {
  worker_lifecycle life(3);
  life.start();
  EXPECT_EQ(life.stop(), action::kill);
  EXPECT_EQ(life.ended(killed), action::none);
}

// It may have run tasks already, with its message on the way: its finalizer must run.
TEST(Lifecycle, AWorkerStoppedDuringItsInitializationMayFinishIt) {
  worker_lifecycle life(3);
  life.start();
  life.greeted();
  EXPECT_EQ(life.stop(), action::none);
  EXPECT_EQ(life.ready(), action::none);
  EXPECT_EQ(life.timed_out(), action::none);
  EXPECT_EQ(life.ended(exit_status::exited(0)), action::none);
}

TEST(Lifecycle, AWorkerStoppedDuringAnInitializationThatHangsIsKilledInTheEnd) {
  worker_lifecycle life(3);
  life.start();
  life.greeted();
  life.stop();
  EXPECT_EQ(life.timed_out(), action::kill);
  EXPECT_EQ(life.ended(killed), action::none);
}

TEST(Lifecycle, NewsOfAWorkerThatIsStoppingChangeNothing) {
  worker_lifecycle life(3);
  life.start();
  life.stop();
  EXPECT_EQ(life.greeted(), action::none);
  EXPECT_EQ(life.ready(), action::none);
  EXPECT_EQ(life.failed(no_model), action::kill);
  EXPECT_EQ(life.now(), state::stopping);
}

}  // namespace
}  // namespace muster::lifecycle_test
