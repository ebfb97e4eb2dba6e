// SPDX-License-Identifier: BSL-1.0
// task_options::retries, retry_on and retry_delay; pool_options::quarantine_after; this_task::attempt.
#include <csignal>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::retry_test {
namespace {

using namespace std::chrono_literals;
using test::quiet;
using test::run_until_asked;
using testing::ElementsAre;
using testing::HasSubstr;

struct busy : std::runtime_error {
  busy() : std::runtime_error("busy") {}
};
struct hopeless : std::runtime_error {
  hopeless() : std::runtime_error("hopeless") {}
};

// Its result says which attempt it was.
unsigned busy_until(unsigned attempt) {
  if (this_task::attempt() < attempt) throw busy();
  return this_task::attempt();
}
unsigned dies_until(unsigned attempt) {
  if (this_task::attempt() < attempt) ::raise(SIGKILL);
  return this_task::attempt();
}
unsigned hangs_until(unsigned attempt) {
  while (this_task::attempt() < attempt) ::pause();
  return this_task::attempt();
}

TEST(Retry, TheLongestDelayWaits) {
  const pool pool(quiet(1));
  auto later = pool.with({.retries = 2,
                          .retry_on = retry::exceptions<std::runtime_error>(),
                          .retry_delay = std::chrono::nanoseconds::max()})
                   .apply_async([] { throw std::runtime_error("again"); });
  EXPECT_FALSE(later.wait_for(50ms));
  EXPECT_TRUE(later.cancel());
  EXPECT_FALSE(later.get_result().has_value());
}

TEST(Retry, AfterExceptionsIsAskedFor) {
  const pool pool(quiet(1));
  EXPECT_THROW(pool.with({.retries = 3}).apply(busy_until, 2U), std::runtime_error);
  EXPECT_EQ(pool.with({.retries = 3, .retry_on = retry::exceptions()}).apply(busy_until, 3U), 3U);
  EXPECT_EQ(pool.stats().tasks.retried, 2U);
}

TEST(Retry, TheLastFailureIsTheTasks) {
  const pool pool(quiet(1));
  const auto found =
      pool.with({.retries = 2, .retry_on = retry::exceptions()}).apply_async(busy_until, 9U).get_result();
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().describe(), HasSubstr("busy"));
  EXPECT_EQ(found.error().place().attempt, 3U);
}

TEST(Retry, OnlyAfterExceptionsThatWereChosen) {
  const pool pool(quiet(1));
  const auto choosy = pool.with({.retries = 5, .retry_on = retry::exceptions<busy, std::out_of_range>()});
  EXPECT_EQ(choosy.apply(busy_until, 2U), 2U);
  const auto found = choosy.apply_async([]() -> int { throw hopeless(); }).get_result();
  EXPECT_THAT(found.error().describe(), HasSubstr("hopeless"));
  EXPECT_EQ(found.error().place().attempt, 1U);
}

TEST(Retry, ReasonsThatWereNotChosenAreNone) {
  const pool pool(quiet(1));
  const auto choosy = pool.with({.retries = 5, .retry_on = retry::exceptions()});
  EXPECT_EQ(choosy.apply_async(dies_until, 2U).get_result().error(), errc::worker_died);
}

TEST(Retry, AfterDeathsExceptionsAndTimeouts) {
  const pool pool({.workers = 1, .quarantine_after = 0, .log = [](log_level, std::string_view) {}});
  const auto all =
      pool.with({.retries = 4, .retry_on = retry::death() | retry::timeout() | retry::exceptions(), .timeout = 100ms});
  EXPECT_EQ(all.apply(dies_until, 3U), 3U);
  EXPECT_EQ(all.apply(busy_until, 5U), 5U);
  EXPECT_EQ(all.apply(hangs_until, 2U), 2U);
  EXPECT_EQ(pool.stats().tasks.retried, 2U + 4U + 1U);
}

TEST(Retry, ByWhoeverLearnsOfTheEnd) {
  const pool pool(quiet(2));
  const auto patient = pool.with({.retries = 9, .retry_on = retry::exceptions()});
  auto taken = patient.apply_async(busy_until, 3U);
  auto waited = patient.apply_async(busy_until, 3U);
  auto polled = patient.apply_async(busy_until, 3U);
  auto after = patient.apply_async(busy_until, 3U).then([](unsigned attempt) { return attempt + 100; });
  static_cast<void>(patient.apply_async(busy_until, 3U));  // nobody
  EXPECT_EQ(taken.get(), 3U);
  EXPECT_TRUE(waited.wait_for(60s));
  EXPECT_EQ(waited.get(), 3U);
  EXPECT_TRUE(test::eventually([&] { return polled.ready(); }));
  EXPECT_EQ(polled.get(), 3U);
  EXPECT_EQ(after.get(), 103U);
  EXPECT_TRUE(test::eventually([&] { return pool.stats().pending == 0; }));
  EXPECT_EQ(pool.stats().tasks.retried, 10U);
}

TEST(Retry, ThousandsThatFailOnceAllSucceed) {
  const pool pool(quiet(2));
  const auto patient = pool.with({.retries = 1, .retry_on = retry::exceptions()});
  std::vector<future<unsigned>> futures;
  for (int each = 0; each < 3000; ++each) futures.push_back(patient.apply_async(busy_until, 2U));
  for (auto& each : futures) ASSERT_EQ(each.get(), 2U);
  EXPECT_EQ(pool.stats().tasks.retried, 3000U);
}

TEST(Retry, ADelayedAttemptKeepsNoWorkerBusy) {
  const pool pool(quiet(1));
  const auto begin = clock::now();
  auto delayed =
      pool.with({.retries = 2, .retry_on = retry::exceptions(), .retry_delay = 200ms}).apply_async(busy_until, 3U);
  for (unsigned each = 0; each < 100; ++each) ASSERT_EQ(pool.apply(busy_until, 1U), 1U);
  EXPECT_FALSE(delayed.ready());
  EXPECT_EQ(delayed.get(), 3U);
  EXPECT_GE(clock::now() - begin, 150ms + 300ms) << "200 ms and 400 ms, a quarter less at most";
}

TEST(Retry, ADelayedAttemptEndsWithThePool) {
  auto shortlived = std::make_unique<pool>(quiet(1));
  auto delayed =
      shortlived->with({.retries = 1, .retry_on = retry::exceptions(), .retry_delay = 1h}).apply_async(busy_until, 2U);
  EXPECT_TRUE(test::eventually([&] { return shortlived->stats().tasks.retried == 1; }));
  shortlived.reset();
  EXPECT_EQ(delayed.get_result().error(), errc::cancelled);
}

TEST(Retry, WhatWasAskedToStopIsNotTriedAgain) {
  const pool pool(quiet(1));
  const event began;
  const auto fails_when_asked = [](const event& event) -> int {
    run_until_asked(event);
    throw busy();
  };
  auto asked = pool.with({.retries = 5, .retry_on = retry::exceptions()}).apply_async(fails_when_asked, began);
  began.wait();
  asked.cancel();
  EXPECT_THAT(asked.get_result().error().describe(), HasSubstr("busy"));
  EXPECT_EQ(pool.stats().tasks.retried, 0U);
}

TEST(Retry, LargeArgumentsAreThereAgain) {
  const pool pool(quiet(1));
  const std::vector<int> large(100'000, 3);
  const auto last_of = [](const std::vector<int>& values, unsigned attempt) {
    busy_until(attempt);
    return values.back();
  };
  EXPECT_EQ(pool.with({.retries = 2, .retry_on = retry::exceptions()}).apply(last_of, large, 3U), 3);
  EXPECT_TRUE(test::eventually([&] { return pool.stats().memory.live_blocks == 0; }));
}

TEST(Retry, ElementsOfMapsToo) {
  const pool pool(quiet(2));
  const auto patient = pool.with({.retries = 3, .retry_on = retry::exceptions(), .chunk = 4});
  EXPECT_THAT(patient.map(busy_until, {1U, 2U, 3U, 1U, 4U, 1U}), ElementsAre(1, 2, 3, 1, 4, 1));
  EXPECT_THROW(patient.map(busy_until, {1U, 5U}), std::runtime_error);
  const auto found = patient.collect_errors().map(busy_until, {5U, 2U});
  EXPECT_EQ(found[0].error().place().attempt, 4U);
  EXPECT_EQ(*found[1], 2U);
}

TEST(Retry, DelayedElementsDoNotHoldUpOthers) {
  const pool pool(quiet(1));
  const auto patient = pool.with({.retries = 1, .retry_on = retry::exceptions(), .retry_delay = 300ms, .chunk = 1});
  const auto begin = clock::now();
  const std::vector<unsigned> input(50, 2);  // all fail once, and wait together
  EXPECT_EQ(patient.map(busy_until, input), input);
  EXPECT_LT(clock::now() - begin, 50 * 300ms);  // one after the other
  std::vector<unsigned> streamed;
  for (const unsigned each : patient.imap(busy_until, input)) streamed.push_back(each);
  EXPECT_EQ(streamed, input);
}

TEST(Retry, AttemptsAreZeroOutsideOfTasks) { EXPECT_EQ(this_task::attempt(), 0U); }

TEST(Quarantine, ATaskThatKilledTwoWorkersIsNotTriedAgain) {
  const pool pool(quiet(2));
  const auto found = pool.with({.retries = 100, .label = "poison"}).apply_async(dies_until, 101U).get_result();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error(), errc::quarantined);
  EXPECT_THAT(found.error().describe(), HasSubstr("it has killed 2 workers"));
  EXPECT_THAT(found.error().describe(), HasSubstr("poison"));
  EXPECT_EQ(found.error().status(), exit_status::killed(SIGKILL));
  EXPECT_EQ(pool.stats().tasks.quarantined, 1U);
  EXPECT_EQ(pool.stats().tasks.lost, 1U);
  EXPECT_EQ(pool.stats().tasks.retried, 1U);
  EXPECT_EQ(pool.apply(busy_until, 1U), 1U);
}

TEST(Quarantine, ItIsWorkerDiedWhenNoAttemptIsLeft) {
  const pool pool(quiet(1));
  EXPECT_EQ(pool.with({.retries = 1}).apply_async(dies_until, 9U).get_result().error(), errc::worker_died);
  EXPECT_EQ(pool.stats().tasks.quarantined, 0U);
}

TEST(Quarantine, SoManyDeathsAsThePoolSays) {
  const pool pool({.workers = 1, .quarantine_after = 3, .log = [](log_level, std::string_view) {}});
  EXPECT_EQ(pool.with({.retries = 9}).apply(dies_until, 3U), 3U);
  EXPECT_EQ(pool.with({.retries = 9}).apply_async(dies_until, 4U).get_result().error(), errc::quarantined);
}

TEST(Quarantine, ElementsOfMapsToo) {
  const pool pool(quiet(2));
  const auto found = pool.with({.retries = 9, .chunk = 3}).collect_errors().map(dies_until, {1U, 9U, 2U, 1U});
  EXPECT_EQ(*found[0], 1U);
  EXPECT_EQ(found[1].error(), errc::quarantined);
  EXPECT_EQ(*found[2], 2U);
  EXPECT_EQ(*found[3], 1U);
  EXPECT_EQ(pool.stats().tasks.quarantined, 1U);
}

}  // namespace
}  // namespace muster::retry_test
