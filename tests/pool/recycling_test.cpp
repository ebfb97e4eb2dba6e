// SPDX-License-Identifier: BSL-1.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/unique_fd.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"
#include "temporary_directory.hpp"
#include "waiting_tasks.hpp"

namespace muster::recycling_test {
namespace {

using namespace std::chrono_literals;

void discard(log_level, std::string_view) {}
constexpr std::size_t mebibyte = std::size_t{1} << 20U;

std::vector<char> hoard;  // of a worker process
void keep(std::size_t bytes) { hoard.assign(bytes, 'x'); }

TEST(Recycling, AnIdleWorkerIsReplacedWhenItIsOldEnough) {
  pool pool({.workers = 2, .max_worker_age = 50ms});
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.recycled_age >= 4; }));
  const auto counted = pool.stats().workers;
  EXPECT_EQ(counted.recycled, counted.recycled_age);
  EXPECT_EQ(counted.killed + counted.exited + counted.failed_starts, 0U);
  EXPECT_EQ(pool.apply([] { return 7; }), 7);
}

TEST(Recycling, ABusyWorkerFinishesWhatItIsAt) {
  pool pool({.workers = 1, .max_worker_age = 20ms});
  for (int round = 0; round < 5; ++round) {
    const bool is_same = pool.apply([] {
      const auto before = this_worker::incarnation();
      test::work_for(60ms);
      return before == this_worker::incarnation();
    });
    EXPECT_TRUE(is_same);
  }
  EXPECT_TRUE(test::eventually([&] { return pool.stats().workers.recycled_age >= 5; }));
}

TEST(Recycling, TasksThatWaitForAWorkerSurviveItsAge) {
  pool pool({.workers = 2, .max_worker_age = 10ms});
  std::vector<future<int>> calls;
  for (int each = 0; each < 200; ++each) {
    calls.push_back(pool.on(static_cast<std::size_t>(each) % 2)
                        .apply_async(
                            [](int x) {
                              test::work_for(500us);
                              return x;
                            },
                            each));
  }
  for (int each = 0; each < 200; ++each) ASSERT_EQ(calls[static_cast<std::size_t>(each)].get(), each);
}

TEST(Recycling, AWorkerThatHasTooMuchMemoryIsReplacedAfterItsTask) {
  if (std::string_view(MUSTER_SANITIZER) != "") GTEST_SKIP() << "the sanitizer's own memory counts";
  pool pool({.workers = 1, .max_worker_rss = 64 * mebibyte});
  const auto first = pool.apply([] { return ::getpid(); });
  EXPECT_EQ(pool.apply([] { return ::getpid(); }), first) << "it has little yet";
  pool.apply(keep, 128 * mebibyte);
  // It looks at most every 50 ms.
  ASSERT_TRUE(test::eventually([&] { return pool.apply([] { return ::getpid(); }) != first; }));
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.recycled_memory == 1; }));
  EXPECT_EQ(pool.stats().workers.recycled, 1U);
}

TEST(Recycling, TasksAreCountedAsTheReason) {
  pool pool({.workers = 1, .max_tasks_per_worker = 2});
  for (int round = 0; round < 4; ++round) pool.apply([] {});
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.recycled_tasks == 2; }));
  EXPECT_EQ(pool.stats().workers.recycled, 2U);
}

TEST(Recycling, JitterMakesWorkersLeaveAfterFewerTasksByChance) {
  pool pool({.workers = 1, .max_tasks_per_worker = 20, .tasks_jitter = 1});
  std::vector<unsigned> lives;  // tasks of each worker
  pid_t last = 0;
  for (int round = 0; round < 300; ++round) {
    const auto pid = pool.apply([] { return ::getpid(); });
    if (pid != std::exchange(last, pid)) lives.push_back(0);
    ++lives.back();
  }
  EXPECT_THAT(lives, testing::Each(testing::AllOf(testing::Ge(1U), testing::Le(20U))));
  EXPECT_GT((std::set<unsigned>(lives.begin(), lives.end()).size()), 1U);
}

TEST(Recycling, APoolThatIsClosedWhileWorkersAgeComesToItsEnd) {
  for (int round = 0; round < 5; ++round) {
    pool pool({.workers = 2, .max_worker_age = 5ms});
    auto call = pool.apply_async([] { test::work_for(20ms); });
    pool.close();
    pool.join();
    EXPECT_NO_THROW(call.get());
  }
}

/// Writes down who starts; all but the first wait then until they are let go.
class journal {
public:
  journal() { EXPECT_EQ(::mkfifo(gate().c_str(), 0600), 0); }

  [[nodiscard]] worker_task initializer() const { return muster::bind_front(start, list(), gate()); }
  [[nodiscard]] std::vector<pid_t> started() const {
    std::ifstream in(list());
    return {std::istream_iterator<pid_t>(in), std::istream_iterator<pid_t>()};
  }
  /// Waits until somebody waits there.
  void let_go() const { std::ofstream(gate()) << "go\n"; }

private:
  [[nodiscard]] std::string list() const { return (directory_.path() / "list").string(); }
  [[nodiscard]] std::string gate() const { return (directory_.path() / "gate").string(); }

  static void start(const std::string& list, const std::string& gate) {
    // By the kernel: two workers start at once.
    const unique_fd created(::open(list.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    const bool is_first = created.get() >= 0;
    std::ofstream(list, std::ios::app) << ::getpid() << std::endl;
    std::string line;
    std::ifstream in;
    if (!is_first) in.open(gate);
    std::getline(in, line);
  }

  const test::temporary_directory directory_;
};

pid_t whose_turn(const pool& pool) {
  return pool.apply([] { return ::getpid(); });
}

TEST(Successors, AreReadyBeforeTheOldWorkerLeaves) {
  const journal seen;
  pool pool({.workers = 1, .initializer = seen.initializer(), .max_worker_age = 20ms});
  const auto old = whose_turn(pool);
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 2; }));
  for (int each = 0; each < 100; ++each) ASSERT_EQ(whose_turn(pool), old) << "it goes on";
  EXPECT_EQ(pool.workers()[0].pid, old);
  EXPECT_EQ(pool.stats().workers.recycled, 0U);
  seen.let_go();
  ASSERT_TRUE(test::eventually([&] { return whose_turn(pool) != old; }));
  EXPECT_EQ(whose_turn(pool), seen.started()[1]);
  EXPECT_EQ(pool.apply([] { return this_worker::incarnation(); }), 2U);
  EXPECT_EQ(pool.stats().workers.recycled_age, 1U);
  pool.terminate();  // another one waits, or will
}

TEST(Successors, FollowAfterExactlySoManyTasks) {
  pool pool({.workers = 1, .max_tasks_per_worker = 16});
  std::map<pid_t, int> tasks;
  for (int each = 0; each < 160; ++each) ++tasks[whose_turn(pool)];
  EXPECT_THAT(tasks, testing::SizeIs(10));
  for (const auto& [pid, count] : tasks) EXPECT_EQ(count, 16);
}

TEST(Successors, ThatAreNotGreetedWhenTheirTurnComesAreNoFailedStarts) {
  pool pool({.workers = 1, .max_tasks_per_worker = 2, .start_tries = 1});
  for (int each = 0; each < 40; ++each) ASSERT_NO_THROW(pool.apply([] {}));
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.recycled == 20; }));
  EXPECT_EQ(pool.stats().workers.failed_starts, 0U);
  EXPECT_LE(pool.stats().workers.started, 22U);
}

TEST(Successors, ThatWereDismissedAreNotCalledUpon) {
  const journal seen;
  auto options = test::quiet(2);
  options.initializer = seen.initializer();
  options.max_tasks_per_worker = 1000;
  pool pool(options);
  seen.let_go();  // whoever of both came second
  for (int each = 0; each < 900; ++each) pool.on(1).apply([] {});
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 3; }));
  const event began;
  auto busy = pool.on(1).apply_async(test::run_for_ever, began);
  began.wait();
  auto smaller = pool.resize_async(1);  // nobody is to follow
  pool.resize(2);
  ASSERT_EQ(::kill(pool.workers()[1].pid, SIGKILL), 0);
  EXPECT_TRUE(test::eventually([&] { return seen.started().size() == 4; })) << "another one";
  EXPECT_THROW(busy.get(), worker_died);
  pool.terminate();  // those wait in their initializers
}

TEST(Successors, TakeThePlaceOfOneThatWasKilled) {
  const journal seen;
  auto options = test::quiet(1);
  options.initializer = seen.initializer();
  options.max_tasks_per_worker = 1000;
  pool pool(options);
  for (int each = 0; each < 900; ++each) pool.apply([] {});
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 2; }));
  const auto next = seen.started()[1];
  EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);
  seen.let_go();
  EXPECT_EQ(whose_turn(pool), next);
  EXPECT_EQ(pool.stats().workers.started, 2U);
}

TEST(Successors, HearThatItIsTheirTurnThoughThereWasNoMemoryToTellThem) {
  const journal seen;
  auto options = test::quiet(1);
  options.initializer = seen.initializer();
  options.max_tasks_per_worker = 1000;
  pool pool(options);
  for (int each = 0; each < 900; ++each) pool.apply([] {});
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 2; }));
  const auto next = seen.started()[1];
  seen.let_go();
  {
    const test::refused_calls full("sendmsg", ENOBUFS, 1);
    EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);
    EXPECT_EQ(whose_turn(pool), next);
    EXPECT_EQ(test::refused_calls::left(), -1);
  }
  EXPECT_EQ(pool.stats().workers.killed, 1U);
}

TEST(Successors, ThatDieDoNoHarm) {
  const journal seen;
  auto options = test::quiet(1);
  options.initializer = seen.initializer();
  options.max_worker_age = 20ms;
  pool pool(options);
  const auto old = whose_turn(pool);
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 2; }));
  ASSERT_EQ(::kill(seen.started()[1], SIGKILL), 0);
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 3; })) << "the old one leaves all the same";
  seen.let_go();
  EXPECT_NE(whose_turn(pool), old);
  EXPECT_EQ(pool.stats().workers.failed_starts, 1U);
  pool.terminate();
}

TEST(Successors, LeaveWithThePool) {
  const journal seen;
  pool pool({.workers = 1, .initializer = seen.initializer(), .max_worker_age = 20ms});
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 2; }));
  pool.close();
  seen.let_go();
  pool.join();
  EXPECT_EQ(::kill(seen.started()[1], 0), -1);
}

TEST(Successors, AreStartedLaterIfThatIsWanted) {
  const journal seen;
  pool pool({.workers = 1, .initializer = seen.initializer(), .max_worker_age = 20ms, .early_successors = false});
  const auto old = whose_turn(pool);
  ASSERT_TRUE(test::eventually([&] { return seen.started().size() == 2; }));
  EXPECT_EQ(::kill(old, 0), -1);
  pool.terminate();
}

TEST(Recycling, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(pool({.max_worker_age = -1s}), error);
  EXPECT_THROW(pool({.age_jitter = 1.5}), error);
  EXPECT_THROW(pool({.tasks_jitter = -0.1}), error);
  EXPECT_THROW(pool({.tasks_jitter = std::numeric_limits<double>::quiet_NaN()}), error);
}

TEST(WorkerMemory, BeyondItAllocationsFailInTheWorkerOnly) {
  if (std::string_view(MUSTER_SANITIZER) != "") GTEST_SKIP() << "the sanitizer's own memory would count";
  pool pool({.workers = 1, .worker_memory = 256 * mebibyte, .log = discard});
  EXPECT_THROW(pool.apply(keep, 1024 * mebibyte), std::bad_alloc);
  EXPECT_NO_THROW(pool.apply(keep, 64 * mebibyte));
  EXPECT_EQ(pool.stats().workers.started, 1U);
}

TEST(WorkerMemory, HoldsForInitializers) {
  if (std::string_view(MUSTER_SANITIZER) != "") GTEST_SKIP() << "the sanitizer's own memory would count";
  try {
    pool pool({.workers = 1,
               .initializer = muster::bind_front(keep, 1024 * mebibyte),
               .worker_memory = 256 * mebibyte,
               .start_tries = 1,
               .log = discard});
    pool.apply([] {});
    FAIL();
  } catch (const error& caught) {  // of the constructor or of the call
    EXPECT_THAT(caught.what(), testing::HasSubstr("std::bad_alloc"));
  }
}

}  // namespace
}  // namespace muster::recycling_test
