// SPDX-License-Identifier: BSL-1.0
// How far a cancellation goes: future::cancel.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::cancel_test {
namespace {

using namespace std::chrono_literals;
using test::quiet;
using test::run_for_ever;
using test::run_until;
using test::run_until_asked;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

TEST(Cancel, KillEndsATaskThatHasBegunAndItsWorkerIsReplaced) {
  const pool pool(quiet(1));
  const event began;
  auto hanging = pool.with({.label = "hanging"}).apply_async(run_for_ever, began);
  began.wait();
  EXPECT_FALSE(hanging.cancel(cancellation::kill));
  const auto found = hanging.get_result();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error(), errc::cancelled);
  EXPECT_THAT(found.error().describe(), HasSubstr("its worker was killed"));
  EXPECT_THAT(found.error().describe(), HasSubstr("hanging"));
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
  EXPECT_EQ(pool.stats().workers.cancelled, 1U);
  EXPECT_EQ(pool.stats().workers.overdue, 0U);
  EXPECT_EQ(pool.stats().tasks.lost, 0U);
  EXPECT_EQ(pool.stats().tasks.timed_out, 0U);
}

TEST(Cancel, KillIsNotRetried) {
  const pool pool(quiet(1));
  const event began;
  auto hanging = pool.with({.retries = 5}).apply_async(run_for_ever, began);
  began.wait();
  hanging.cancel(cancellation::kill);
  EXPECT_EQ(hanging.get_result().error(), errc::cancelled);
  EXPECT_EQ(pool.stats().tasks.retried, 0U);
}

TEST(Cancel, KillWithdrawsWhatNobodyHasBegun) {
  const pool pool(quiet(1));
  const event began;
  const event end;
  auto first = pool.apply_async(run_until, began, end);
  began.wait();
  auto second = pool.apply_async(add, 1, 2);
  EXPECT_TRUE(second.cancel(cancellation::kill));
  EXPECT_EQ(second.get_result().error(), errc::cancelled);
  end.set();
  EXPECT_FALSE(first.get());
  EXPECT_EQ(pool.stats().workers.cancelled, 0U);
}

TEST(Cancel, KillHarmsNoOtherTask) {
  const pool pool(quiet(2));
  std::vector<future<int>> others;
  std::vector<future<void>> hanging;
  std::vector<event> began(4);
  for (int each = 0; each < 400; ++each) {
    others.push_back(pool.apply_async(add, each, 1));
    if (each % 100 == 50)
      hanging.push_back(pool.apply_async(run_for_ever, began[static_cast<std::size_t>(each / 100)]));
  }
  for (std::size_t each = 0; each < hanging.size(); ++each) {
    began[each].wait();
    hanging[each].cancel(cancellation::kill);
    EXPECT_EQ(hanging[each].get_result().error(), errc::cancelled);
  }
  for (int each = 0; each < 400; ++each) EXPECT_EQ(others[static_cast<std::size_t>(each)].get(), each + 1);
  EXPECT_EQ(pool.stats().tasks.lost, 0U);
}

TEST(Cancel, KillOfADoneTaskLeavesItsValue) {
  const pool pool(quiet(1));
  auto done = pool.apply_async(add, 1, 2);
  done.wait();
  EXPECT_FALSE(done.cancel(cancellation::kill));
  EXPECT_EQ(done.get(), 3);
  EXPECT_EQ(pool.stats().workers.cancelled, 0U);
}

TEST(Cancel, WithdrawLeavesWhatHasBegunAlone) {
  const pool pool(quiet(1));
  const event began;
  const event end;
  auto running = pool.apply_async(run_until, began, end);
  began.wait();
  EXPECT_FALSE(running.cancel(cancellation::withdraw));
  end.set();
  EXPECT_FALSE(running.get());
}

TEST(Cancel, AskedTaskMayEndWithItsValue) {
  const pool pool(quiet(1));
  const event began;
  auto running = pool.apply_async(run_until_asked, began);
  began.wait();
  EXPECT_FALSE(running.cancel());
  EXPECT_EQ(running.get(), 7);
}

TEST(Cancel, MapIsGivenUpUnlessItMayOnlyBeWithdrawn) {
  const pool pool(quiet(1));
  const event began;
  const event end;
  auto running = pool.map_async([](const event& each) { return each.wait_for(60s); }, std::vector<event>{began, end});
  EXPECT_FALSE(running.cancel(cancellation::withdraw));
  EXPECT_TRUE(running.cancel(cancellation::kill));
  EXPECT_EQ(running.get_result().error(), errc::cancelled);
  began.set();
  end.set();
}

TEST(Cancel, ThreadIsAskedWhereAProcessWouldBeKilled) {
  const thread_pool pool({.workers = 1});
  const event began;
  auto running = pool.apply_async(run_until_asked, began);
  began.wait();
  EXPECT_FALSE(running.cancel(cancellation::withdraw));
  EXPECT_FALSE(running.ready());
  EXPECT_FALSE(running.cancel(cancellation::kill));
  EXPECT_EQ(running.get(), 7);
}

TEST(Cancel, KillsThatRaceWithTheEndOfTheirTasksHaveOneOutcome) {
  const pool pool(quiet(2));
  unsigned cancelled = 0;
  for (int round = 0; round < 200; ++round) {
    auto task = pool.apply_async(
        [](int n) {
          for (int each = 0; each < n * 50; ++each) asm volatile("");
          return n;
        },
        round);
    task.cancel(cancellation::kill);
    const auto found = task.get_result();
    if (found.has_value()) {
      EXPECT_EQ(found.value(), round);
    } else {
      EXPECT_EQ(found.error(), errc::cancelled) << found.error().describe();
      ++cancelled;
    }
  }
  EXPECT_LE(pool.stats().workers.cancelled, cancelled);
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
}

}  // namespace
}  // namespace muster::cancel_test
