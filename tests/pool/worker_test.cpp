// SPDX-License-Identifier: BSL-1.0
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::worker_test {
namespace {

using testing::HasSubstr;

void discard(log_level, std::string_view) {}

int loaded_model = 0;  // of a worker process
void load_model(int which) { loaded_model = which; }
void append(const std::string& file, const std::string& line) { std::ofstream(file, std::ios::app) << line << '\n'; }
std::size_t lines_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::size_t count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

TEST(Worker, TheInitializerRunsFirstInEveryWorkerAndItsReplacement) {
  pool pool({.workers = 2, .initializer = muster::bind_front(load_model, 7), .log = discard});
  for (int round = 0; round < 20; ++round) ASSERT_EQ(pool.apply([] { return loaded_model; }), 7);
  EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);
  for (int round = 0; round < 20; ++round) ASSERT_EQ(pool.apply([] { return loaded_model; }), 7);
}

TEST(Worker, TheFinalizerRunsInEveryWorkerThatLeavesInGoodOrder) {
  const test::temporary_directory directory;
  const auto file = (directory.path() / "ends").string();
  {
    pool pool({.workers = 3, .finalizer = muster::bind_front(append, file, "end")});
    pool.apply([] {});
    pool.close();
    pool.join();
  }
  EXPECT_EQ(lines_in(file), 3U);
}

TEST(Worker, AThrowingFinalizerDoesNotStopTheWorkerFromLeaving) {
  pool pool({.workers = 1, .finalizer = [] { throw std::runtime_error("too late"); }});
  pool.apply([] {});
  pool.close();
  pool.join();
  EXPECT_EQ(pool.stats().workers.killed, 0U);
}

// Predecessor's list, 6.
TEST(Worker, AFailingInitializerBreaksThePoolWithItsError) {
  // Not waited for: where processes start slowly it would be broken before that, and throw.
  pool pool({.workers = 2,
             .initializer = [] { throw std::runtime_error("no model on disk"); },
             .wait_for_start = false,
             .log = discard});
  std::vector<future<int>> pending;
  for (int each = 0; each < 10; ++each) {
    try {
      pending.push_back(pool.apply_async([] { return 1; }));
    } catch (const task_error& caught) {  // broken already
      EXPECT_EQ(caught.code(), errc::pool_broken);
    }
  }
  for (auto& each : pending) {
    try {
      each.get();
      ADD_FAILURE();
    } catch (const task_error& caught) {
      EXPECT_EQ(caught.code(), errc::pool_broken);
      EXPECT_THAT(caught.what(), testing::AllOf(HasSubstr("std::runtime_error"), HasSubstr("no model on disk")));
    }
  }
  ASSERT_TRUE(test::eventually([&] {
    const auto workers = pool.workers();
    return workers[0].pid == 0 && workers[1].pid == 0;
  }));
  EXPECT_LE(pool.stats().workers.started, 6U) << "at most three tries each";
  EXPECT_THROW(pool.apply([] {}), task_error);
}

TEST(Worker, AnInitializerThatFailsOnceIsTriedAgain) {
  const test::temporary_directory directory;
  const auto fail_first = muster::bind_front(
      [](const std::string& file) {
        append(file, "try");
        if (lines_in(file) == 1) throw std::runtime_error("not yet");
      },
      (directory.path() / "tries").string());
  pool pool({.workers = 1, .initializer = fail_first, .log = discard});
  EXPECT_EQ(pool.apply([] { return 3; }), 3);
  EXPECT_EQ(pool.stats().workers.failed_starts, 1U);
}

TEST(Worker, AnInitializerThatCrashesBreaksThePool) {
  pool pool({.workers = 1, .initializer = [] { ::raise(SIGSEGV); }, .log = discard});
  try {
    static_cast<void>(pool.apply([] { return 1; }));
    FAIL();
  } catch (const task_error& caught) {
    EXPECT_EQ(caught.code(), errc::pool_broken);
    EXPECT_THAT(caught.what(), HasSubstr("SIGSEGV"));
  }
}

TEST(Worker, IsReplacedAfterItsNumberOfTasks) {
  pool pool({.workers = 1, .max_tasks_per_worker = 1});
  std::set<pid_t> processes;
  for (int round = 0; round < 30; ++round) processes.insert(pool.apply([] { return ::getpid(); }));
  EXPECT_EQ(processes.size(), 30U);
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.recycled == 30; }));
  EXPECT_EQ(pool.stats().workers.killed, 0U);
}

TEST(Worker, ElementsOfAMapCountAsTasks) {
  pool pool({.workers = 1, .max_tasks_per_worker = 10});
  // Chunks that grow by time may carry a worker past its limit, by less than a chunk.
  const auto pids = pool.with({.chunk = 10}).map([](int) { return ::getpid(); }, std::vector<int>(100));
  EXPECT_GE((std::set<pid_t>(pids.begin(), pids.end()).size()), 10U);
}

TEST(Worker, FinalizersRunOnRecyclingToo) {
  const test::temporary_directory directory;
  const auto file = (directory.path() / "ends").string();
  {
    pool pool({.workers = 1, .finalizer = muster::bind_front(append, file, "end"), .max_tasks_per_worker = 2});
    for (int round = 0; round < 6; ++round) pool.apply([] {});
    pool.close();
    pool.join();
  }
  EXPECT_GE(lines_in(file), 3U);
}

TEST(Worker, KnowsWhoItIs) {
  pool pool({.workers = 2, .name = "resizers"});
  const auto [id, incarnation, name] =
      pool.apply([] { return std::tuple(this_worker::id(), this_worker::incarnation(), this_worker::pool_name()); });
  EXPECT_TRUE(id == 0 || id == 1);
  EXPECT_EQ(incarnation, 1U);
  EXPECT_EQ(name, "resizers");
  EXPECT_EQ(this_worker::id(), -1);
  EXPECT_EQ(this_worker::incarnation(), 0U);
  EXPECT_FALSE(this_task::stop_requested());
}

TEST(Worker, AProgramExecutedByATaskIsNoWorker) {
  pool pool({.workers = 1});
  EXPECT_EQ(pool.apply([] { return std::getenv("MUSTER_WORKER") == nullptr; }), true);
}

// A replacement is started by a thread of the library, which must not read what the program may be changing.
TEST(Worker, HasTheEnvironmentOfWhenItsPoolWasMade) {
  const auto said = [] {
    const char* value = ::getenv("MUSTER_TEST_VALUE");
    return std::string(value != nullptr ? value : "nothing");
  };
  ::setenv("MUSTER_TEST_VALUE", "before", 1);
  pool pool({.workers = 1, .log = discard});
  ::setenv("MUSTER_TEST_VALUE", "after", 1);
  EXPECT_EQ(pool.apply(said), "before");
  EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);
  EXPECT_EQ(pool.apply(said), "before");
  ::unsetenv("MUSTER_TEST_VALUE");
}

TEST(Worker, ShowsItsPoolInItsName) {
  pool pool({.workers = 1, .name = "named"});
  EXPECT_EQ(pool.apply([] {
    std::ifstream in("/proc/self/comm");
    std::string name;
    std::getline(in, name);
    return name;
  }),
            "named#0");
}

// Page faults that a warm worker has while a large argument is copied for it.
long faults_of_a_large_argument(const pool_options& options) {
  const pool pool(options);
  const std::vector<char> large(std::size_t{40} << 20U, 'x');
  const auto faults = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
  };
  const auto take = [](const std::vector<char>& all) { return all.size(); };
  pool.apply(take, large);
  const auto before = pool.apply(faults);
  pool.apply(take, large);
  return pool.apply(faults) - before;
}

TEST(Worker, MayKeepItsHeapForTheNextTask) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers bring their own malloc";
#endif
  EXPECT_GT(faults_of_a_large_argument({.workers = 1}), 1000);
  EXPECT_LT(faults_of_a_large_argument({.workers = 1, .worker_heap_bytes = std::size_t{256} << 20U}), 1000);
}

}  // namespace
}  // namespace muster::worker_test
