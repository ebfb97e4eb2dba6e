// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/dispatcher.hpp>

#include <deque>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/serialize/exceptions.hpp>

#include "queue_support.hpp"

namespace muster::dispatcher_test {
namespace {

using namespace std::chrono_literals;
using test::thread_world;
using test::value_of;

int add(int a, int b) { return a + b; }
int fail_if_odd(int x) { return x % 2 == 0 ? x : throw std::runtime_error("odd"); }

// What one worker, a thread of this process, has run.
std::vector<int> run_log;
int append_to_log(int x) {
  run_log.push_back(x);
  return x;
}

// Holds workers until a test lets them go; the workers are threads of this process.
std::atomic<int> gate_arrivals = 0;
std::promise<void>* gate = nullptr;
int wait_at_gate(int x) {
  auto passed = gate->get_future().share();
  gate_arrivals.fetch_add(1);
  passed.wait();
  return x;
}

class closed_gate {
public:
  closed_gate() {
    gate_arrivals = 0;
    gate = &promise_;
  }
  closed_gate(const closed_gate&) = delete;
  closed_gate& operator=(const closed_gate&) = delete;
  void wait_for_arrival() {
    ASSERT_TRUE(test::eventually([] { return gate_arrivals == 1; }));
  }
  void open() { promise_.set_value(); }

private:
  std::promise<void> promise_;
};

TEST(Dispatcher, ATaskGivesItsValue) {
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<add>(2, 3);
  EXPECT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 5);
  EXPECT_EQ(world.tasks().pending(), 0U);
}

TEST(Dispatcher, ATasksExceptionIsItsReply) {
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<fail_if_odd>(1);
  EXPECT_TRUE(world.tasks().wait(record));
  EXPECT_THROW(value_of<int>(world.tasks().take(record)), std::runtime_error);
}

TEST(Dispatcher, ManyTasksOfManyThreadsAllEndRight) {
  thread_world world(2);
  world.start_workers();
  std::atomic<int> wrong = 0;
  const auto client = [&](int seed) {
    std::deque<std::pair<int, task_record*>> window;
    for (int round = 0; round < 3000; ++round) {
      window.emplace_back(seed + round, &world.post<add>(seed, round));
      if (window.size() < 20) continue;
      auto& [expected, record] = window.front();
      world.tasks().wait(*record);
      if (value_of<int>(world.tasks().take(*record)) != expected) ++wrong;
      window.pop_front();
    }
    for (auto& [expected, record] : window) {
      world.tasks().wait(*record);
      if (value_of<int>(world.tasks().take(*record)) != expected) ++wrong;
    }
  };
  std::thread other(client, 100000);
  client(7);
  other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(world.tasks().read_statistics().ended, 6000U);
}

TEST(Dispatcher, MoreTasksThanSlotsWaitInPrivateMemory) {
  thread_world world(1, {}, 4);
  std::vector<task_record*> records;
  for (int each = 0; each < 1000; ++each) records.push_back(&world.post<add>(each, 1));
  EXPECT_EQ(world.tasks().read_statistics().waiting, 996U);
  world.start_workers();
  for (int each = 0; each < 1000; ++each) {
    ASSERT_TRUE(world.tasks().wait(*records[static_cast<std::size_t>(each)]));
    EXPECT_EQ(value_of<int>(world.tasks().take(*records[static_cast<std::size_t>(each)])), each + 1);
  }
}

TEST(Dispatcher, WaitingTasksProceedThoughNobodyTakesResults) {
  thread_world world(1, {}, 4);
  world.start_workers();
  std::vector<task_record*> records;
  for (int each = 0; each < 500; ++each) records.push_back(&world.post<add>(each, 1));
  EXPECT_TRUE(world.tasks().wait(*records.back())) << "the last one needs all slots before it to be freed";
  for (auto* record : records) {
    ASSERT_TRUE(world.tasks().wait(*record));
    static_cast<void>(world.tasks().take(*record));
  }
}

TEST(Dispatcher, WaitEndsAtItsDeadlineAndLeavesTheTask) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  EXPECT_FALSE(world.tasks().wait(record, deadline::after(1ms)));
  EXPECT_FALSE(world.tasks().is_done(record));
  world.start_workers();
  EXPECT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 2);
}

TEST(Dispatcher, SinksAreToldOnceEach) {
  thread_world world(2);
  world.start_workers();
  test::counted_ends ends(world.tasks());
  for (int each = 0; each < 500; ++each) {
    auto request = world.request<fail_if_odd>(each);
    request.sink = &ends.make_sink();
    world.tasks().post(std::move(request));
  }
  EXPECT_TRUE(test::eventually([&] { return ends.values() + ends.errors() == 500; }));
  EXPECT_EQ(ends.values(), 250U);
  EXPECT_EQ(ends.errors(), 250U);
}

TEST(Dispatcher, ASinkThatComesLateIsTold) {
  thread_world world(1);
  world.start_workers();
  test::counted_ends ends(world.tasks());
  for (int each = 0; each < 300; ++each) world.tasks().subscribe(world.post<add>(each, 1), ends.make_sink());
  auto& done = world.post<add>(1, 1);
  ASSERT_TRUE(world.tasks().wait(done));
  world.tasks().subscribe(done, ends.make_sink());
  EXPECT_TRUE(test::eventually([&] { return ends.values() == 301; }));
}

TEST(Dispatcher, DetachedTasksRunAndAreFreed) {
  thread_world world(1, {}, 4);
  world.start_workers();
  for (int each = 0; each < 200; ++each) world.tasks().detach(world.post<add>(each, 1));
  EXPECT_TRUE(world.tasks().wait_until_empty(deadline::after(30s)));
  EXPECT_EQ(world.tasks().read_statistics().ended, 200U);
}

TEST(Dispatcher, AQueuedTaskCanBeWithdrawn) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  EXPECT_TRUE(world.tasks().cancel(record));
  EXPECT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::cancelled);
  world.start_workers();
  auto& next = world.post<add>(2, 2);
  EXPECT_TRUE(world.tasks().wait(next));
  EXPECT_EQ(value_of<int>(world.tasks().take(next)), 4);
}

TEST(Dispatcher, AWaitingTaskCanBeWithdrawn) {
  thread_world world(1, {}, 2);
  std::vector<task_record*> records;
  for (int each = 0; each < 5; ++each) records.push_back(&world.post<add>(each, 1));
  EXPECT_TRUE(world.tasks().cancel(*records[4]));
  world.start_workers();
  for (auto* record : records) {
    ASSERT_TRUE(world.tasks().wait(*record));
    static_cast<void>(world.tasks().take(*record));
  }
}

TEST(Dispatcher, WhatIsLeftOfManyWaitingTasksRunsInItsOrder) {
  run_log.clear();
  thread_world world(1, {}, 2);
  std::vector<task_record*> records;
  for (int each = 0; each < 1000; ++each) records.push_back(&world.post<append_to_log>(each));
  for (std::size_t each = records.size() - 1; each >= 10; each -= 3) EXPECT_TRUE(world.tasks().cancel(*records[each]));
  world.start_workers();
  std::vector<int> ran;
  for (std::size_t each = 0; each < records.size(); ++each) {
    ASSERT_TRUE(world.tasks().wait(*records[each]));
    if (world.tasks().take(*records[each]).succeeded()) ran.push_back(static_cast<int>(each));
  }
  EXPECT_EQ(ran.size(), 670U);
  EXPECT_EQ(run_log, ran);
}

TEST(Dispatcher, ARunningTaskCannotBeWithdrawn) {
  closed_gate closed;
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<wait_at_gate>(5);
  closed.wait_for_arrival();
  EXPECT_FALSE(world.tasks().cancel(record));
  closed.open();
  EXPECT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 5);
}

TEST(Dispatcher, ManyWithdrawnTasksDoNotClogTheLane) {
  thread_world world(1, {}, 4);
  for (int each = 0; each < 1000; ++each) {
    auto& record = world.post<add>(each, 1);
    ASSERT_TRUE(world.tasks().cancel(record));
    static_cast<void>(world.tasks().take(record));
  }
  world.start_workers();
  auto& last = world.post<add>(1, 2);
  EXPECT_TRUE(world.tasks().wait(last));
  EXPECT_EQ(value_of<int>(world.tasks().take(last)), 3);
}

TEST(Dispatcher, APrivateLaneReachesItsWorker) {
  thread_world world(2);
  world.start_workers();
  for (std::size_t worker = 0; worker < 2; ++worker) {
    auto request = world.request<fail_if_odd>(1);
    request.lane = board::shared_lanes + worker;
    auto& record = world.tasks().post(std::move(request));
    ASSERT_TRUE(world.tasks().wait(record));
    EXPECT_EQ(world.tasks().take(record).error().place().worker, static_cast<int>(worker));
  }
}

TEST(Dispatcher, UrgentTasksAreClaimedFirst) {
  thread_world world(1);
  test::counted_ends ends(world.tasks());
  std::vector<task_record*> records;
  for (const std::size_t lane : {2U, 1U, 0U}) {
    auto request = world.request<add>(static_cast<int>(lane), 0);
    request.lane = lane;
    records.push_back(&world.tasks().post(std::move(request)));
  }
  // Nobody runs yet: the worker's end shows in which order it claims.
  token_decoder functions(world.shared_board().modules());
  worker_end end(world.shared_board(), world.memory(), functions, {.index = 0});
  ASSERT_TRUE(end.run_next());
  EXPECT_TRUE(world.tasks().is_done(*records[2]));
  EXPECT_FALSE(world.tasks().is_done(*records[1]));
  ASSERT_TRUE(end.run_next());
  EXPECT_TRUE(world.tasks().is_done(*records[1]));
  ASSERT_TRUE(end.run_next());
  for (auto* record : records) static_cast<void>(world.tasks().take(*record));
}

// ---- max_pending

TEST(DispatcherOverflow, ThrowsWhenAskedTo) {
  thread_world world(1, {.max_pending = 2, .overflow = overflow_policy::throw_error});
  auto& one = world.post<add>(1, 1);
  auto& two = world.post<add>(1, 1);
  try {
    world.post<add>(1, 1);
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::overflow);
    EXPECT_THAT(failure.what(), testing::HasSubstr("2 pending calls"));
  }
  world.start_workers();
  for (auto* record : {&one, &two}) {
    world.tasks().wait(*record);
    static_cast<void>(world.tasks().take(*record));
  }
}

TEST(DispatcherOverflow, OnlyLimitedTasksAndWhatTookAPlaceCount) {
  thread_world world(1, {.max_pending = 2, .overflow = overflow_policy::throw_error});
  std::vector<task_record*> records;
  for (int each = 0; each < 5; ++each) {
    auto request = world.request<add>(1, 1);
    request.admitted = admission::unlimited;
    records.push_back(&world.tasks().post(std::move(request)));
  }
  EXPECT_TRUE(world.tasks().take_place());
  records.push_back(&world.post<add>(1, 1));
  EXPECT_THROW(world.post<add>(1, 1), error);
  EXPECT_THROW(static_cast<void>(world.tasks().take_place()), error);
  world.tasks().free_place();
  records.push_back(&world.post<add>(1, 1));
  world.start_workers();
  for (auto* record : records) {
    ASSERT_TRUE(world.tasks().wait(*record));
    static_cast<void>(world.tasks().take(*record));
  }
  EXPECT_TRUE(world.tasks().take_place());
  EXPECT_TRUE(world.tasks().take_place());
}

TEST(DispatcherOverflow, FailsTheTaskWhenAskedTo) {
  thread_world world(1, {.max_pending = 1, .overflow = overflow_policy::fail_task});
  auto& accepted = world.post<add>(1, 1);
  auto& refused = world.post<add>(1, 1);
  EXPECT_TRUE(world.tasks().is_done(refused));
  EXPECT_EQ(world.tasks().take(refused).error(), errc::overflow);
  world.start_workers();
  world.tasks().wait(accepted);
  EXPECT_EQ(value_of<int>(world.tasks().take(accepted)), 2);
}

TEST(DispatcherOverflow, BlocksUntilThereIsRoomThoughNobodyTakesResults) {
  thread_world world(1, {.max_pending = 3});
  world.start_workers();
  std::vector<task_record*> records;
  for (int each = 0; each < 100; ++each) records.push_back(&world.post<add>(each, 1));
  for (auto* record : records) {
    ASSERT_TRUE(world.tasks().wait(*record));
    static_cast<void>(world.tasks().take(*record));
  }
}

TEST(DispatcherOverflow, BlocksNoLongerThanItsDeadline) {
  thread_world world(1, {.max_pending = 1, .overflow_wait = 5ms});
  auto& one = world.post<add>(1, 1);
  EXPECT_THROW(world.post<add>(1, 1), error);
  world.start_workers();
  world.tasks().wait(one);
  static_cast<void>(world.tasks().take(one));
}

TEST(DispatcherOverflow, ClosingEndsTheWait) {
  thread_world world(1, {.max_pending = 1});
  auto& one = world.post<add>(1, 1);
  std::thread blocked([&] { EXPECT_THROW(world.post<add>(1, 1), task_error); });
  world.tasks().close(error_info(errc::pool_closed, "closed"));
  blocked.join();
  world.tasks().stop(error_info(errc::cancelled, "stopped"));
  EXPECT_EQ(world.tasks().take(one).error(), errc::cancelled);
}

// ---- the end

TEST(DispatcherEnd, AClosedOneAcceptsNothing) {
  thread_world world(1);
  world.tasks().close(error_info(errc::pool_closed, "closed for good"));
  try {
    world.post<add>(1, 1);
    FAIL();
  } catch (const task_error& failure) {
    EXPECT_EQ(failure.code(), errc::pool_closed);
  }
}

TEST(DispatcherEnd, WhenTheLastTaskHasEndedItSaysSoOnce) {
  thread_world world(1);
  std::atomic<int> told = 0;
  std::vector<task_record*> records;
  for (int each = 0; each < 10; ++each) records.push_back(&world.post<add>(each, 1));
  world.tasks().close(error_info(errc::pool_closed, "closed"), [&] { ++told; });
  EXPECT_EQ(told, 0);
  world.start_workers();
  EXPECT_TRUE(test::eventually([&] { return told == 1; }));
  for (auto* record : records) static_cast<void>(world.tasks().take(*record));
  EXPECT_EQ(told, 1);
}

TEST(DispatcherEnd, StoppingEndsEverythingWithTheReason) {
  thread_world world(1, {}, 4);
  std::vector<task_record*> records;
  for (int each = 0; each < 20; ++each) records.push_back(&world.post<add>(each, 1));
  std::thread waiter([&] { world.tasks().wait(*records.back()); });
  world.tasks().stop(error_info(errc::cancelled, "no more"));
  waiter.join();
  for (auto* record : records) {
    ASSERT_TRUE(world.tasks().is_done(*record));
    EXPECT_EQ(world.tasks().take(*record).error(), errc::cancelled);
  }
  EXPECT_TRUE(world.tasks().wait_until_empty(deadline::never()));
}

TEST(DispatcherEnd, WhatWasCompletedBeforeStoppingCounts) {
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<add>(1, 1);
  world.tasks().wait(record);
  world.stop_workers();
  world.tasks().stop(error_info(errc::cancelled, "no more"));
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 2);
}

// ---- what a broken worker may write

TEST(DispatcherCorruption, AnImpossibleSlotWordFailsThatTask) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  world.shared_board().slot(record.where().slot).word = 0xffffffffffffffffU;
  EXPECT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
  world.start_workers();
  auto& next = world.post<add>(2, 2);
  world.tasks().wait(next);
  EXPECT_EQ(value_of<int>(world.tasks().take(next)), 4);
}

TEST(DispatcherCorruption, ForgedCompletionEntriesAreIgnored) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  auto ring = world.shared_board().ring(0);
  ring.push({.generation = 12345, .slot = 65535});
  ring.push({.generation = 99, .slot = record.where().slot});
  ring.push({.generation = record.where().generation, .slot = record.where().slot});  // not done at all
  world.tasks().drain();
  EXPECT_FALSE(world.tasks().is_done(record));
  world.start_workers();
  world.tasks().wait(record);
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 2);
}

TEST(DispatcherCorruption, AWildRingPositionIsSurvived) {
  thread_world world(1);
  test::counted_ends ends(world.tasks());
  auto request = world.request<add>(1, 1);
  request.sink = &ends.make_sink();
  world.tasks().post(std::move(request));
  world.shared_board().line(0).ring_tail = 0xfffffffffffffff0U;
  world.tasks().drain();
  world.start_workers();
  EXPECT_TRUE(test::eventually([&] { return ends.values() == 1; }));
}

TEST(DispatcherCorruption, AReplyInABlockThatIsNoneFailsThatTask) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  auto& slot = world.shared_board().slot(record.where().slot);
  const slot_word forged(slot_word(slot.word).generation(), 1, slot_flag::block_reply, slot_state::done);
  slot.word = forged.bits();
  EXPECT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
}

}  // namespace
}  // namespace muster::dispatcher_test
