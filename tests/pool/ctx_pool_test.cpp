// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/ctx_pool.hpp>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "temporary_directory.hpp"

namespace muster::ctx_pool_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

void discard(log_level, std::string_view) {}

// A context that cannot be sent, copied or moved.
class counter {
public:
  explicit counter(int start) : value_(start) {}
  counter(const counter&) = delete;
  counter& operator=(const counter&) = delete;
  int next() { return value_++; }

private:
  int value_;
};

// Leaves a file behind when it is destroyed.
class note {
public:
  explicit note(std::string path) : path_(std::move(path)) {}
  note(const note&) = delete;
  note& operator=(const note&) = delete;
  ~note() { std::ofstream(path_) << "left"; }

private:
  std::string path_;
};

int context_of(int& context, int) { return context; }

TEST(CtxPool, GivenContextsBelongToTheirWorkers) {
  const ctx_pool<std::string> pool({"zero", "one"});
  EXPECT_EQ(pool.size(), 2U);
  EXPECT_EQ(pool.on(0).apply([](std::string& context) { return context; }), "zero");
  EXPECT_EQ(pool.on(1).apply([](const std::string& context, int x) { return context + std::to_string(x); }, 5), "one5");
}

TEST(CtxPool, AFactoryMakesThemInTheWorker) {
  const ctx_pool<pid_t> pool([] { return ::getpid(); }, {.workers = 2});
  EXPECT_TRUE(pool.apply([](pid_t& context) { return context == ::getpid(); }));
}

TEST(CtxPool, AFactoryMayAskForTheWorkersIndex) {
  const ctx_pool<counter> pool([](std::size_t worker) { return counter(static_cast<int>(worker) * 100); },
                               {.workers = 2});
  EXPECT_EQ(pool.on(1).apply([](counter& context) { return context.next(); }), 100);
  EXPECT_EQ(pool.on(0).apply(fn<&counter::next>), 0);
}

TEST(CtxPool, AFactoryMayHaveBoundArguments) {
  const ctx_pool<std::string> pool(
      muster::bind_front([](const std::string& name, std::size_t worker) { return name + std::to_string(worker); },
                         "context "),
      {.workers = 1});
  EXPECT_EQ(pool.apply([](std::string& context) { return context; }), "context 0");
}

TEST(CtxPool, WhatTasksChangeStaysInTheWorker) {
  const ctx_pool<counter> pool([] { return counter(0); }, {.workers = 1});
  for (int expected = 0; expected < 100; ++expected) ASSERT_EQ(pool.apply(fn<&counter::next>), expected);
}

TEST(CtxPool, BoundArgumentsComeAfterTheContext) {
  const ctx_pool<int> pool({1000});
  const auto sum = [](int& context, int bound, int x) { return context + bound + x; };
  EXPECT_EQ(pool.apply(muster::bind_front(sum, 200), 30), 1230);
  EXPECT_THAT(pool.map(muster::bind_front(sum, 200), {1, 2}), ElementsAre(1201, 1202));
  int captured = 5;
  EXPECT_EQ(pool.apply(trivial_capture([captured](int& context) { return context + captured; })), 1005);
}

TEST(CtxPool, AllCallsGiveTheContext) {
  const ctx_pool<int> pool({10, 10});
  const std::vector<int> xs = {1, 2, 3};
  const std::vector<std::pair<int, int>> pairs = {{1, 2}, {3, 4}};
  const auto plus = [](int& context, int x) { return context + x; };
  const auto plus_both = [](int& context, int x, int y) { return context + x + y; };
  EXPECT_EQ(pool.apply_async(plus, 1).get(), 11);
  EXPECT_THAT(pool.map(plus, xs), ElementsAre(11, 12, 13));
  EXPECT_THAT(pool.map_async(plus, xs).get(), ElementsAre(11, 12, 13));
  EXPECT_THAT(pool.starmap(plus_both, pairs), ElementsAre(13, 17));
  EXPECT_THAT(pool.starmap_async(plus_both, pairs).get(), ElementsAre(13, 17));
  int sum = 0;
  for (const int each : pool.imap(plus, xs)) sum += each;
  for (const int each : pool.with({.chunk = 1}).imap(plus, xs)) sum += each;
  for (const int each : pool.imap_unordered(plus, xs)) sum += each;
  for (const int each : pool.istarmap(plus_both, pairs)) sum += each;
  EXPECT_EQ(sum, 3 * 36 + 30);
  EXPECT_EQ(*pool.collect_errors().map(plus, xs)[2], 13);
  EXPECT_EQ(pool.with({.label = "with"}).on(1).apply(plus, 1), 11);
}

// Predecessor's tests of its pool with contexts.
TEST(CtxPool, FourContextsForTwoWorkersAreRefusedWithBothNumbers) {
  try {
    const ctx_pool<int> pool({0, 1, 2, 3}, {.workers = 2});
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::invalid_argument);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr("4 contexts"), HasSubstr("2 workers")));
  }
  EXPECT_THROW(ctx_pool<int>(std::vector<int>()), error);
}

TEST(CtxPool, TenElementsSeeOnlyTheContextsThatWereGiven) {
  const ctx_pool<int> pool({0, 1});
  const auto found = pool.map([](int& context, int x) { return std::pair(context, 2 * x); }, std::views::iota(0, 10));
  for (int x = 0; x < 10; ++x) {
    EXPECT_EQ(found[static_cast<std::size_t>(x)].second, 2 * x);
    EXPECT_THAT(found[static_cast<std::size_t>(x)].first, testing::AnyOf(0, 1));
  }
  EXPECT_THAT(pool.starmap([](int& context, int x, int y) { return context >= 0 && context <= 1 ? x + y : -1; },
                           std::vector<std::pair<int, int>>{{1, 1}, {2, 2}}),
              ElementsAre(2, 4));
}

TEST(CtxPool, TwoPoolsDoNotMixTheirContexts) {
  const ctx_pool<int> low({0, 1});
  const ctx_pool<int> high({2, 3});
  auto ours = low.map_async(context_of, std::views::iota(0, 50000));
  auto theirs = high.map_async(context_of, std::views::iota(0, 50000));
  EXPECT_THAT(ours.get(), Each(testing::AnyOf(0, 1)));
  EXPECT_THAT(theirs.get(), Each(testing::AnyOf(2, 3)));
}

// ---- deaths

TEST(CtxPool, AReplacementHasTheContextOfItsIndexAnew) {
  const ctx_pool<int> pool({5, 6}, {.log = discard});
  const auto next = [](int& context) { return context++; };
  EXPECT_EQ(pool.on(1).apply(next), 6);
  EXPECT_EQ(pool.on(1).apply(next), 7);
  EXPECT_THROW(pool.on(1).apply([](int&) { ::raise(SIGKILL); }), worker_died);
  EXPECT_EQ(pool.on(1).apply(next), 6);
  EXPECT_EQ(pool.on(0).apply(next), 5);
}

TEST(CtxPool, AReplacementsContextIsMadeByTheFactory) {
  const ctx_pool<counter> pool([](std::size_t worker) { return counter(static_cast<int>(worker) + 50); },
                               {.workers = 2, .log = discard});
  EXPECT_EQ(pool.on(1).apply(fn<&counter::next>), 51);
  EXPECT_THROW(pool.on(1).apply([](counter&) { ::raise(SIGKILL); }), worker_died);
  EXPECT_EQ(pool.on(1).apply(fn<&counter::next>), 51);
}

// Predecessor's list, 10: the context's slot is kept when every task has a process of its own.
TEST(CtxPool, RecycledWorkersKeepTheirContexts) {
  const ctx_pool<int> pool({10, 11}, {.max_tasks_per_worker = 1});
  std::set<pid_t> processes;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t worker = 0; worker < 2; ++worker) {
      const auto [context, process] = pool.on(worker).apply([](int& mine) { return std::pair(mine++, ::getpid()); });
      EXPECT_EQ(context, 10 + static_cast<int>(worker));
      processes.insert(process);
    }
  }
  EXPECT_EQ(processes.size(), 40U);
}

TEST(CtxPool, AFactoryThatFailsBreaksThePoolWhichSaysWhy) {
  // Not waited for: where processes start slowly it would be broken before that, and throw.
  const ctx_pool<int> pool([]() -> int { throw std::runtime_error("no model there"); },
                           {.workers = 1, .start_tries = 2, .wait_for_start = false, .log = discard});
  try {
    pool.apply(context_of, 1);
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::pool_broken);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr("making the worker's context"), HasSubstr("no model there")));
  }
}

TEST(CtxPool, TheContextIsDestroyedWhenTheWorkerLeaves) {
  const test::temporary_directory files;
  {
    ctx_pool<note> pool(
        muster::bind_front([](const std::string& path) { return note(path); }, (files.path() / "left").string()),
        {.workers = 1});
    pool.apply([](note&) {});
    pool.close();
    pool.join();
  }
  EXPECT_TRUE(std::filesystem::exists(files.path() / "left"));
}

TEST(CtxPool, StartsSharesAndDrainsLikeAnyPool) {
  ctx_pool<int> pool({1, 2}, {.wait_for_start = false});
  pool.started().get();
  const auto table = pool.share(std::array<int, 3>{7, 8, 9});
  const auto sum = [](int& context, const shared_object<std::array<int, 3>>& numbers) {
    return context + (*numbers)[2];
  };
  EXPECT_EQ(pool.on(0).apply(sum, table), 10);
  EXPECT_EQ(pool.on(1).apply(sum, table), 11);
  pool.drain_async().get();
  EXPECT_THROW(pool.apply(context_of, 1), error);
}

TEST(CtxPool, OneOfAFactoryGrows) {
  ctx_pool<counter> pool([](std::size_t worker) { return counter(static_cast<int>(10 * worker)); }, {.workers = 1});
  pool.resize(3);
  EXPECT_EQ(pool.size(), 3U);
  EXPECT_EQ(pool.on(2).apply([](counter& own) { return own.next(); }), 20);
  EXPECT_EQ(pool.on(2).apply([](counter& own) { return own.next(); }), 21);
  pool.resize_async(1).get();
  EXPECT_EQ(pool.size(), 1U);
}

TEST(CtxPool, OneOfGivenContextsGrowsToTheirNumberOnly) {
  ctx_pool<int> pool({5, 6});
  pool.resize(1);
  pool.resize(2);
  EXPECT_EQ(pool.on(1).apply(context_of, 0), 6);
  EXPECT_THROW(pool.resize(3), error);
  EXPECT_EQ(pool.size(), 2U);
}

TEST(CtxPool, TellsALoopOfTheProgram) {
  boost::asio::io_context loop;
  const ctx_pool<int> pool(loop, std::vector<int>{3, 3});
  int seen = 0;
  pool.apply_async([](int& context, int x) { return context * x; }, 14)
      .on_complete([&](int product) { seen = product; }, [](const error_info&) {});
  loop.run();
  EXPECT_EQ(seen, 42);
}

TEST(CtxPool, EndsLikeAnyPool) {
  ctx_pool<int> pool({1, 2});
  auto sum = pool.apply_async(context_of, 1);
  EXPECT_EQ(pool.workers().size(), 2U);
  pool.drain();
  EXPECT_TRUE(sum.ready());
  EXPECT_EQ(pool.stats().pending, 0U);
  EXPECT_THROW(pool.apply(context_of, 1), error);
  pool.join();
}

}  // namespace
}  // namespace muster::ctx_pool_test
