// SPDX-License-Identifier: BSL-1.0
// What the parent makes of the times that workers say.
#include <muster/queue/task_timing.hpp>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "../../queue/src/current_task.hpp"
#include "queue_support.hpp"

namespace muster::dispatcher_timing_test {
namespace {

using test::thread_world;
using testing::IsEmpty;
using testing::SizeIs;

int add(int a, int b) { return a + b; }

std::uint64_t bits_of(clock::time_point when) { return static_cast<std::uint64_t>(when.time_since_epoch().count()); }

class DispatcherTiming : public testing::Test {
protected:
  void begin() {
    world_.tasks().begin_events([this] { ++told_; });
  }
  task_times& times_of(const task_record& record) { return world_.shared_board().times(record.where().slot); }
  task_record& post_and_wait() {
    auto& record = world_.post<add>(1, 2);
    EXPECT_TRUE(world_.tasks().wait(record));
    return record;
  }
  task_event take_event() {
    std::vector<task_event> events;
    EXPECT_EQ(world_.tasks().take_events(events), 0U);
    EXPECT_THAT(events, SizeIs(1));
    return events.empty() ? task_event() : events.front();
  }
  // One whose worker says this; it must still be within what the parent knows.
  task_event event_when_worker_says(std::uint64_t first, std::uint64_t last) {
    const auto before = clock::now();
    auto& record = post_and_wait();
    times_of(record).begin = first;
    times_of(record).end = last;
    EXPECT_EQ(test::value_of<int>(world_.tasks().take(record)), 3);
    const auto event = take_event();
    EXPECT_LE(before, event.submitted);
    EXPECT_LE(event.submitted, event.begin);
    EXPECT_LE(event.begin, event.end);
    EXPECT_LE(event.end, clock::now());
    return event;
  }

  int told_ = 0;
  thread_world world_{1};
};

TEST_F(DispatcherTiming, WithoutItNothingIsWrittenOrKept) {
  world_.start_workers();
  auto& record = post_and_wait();
  EXPECT_EQ(times_of(record).begin, 0U);
  static_cast<void>(world_.tasks().take(record));
  std::vector<task_event> events;
  EXPECT_EQ(world_.tasks().take_events(events), 0U);
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(DispatcherTiming, TheTimesAreThoseOfTheWorker) {
  begin();
  world_.start_workers();
  auto& record = post_and_wait();
  const auto first = times_of(record).begin.load();
  const auto last = times_of(record).end.load();
  static_cast<void>(world_.tasks().take(record));
  const auto event = take_event();
  EXPECT_TRUE(event.told);
  EXPECT_EQ(bits_of(event.begin), first);
  EXPECT_EQ(bits_of(event.end), last);
  EXPECT_EQ(event.outcome, task_outcome::ok);
  EXPECT_EQ(event.worker, 0);
  EXPECT_EQ(told_, 1);
}

TEST_F(DispatcherTiming, WhatIsImpossibleIsNotBelieved) {
  begin();
  world_.start_workers();
  const auto long_ago = bits_of(clock::now());
  const auto far = bits_of(clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(event_when_worker_says(0, 0).told);
  EXPECT_FALSE(event_when_worker_says(long_ago, bits_of(clock::now())).told);
  EXPECT_FALSE(event_when_worker_says(far, far).told);
  EXPECT_FALSE(event_when_worker_says(UINT64_MAX, UINT64_MAX).told);
  EXPECT_FALSE(event_when_worker_says(std::uint64_t{1} << 63U, INT64_MAX).told);
}

TEST_F(DispatcherTiming, ADeadWorkersTaskEndsWhenTheParentLearnsOfIt) {
  begin();
  auto& record = world_.post<add>(1, 2);
  const auto where = record.where();
  ASSERT_TRUE(slot_protocol::try_claim(world_.shared_board().slot(where.slot).word, where.generation, 1));
  const auto start = clock::now();
  times_of(record).begin = bits_of(start);
  world_.shared_board().line(0).current = current_task(where.slot, where.generation);
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  EXPECT_FALSE(world_.tasks().take(record).succeeded());
  const auto event = take_event();
  EXPECT_EQ(event.outcome, task_outcome::worker_died);
  EXPECT_EQ(event.begin, start);
  EXPECT_GE(event.end, start);
}

TEST_F(DispatcherTiming, AClaimThatNeverBeganIsNoRun) {
  begin();
  auto& record = world_.post<add>(1, 2);
  const auto where = record.where();
  ASSERT_TRUE(slot_protocol::try_claim(world_.shared_board().slot(where.slot).word, where.generation, 1));
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  world_.start_workers();
  ASSERT_TRUE(world_.tasks().wait(record));
  static_cast<void>(world_.tasks().take(record));
  EXPECT_EQ(take_event().outcome, task_outcome::ok);
}

TEST(TaskTiming, EventsThatNobodyTakesAreBounded) {
  task_timing timing(1);
  int told = 0;
  timing.begin_events([&] { ++told; });
  const task_event event{.worker = 0, .submitted = {}};
  for (std::size_t each = 0; each < task_timing::most_events + 7; ++each) timing.ran(event, false);
  std::vector<task_event> events;
  EXPECT_EQ(timing.take_events(events), 7U);
  EXPECT_THAT(events, SizeIs(task_timing::most_events));
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace muster::dispatcher_timing_test
