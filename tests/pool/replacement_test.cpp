// SPDX-License-Identifier: BSL-1.0
// Workers that say that they must not run another task: this_worker::replace_after_task.
#include <muster/pool/this_worker.hpp>

#include <unistd.h>

#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/mutex.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"
#include "waiting_tasks.hpp"

namespace muster::replacement_test {
namespace {

using testing::HasSubstr;

std::uint32_t incarnation() { return this_worker::incarnation(); }

std::uint32_t run_and_ask() {
  const bool will_be = this_worker::replace_after_task("the context is broken");
  return will_be && this_worker::replace_after_task("it still is") ? this_worker::incarnation() : 0;
}

void lose_device() { throw error(errc::device_lost, "cuda:0 cannot be used any more"); }

/// What a pool logs.
class log_book {
public:
  [[nodiscard]] log_sink sink() {
    return [this](log_level, std::string_view message) {
      const scoped_lock lock(guard_);
      messages_.emplace_back(message);
    };
  }
  [[nodiscard]] std::vector<std::string> messages() {
    const scoped_lock lock(guard_);
    return messages_;
  }

private:
  mutex guard_;
  std::vector<std::string> messages_ MUSTER_GUARDED_BY(guard_);
};

TEST(Replacement, TheResultArrivesAndTheNextTaskRunsInAnotherProcess) {
  pool pool(test::quiet(1));
  EXPECT_EQ(pool.apply(run_and_ask), 1U);
  EXPECT_EQ(pool.apply(incarnation), 2U);
  EXPECT_EQ(pool.apply(run_and_ask), 2U);
  EXPECT_EQ(pool.apply(incarnation), 3U);
  const auto counted = pool.stats().workers;
  EXPECT_EQ(counted.recycled, 2U);
  EXPECT_EQ(counted.recycled_unfit, 2U);
  EXPECT_EQ(counted.killed + counted.exited + counted.failed_starts, 0U);
}

TEST(Replacement, TheErrorArrivesToo) {
  pool pool(test::quiet(1));
  EXPECT_THROW(pool.apply([] {
    this_worker::replace_after_task("so it is");
    throw std::runtime_error("and that is what came of it");
  }),
               std::runtime_error);
  EXPECT_EQ(pool.apply(incarnation), 2U);
}

TEST(Replacement, TasksThatWaitForTheWorkerRunInTheNext) {
  pool pool(test::quiet(2));
  std::vector<future<std::uint32_t>> calls;
  for (int each = 0; each < 20; ++each) calls.push_back(pool.on(1).apply_async(run_and_ask));
  for (std::uint32_t each = 0; each < 20; ++each) EXPECT_EQ(calls[each].get(), each + 1) << "one each";
}

TEST(Replacement, ADeviceThatIsLostIsAReasonByItself) {
  pool pool(test::quiet(1));
  try {
    pool.apply(lose_device);
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::device_lost);
  }
  EXPECT_EQ(pool.apply(incarnation), 2U);
  EXPECT_EQ(pool.stats().workers.recycled_unfit, 1U);
}

TEST(Replacement, OtherErrorsAreNone) {
  pool pool(test::quiet(1));
  EXPECT_THROW(pool.apply([] { throw error(errc::out_of_memory, "ask for less"); }), error);
  EXPECT_EQ(pool.apply(incarnation), 1U);
}

// As it comes to a task that had called another.
[[noreturn]] void pass_on_what_another_lost() {
  error_info elsewhere;
  try {
    lose_device();
  } catch (...) {
    elsewhere = capture_current_exception();
  }
  elsewhere.raise();
}

TEST(Replacement, WhatAnotherWorkerHasLostIsNone) {
  pool pool(test::quiet(1));
  EXPECT_THROW(pool.apply(pass_on_what_another_lost), error);
  EXPECT_EQ(pool.apply(incarnation), 1U);
}

TEST(Replacement, TheReasonIsLoggedOnce) {
  log_book log;
  {
    pool pool({.workers = 1, .name = "train", .log = log.sink()});
    pool.apply(run_and_ask);
    pool.apply([] {});
  }
  ASSERT_EQ(log.messages().size(), 1U) << testing::PrintToString(log.messages());
  EXPECT_THAT(log.messages()[0], testing::StartsWith("worker 0 of 'train' (process "));
  EXPECT_THAT(log.messages()[0], HasSubstr("is replaced after the task that it is at: the context is broken"));
}

TEST(Replacement, AFinalizerStillRuns) {
  const test::temporary_directory directory;
  const auto file = (directory.path() / "ends").string();
  auto options = test::quiet(1);
  options.finalizer =
      muster::bind_front([](const std::string& where) { std::ofstream(where, std::ios::app) << "end\n"; }, file);
  pool pool(options);
  pool.apply(run_and_ask);
  pool.apply([] {});
  std::string line;
  std::ifstream(file) >> line;
  EXPECT_EQ(line, "end");
}

TEST(Replacement, ASuccessorThatIsReadyTakesThePlace) {
  auto options = test::quiet(1);
  options.max_tasks_per_worker = 1000;
  pool pool(options);
  for (int each = 0; each < 900; ++each) pool.apply([] {});
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.started == 2; }));
  pool.apply(run_and_ask);
  EXPECT_EQ(pool.apply(incarnation), 2U);
  EXPECT_EQ(pool.stats().workers.started, 2U);
}

// ---- maps

// Which process an element ran in.
std::uint32_t run_element(int element) {
  if (element % 10 == 3) this_worker::replace_after_task("this one was too much");
  return this_worker::incarnation();
}

TEST(Replacement, TheRestOfAChunkRunsInTheNext) {
  pool pool(test::quiet(1));
  std::vector<int> elements(40);
  for (int each = 0; each < 40; ++each) elements[static_cast<std::size_t>(each)] = each;
  const auto found = pool.with({.chunk = 40}).map(run_element, elements);
  for (std::size_t each = 0; each < 40; ++each) EXPECT_EQ(found[each], 1 + (each + 6) / 10) << each;
}

TEST(Replacement, AnElementThatFailsTakesItsProcessAndNothingElse) {
  pool pool(test::quiet(2));
  const auto run = [](int element) {
    if (element == 5) lose_device();
    return std::to_string(element);
  };
  const auto found = pool.with({.chunk = 10}).collect_errors().map(run, std::vector{1, 2, 3, 4, 5, 6, 7, 8});
  for (std::size_t each = 0; each < found.size(); ++each) {
    if (each == 4) {
      EXPECT_THAT(found[each].error().message(), HasSubstr("cuda:0"));
    } else {
      EXPECT_EQ(found[each].value(), std::to_string(each + 1));
    }
  }
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.recycled_unfit == 1; }));
}

TEST(Replacement, AnElementThatLostItsDeviceIsTriedAgainInAnotherProcess) {
  pool pool(test::quiet(1));
  const auto run = [](int element) {
    if (element == 2 && this_task::attempt() == 1) lose_device();
    return this_worker::incarnation();
  };
  EXPECT_THAT(
      pool.with({.retries = 1, .retry_on = retry::exceptions<error>(), .chunk = 4}).map(run, std::vector{1, 2, 3, 4}),
      testing::ElementsAre(1U, 2U, 2U, 2U));
}

TEST(Replacement, StreamsGoOnToo) {
  pool pool(test::quiet(2));
  std::vector<int> elements(100);
  for (int each = 0; each < 100; ++each) elements[static_cast<std::size_t>(each)] = each;
  std::size_t count = 0;
  for (const auto each : pool.imap(run_element, elements)) count += each > 0 ? 1 : 0;
  EXPECT_EQ(count, 100U);
  EXPECT_GT(pool.stats().workers.recycled_unfit, 0U);
}

// ---- who asks

TEST(Replacement, AnIdleWorkerLeavesAtOnce) {
  pool pool(test::quiet(1));
  const event go;
  pool.apply(
      [](const event& when) {
        std::thread([when] {
          when.wait();
          this_worker::replace_after_task("noticed late");
        }).detach();
      },
      go);
  EXPECT_EQ(pool.apply(incarnation), 1U);
  go.set();
  EXPECT_TRUE(test::eventually([&] { return pool.workers()[0].incarnation == 2; })) << "without any task";
}

TEST(Replacement, OfAnInitializerIsAFailedStart) {
  auto options = test::quiet(1);
  options.initializer = [] { this_worker::replace_after_task("no device answers"); };
  options.start_tries = 2;
  options.wait_for_start = false;
  pool pool(options);
  try {
    pool.started().get();
    pool.apply([] {});
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("no device answers"));
  }
  ASSERT_TRUE(test::eventually([&] { return pool.stats().workers.failed_starts == 2; }));
}

TEST(Replacement, OutsideOfAWorkerThereIsNobodyToReplace) {
  EXPECT_FALSE(this_worker::replace_after_task("why not"));
  thread_pool threads({.workers = 1});
  EXPECT_FALSE(threads.apply([] { return this_worker::replace_after_task("why not"); }));
}

TEST(Replacement, APoolThatIsClosedMeanwhileComesToItsEnd) {
  for (int round = 0; round < 10; ++round) {
    pool pool(test::quiet(2));
    std::vector<future<std::uint32_t>> calls;
    for (int each = 0; each < 6; ++each) calls.push_back(pool.apply_async(run_and_ask));
    pool.close();
    pool.join();
    for (auto& each : calls) EXPECT_GT(each.get(), 0U);
  }
}

TEST(Replacement, AWorkerThatRetiresFinishesWhatOnlyItMayRun) {
  pool pool(test::quiet(2));
  std::vector<future<std::uint32_t>> calls;
  for (int each = 0; each < 5; ++each) calls.push_back(pool.on(1).apply_async(run_and_ask));
  pool.resize(1);
  for (std::uint32_t each = 0; each < 5; ++each) EXPECT_EQ(calls[each].get(), each + 1);
}

}  // namespace
}  // namespace muster::replacement_test
