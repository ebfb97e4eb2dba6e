// SPDX-License-Identifier: BSL-1.0
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"
#include "waiting_tasks.hpp"

namespace muster::resize_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

/// Tasks that are all there at once: as many workers as these run at a time.
class gathering {
public:
  void add(const pool& where) {
    began_.emplace_back();
    tasks_.push_back(where.apply_async(test::run_until, began_.back(), end_));
  }
  void await() const {
    for (const auto& each : began_) each.wait();
  }
  /// How many were asked to stop.
  unsigned release() {
    end_.set();
    unsigned stopped = 0;
    for (auto& each : tasks_) stopped += each.get() ? 1U : 0U;
    return stopped;
  }

private:
  event end_;
  std::vector<event> began_;
  std::vector<future<bool>> tasks_;
};

TEST(Resize, GrownPoolsRunAsManyTasksAtATime) {
  pool pool({.workers = 1});
  gathering all;
  for (int each = 0; each < 4; ++each) all.add(pool);  // three of them wait
  pool.resize(4);
  EXPECT_EQ(pool.size(), 4U);
  EXPECT_THAT(pool.workers(), SizeIs(4));
  all.await();
  EXPECT_EQ(all.release(), 0U);
}

TEST(Resize, NewWorkersRunTheInitializerAndHaveTheirIndices) {
  static int prepared = 0;
  pool pool({.workers = 1, .initializer = [] { prepared = 7; }});
  pool.resize(3);
  for (int index = 0; index < 3; ++index) {
    const auto seen =
        pool.on(static_cast<std::size_t>(index)).apply([] { return std::pair(this_worker::id(), prepared); });
    EXPECT_EQ(seen, std::pair(index, 7));
  }
}

TEST(Resize, ShrunkPoolsHaveFewerProcesses) {
  pool pool({.workers = 4});
  std::set<pid_t> before;
  for (const auto& each : pool.workers()) before.insert(each.pid);
  pool.resize(1);
  EXPECT_EQ(pool.size(), 1U);
  ASSERT_THAT(pool.workers(), SizeIs(1));
  before.erase(pool.workers()[0].pid);
  EXPECT_THAT(before, SizeIs(3)) << "the first one stays";
  for (const auto pid : before) EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(pool.apply([] { return 5; }), 5);
  const auto counted = pool.stats().workers;
  EXPECT_EQ(counted.retired, 3U);
  EXPECT_EQ(counted.recycled + counted.killed + counted.exited, 0U);
}

TEST(Resize, RetiringWorkersRunTheFinalizer) {
  const test::temporary_directory directory;
  const auto file = directory.path() / "end";
  const auto leave_a_mark = [](const std::string& name) { std::ofstream(name) << this_worker::id(); };
  pool pool({.workers = 2, .finalizer = muster::bind_front(leave_a_mark, file.string())});
  pool.resize(1);
  int who = 0;
  std::ifstream(file) >> who;
  EXPECT_EQ(who, 1);
}

TEST(Resize, RunningTasksAreFinishedFirst) {
  pool pool({.workers = 3});
  gathering all;
  for (int each = 0; each < 3; ++each) all.add(pool);
  all.await();
  auto resized = pool.resize_async(1);
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_FALSE(resized.wait_for(1ms));
  EXPECT_EQ(all.release(), 0U);
  resized.get();
  EXPECT_THAT(pool.workers(), SizeIs(1));
}

TEST(Resize, TasksThatWaitForARetiringWorkerAreRunByIt) {
  pool pool({.workers = 2});
  std::vector<future<int>> calls;
  const event end;
  const event began;
  auto holds = pool.on(1).apply_async(test::run_until, began, end);
  began.wait();
  for (int each = 0; each < 2000; ++each) calls.push_back(pool.on(1).apply_async([] { return this_worker::id(); }));
  auto resized = pool.resize_async(1);
  end.set();
  for (auto& each : calls) ASSERT_EQ(each.get(), 1);
  EXPECT_FALSE(holds.get());
  resized.get();
  EXPECT_THAT(pool.workers(), SizeIs(1));
}

TEST(Resize, ThatSurvivesTheDeathOfARetiringWorker) {
  pool pool(test::quiet(2));
  const event began;
  const event end;
  auto doomed = pool.on(1).apply_async(
      [](const event& ready, const event& go) {
        ready.set();
        go.wait();
        ::raise(SIGKILL);
      },
      began, end);
  began.wait();
  auto after = pool.on(1).apply_async([] { return this_worker::id(); });
  auto resized = pool.resize_async(1);
  end.set();
  EXPECT_THROW(doomed.get(), worker_died);
  EXPECT_EQ(after.get(), 1);
  resized.get();
  EXPECT_THAT(pool.workers(), SizeIs(1));
}

TEST(Resize, WorkersThatAreGoneCannotBeNamed) {
  pool pool({.workers = 2});
  const auto kept = pool.on(1);
  pool.resize(1);
  EXPECT_THROW(static_cast<void>(pool.on(1)), error);
  EXPECT_EQ(kept.apply([] { return this_worker::id(); }), 1) << "who was named before comes back for it";
  EXPECT_TRUE(test::eventually([&] { return pool.workers().size() == 1; }));
  pool.resize(2);
  EXPECT_EQ(pool.on(1).apply([] { return this_worker::id(); }), 1);
}

TEST(Resize, AMapUnderWayUsesTheNewWorkers) {
  pool pool({.workers = 1});
  const std::vector<int> elements(64);
  const auto work = [](int) {
    test::work_for(5ms);
    return this_worker::id();
  };
  auto mapped = pool.map_async(work, elements);
  pool.resize(3);
  const auto ids = mapped.get();
  EXPECT_THAT((std::set<int>(ids.begin(), ids.end())), testing::Contains(2));
}

TEST(Resize, TheLastOfSeveralCounts) {
  pool pool({.workers = 1});
  std::vector<future<void>> all;
  for (const std::size_t size : {5U, 2U, 4U, 1U, 3U}) all.push_back(pool.resize_async(size));
  for (auto& each : all) each.get();
  EXPECT_EQ(pool.size(), 3U);
  EXPECT_THAT(pool.workers(), SizeIs(3));
}

TEST(Resize, NothingIsLostUnderLoad) {
  pool pool({.workers = 2});
  std::minstd_rand chance(7);
  std::vector<int> elements(3000);
  std::iota(elements.begin(), elements.end(), 0);
  const auto expected = pool.map([](int x) { return 3 * x; }, elements);
  for (int round = 0; round < 30; ++round) {
    auto mapped = pool.map_async([](int x) { return 3 * x; }, elements);
    std::vector<future<int>> calls;
    for (int each = 0; each < 200; ++each) calls.push_back(pool.apply_async([](int x) { return x + 1; }, each));
    auto resized = pool.resize_async(1 + chance() % 4);
    for (int each = 0; each < 200; ++each) ASSERT_EQ(calls[static_cast<std::size_t>(each)].get(), each + 1);
    ASSERT_EQ(mapped.get(), expected);
    if (round % 3 == 0) resized.get();
  }
  const auto counted = pool.stats().workers;
  EXPECT_EQ(counted.killed + counted.exited + counted.failed_starts, 0U);
}

TEST(Resize, TakingTurnsGoesOnAmongThoseThatThereAre) {
  p2p_pool pool({.workers = 3});
  for (const std::size_t size : {1U, 4U, 2U}) {
    std::vector<future<int>> calls;
    for (int each = 0; each < 100; ++each) calls.push_back(pool.apply_async([](int x) { return x; }, each));
    pool.resize(size);
    for (int each = 0; each < 100; ++each) ASSERT_EQ(calls[static_cast<std::size_t>(each)].get(), each);
    std::set<int> ids;
    for (int each = 0; each < 20; ++each) ids.insert(pool.apply([] { return this_worker::id(); }));
    EXPECT_THAT(ids, SizeIs(size));
  }
}

TEST(Resize, ABroadcastBesideItNeverNamesAWorkerThatIsNotThere) {
  pool pool_({.workers = 2, .max_workers = 4});
  std::atomic<bool> enough = false;
  std::thread resizer([&] {
    while (!enough) {
      pool_.resize(4);
      pool_.resize(2);
    }
  });
  for (int round = 0; round < 200; ++round) {
    const auto found = pool_.broadcast([] { return this_worker::id(); }).size();
    EXPECT_GE(found, 2U);
    EXPECT_LE(found, 4U);
  }
  enough = true;
  resizer.join();
}

TEST(Resize, MoreThanThereIsRoomForIsRefused) {
  pool pool({.workers = 1, .max_workers = 2});
  try {
    pool.resize(3);
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), testing::AllOf(HasSubstr("3 workers"), HasSubstr("1 to 2"), HasSubstr("max_workers")));
  }
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_THROW(muster::pool({.workers = 3, .max_workers = 2}), error);
}

TEST(Resize, AClosedPoolIsNotResized) {
  pool pool({.workers = 1});
  pool.close();
  EXPECT_THROW(pool.resize(2), error);
  pool.join();
}

TEST(Resize, TerminatingAPoolEndsIt) {
  pool pool(test::quiet(2));
  const event began;
  auto call = pool.on(1).apply_async(test::run_for_ever, began);
  began.wait();
  auto resized = pool.resize_async(1);
  pool.terminate();
  EXPECT_THROW(resized.get(), error);
  EXPECT_THROW(call.get(), error);
}

TEST(Resize, WorkersThatCannotBeStartedBreakThePool) {
  pool pool({.workers = 1,
             .initializer =
                 [] {
                   if (this_worker::id() == 1) throw std::runtime_error("no second one");
                 },
             .start_tries = 2,
             .log = [](log_level, std::string_view) {}});
  const auto broken = [&] {
    try {
      pool.apply([] {});
      return false;
    } catch (const error& failure) {
      return failure.code() == errc::pool_broken;
    }
  };
  EXPECT_FALSE(broken());
  try {
    pool.resize(2);  // it may have been accepted before its initializer failed
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("no second one"));
  }
  EXPECT_TRUE(test::eventually(broken));
}

}  // namespace
}  // namespace muster::resize_test
