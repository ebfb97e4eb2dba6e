// SPDX-License-Identifier: BSL-1.0
// task_options::deadline: queued, running, waiting to be tried again; of tasks, maps and streams.
#include <numeric>
#include <ranges>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "waiting_tasks.hpp"

namespace muster::deadline_test {
namespace {

using namespace std::chrono_literals;
using test::occupied;
using test::quiet;
using test::run_for_ever;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }
int hang_at_seven(int x) {
  if (x == 7) {
    for (;;) ::pause();
  }
  return x;
}

TEST(Deadline, ATaskThatWaitsForAWorkerEndsWithoutOne) {
  const pool pool(quiet(1));
  const occupied until_the_end(pool);
  const auto late = pool.with({.deadline = 30ms, .label = "late"}).apply_async(add, 1, 2).get_result();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error(), errc::timed_out);
  EXPECT_THAT(late.error().describe(), HasSubstr("before a worker had begun it"));
  EXPECT_THAT(late.error().describe(), HasSubstr("late"));
  EXPECT_EQ(pool.stats().pending, 1U);
  EXPECT_EQ(pool.stats().workers.overdue, 0U);
  EXPECT_EQ(pool.stats().tasks.timed_out, 1U);
}

TEST(Deadline, ATaskThatWaitsForASlotEndsToo) {
  const pool pool(quiet(1));
  std::vector<future<int>> others;
  {
    const occupied until_it_is_late(pool);
    for (int each = 0; each < 5000; ++each) others.push_back(pool.apply_async(add, each, 1));
    EXPECT_EQ(pool.with({.deadline = 30ms}).apply_async(add, 1, 2).get_result().error(), errc::timed_out);
  }
  for (int each = 0; each < 5000; ++each) ASSERT_EQ(others[static_cast<std::size_t>(each)].get(), each + 1);
}

TEST(Deadline, ATaskThatRunsIsEndedWithItsWorker) {
  const pool pool(quiet(1));
  const event began;
  const auto found = pool.with({.deadline = 50ms}).apply_async(run_for_ever, began).get_result();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error(), errc::timed_out);
  EXPECT_THAT(found.error().describe(), HasSubstr("while it ran"));
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
  EXPECT_EQ(pool.stats().workers.overdue, 1U);
}

TEST(Deadline, OneThatIsInTimeGivesItsValue) {
  const pool pool(quiet(2));
  const auto timely = pool.with({.deadline = 60s});
  for (int each = 0; each < 200; ++each) EXPECT_EQ(timely.apply(add, each, 1), each + 1);
  EXPECT_EQ(pool.stats().tasks.timed_out, 0U);
}

TEST(Deadline, OneInThePastIsOverAtOnce) {
  const pool pool(quiet(1));
  EXPECT_EQ(pool.with({.deadline = -1ms})
                .apply_async([] {
                  for (;;) ::pause();
                })
                .get_result()
                .error(),
            errc::timed_out);
}

TEST(Deadline, NothingIsTriedAgainAfterIt) {
  const pool pool(quiet(1));
  const event began;
  const auto patient = pool.with({.deadline = 50ms, .retries = 100, .retry_on = retry::timeout(), .retry_delay = 1h});
  EXPECT_EQ(patient.apply_async(run_for_ever, began).get_result().error(), errc::timed_out);
  EXPECT_EQ(pool.stats().tasks.retried, 0U);
}

TEST(Deadline, AnAttemptThatWouldComeTooLateIsNotWaitedFor) {
  const pool pool(quiet(1));
  const auto eager = pool.with({.deadline = 50ms, .retries = 1, .retry_on = retry::exceptions(), .retry_delay = 1h});
  const auto found = eager.apply_async([]() -> int { throw std::runtime_error("no"); }).get_result();
  EXPECT_EQ(found.error(), errc::timed_out);
}

TEST(Deadline, OfAMapEndsWhatIsLeftOfIt) {
  const pool pool(quiet(2));
  std::vector<int> input(1000);
  std::iota(input.begin(), input.end(), 0);
  const auto found = pool.with({.deadline = 200ms, .chunk = 1}).collect_errors().map(hang_at_seven, input);
  if (found[0]) {
    EXPECT_EQ(*found[0], 0);
  } else {
    EXPECT_EQ(found[0].error(), errc::timed_out) << "all is slow";
  }
  EXPECT_EQ(found[7].error(), errc::timed_out);
  EXPECT_EQ(found[7].error().place().element, 7U);
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
}

TEST(Deadline, OfAMapFailsElementsThatNobodyHasBegun) {
  const pool pool(quiet(1));
  std::vector<int> input(100'000, 7);
  const auto found = pool.with({.deadline = 50ms, .chunk = 10}).collect_errors().map(hang_at_seven, input);
  ASSERT_EQ(found.size(), input.size());
  for (const auto& each : found) ASSERT_EQ(each.error(), errc::timed_out);
  EXPECT_EQ(pool.stats().tasks.timed_out, input.size());
}

// Where all is slow, the time may be over before the seventh: then as much more is late.
TEST(Deadline, OfAStreamIsThatOfTheWhole) {
  const pool pool(quiet(1));
  for (const std::size_t chunk : {std::size_t{5}, std::size_t{1}}) {
    std::size_t in_time = 0;
    std::size_t late = 0;
    const auto calls = pool.with({.deadline = 100ms, .chunk = chunk});
    for (auto& each : calls.imap(hang_at_seven, std::views::iota(0, 50)).as_results()) {
      if (each) {
        EXPECT_EQ(late, 0U) << "time does not come back";
        ++in_time;
      } else {
        EXPECT_EQ(each.error(), errc::timed_out);
        ++late;
      }
    }
    EXPECT_LE(in_time, 7U);
    EXPECT_EQ(in_time + late, 50U);
  }
}

}  // namespace
}  // namespace muster::deadline_test
