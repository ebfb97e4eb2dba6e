// SPDX-License-Identifier: BSL-1.0
// Pools with room for more than 64 workers: the parent reads the rings of those only that have entered something.
#include <signal.h>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/this_pool.hpp>
#include <muster/pool/thread_pool.hpp>

namespace muster::large_pool_test {
namespace {

void discard(log_level, std::string_view) {}

int twice(int x) { return 2 * x; }

int die_first(int x) {
  if (this_worker::incarnation() == 1) ::raise(SIGKILL);
  return x;
}

pool_options with_room() { return {.workers = 2, .max_workers = 1000, .quarantine_after = 0, .log = discard}; }

TEST(LargePool, CallbacksAreToldOfEachEnd) {
  const pool pool(with_room());
  std::atomic<int> sum = 0;
  std::vector<future<void>> told;
  for (int each = 0; each < 3000; ++each) {
    told.push_back(pool.apply_async(twice, each).then([&sum](int found) { sum += found; }));
  }
  for (auto& each : told) each.get();
  EXPECT_EQ(sum, 2999 * 3000);
}

TEST(LargePool, TasksCallTheirPool) {
  const pool pool(with_room());
  const auto results = pool.map([](int x) { return this_pool::apply_async(twice, x).get(); }, std::vector<int>(100, 4));
  EXPECT_EQ(results, std::vector<int>(100, 8));
}

TEST(LargePool, WhatADeadWorkerHadIsRunAgain) {
  const pool pool(with_room());
  std::vector<future<int>> results;
  for (int each = 0; each < 20; ++each) {
    results.push_back(pool.with({.retries = 20}).apply_async(die_first, each));
  }
  for (int each = 0; each < 20; ++each) EXPECT_EQ(results[static_cast<std::size_t>(each)].get(), each);
}

TEST(LargePool, WorkersBeyondTheFirst64AreReadToo) {
  pool pool(with_room());
  pool.resize(70);
  std::vector<future<int>> results;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t worker = 60; worker < 70; ++worker) {
      results.push_back(pool.on(worker).apply_async(this_worker::id).then([](int id) { return id; }));
    }
  }
  for (std::size_t each = 0; each < results.size(); ++each) {
    EXPECT_EQ(results[each].get(), static_cast<int>(60 + each % 10));
  }
}

TEST(LargePool, OfThreadsRunsATaskInEachOfAThousand) {
  const thread_pool pool({.workers = 1000});
  std::vector<future<int>> own;
  for (std::size_t worker = 0; worker < 1000; ++worker) own.push_back(pool.on(worker).apply_async(this_worker::id));
  for (std::size_t worker = 0; worker < 1000; ++worker) EXPECT_EQ(own[worker].get(), static_cast<int>(worker));
}

}  // namespace
}  // namespace muster::large_pool_test
