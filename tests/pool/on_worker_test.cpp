// SPDX-License-Identifier: BSL-1.0
// Tasks for one worker: pool.on(worker), and pools that deal their tasks out.
#include <muster/pool/p2p_pool.hpp>

#include <sched.h>
#include <signal.h>

#include <ranges>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processes.hpp"

namespace muster::on_worker_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

void discard(log_level, std::string_view) {}
int who(int) { return this_worker::id(); }
int add(int a, int b) { return a + b; }
void hang() {
  while (!this_task::stop_requested()) ::sched_yield();
}
int die_first(int x) {
  if (this_worker::incarnation() == 1) ::raise(SIGKILL);
  return x;
}

class OnWorker : public testing::Test {
protected:
  pool pool_{{.workers = 3, .quarantine_after = 0, .log = discard}};
};

TEST_F(OnWorker, TasksRunThereAndNowhereElse) {
  for (std::size_t worker = 0; worker < 3; ++worker) {
    for (int round = 0; round < 20; ++round) ASSERT_EQ(pool_.on(worker).apply(who, round), static_cast<int>(worker));
  }
}

TEST_F(OnWorker, OptionsAndWorkerGoTogether) {
  EXPECT_EQ(pool_.with({.label = "there"}).on(2).apply(who, 0), 2);
  EXPECT_EQ(pool_.on(1).with({.label = "there"}).apply(who, 0), 1);
  const auto results = pool_.on(1).collect_errors().map(who, {1, 2, 3});
  for (const auto& each : results) EXPECT_EQ(*each, 1);
  EXPECT_EQ(*pool_.collect_errors().on(2).map(who, {1})[0], 2);
}

TEST_F(OnWorker, MapsAndStreamsGoThere) {
  const auto input = std::views::iota(0, 500);
  EXPECT_THAT(pool_.on(1).map(who, input), Each(1));
  EXPECT_THAT(pool_.with({.chunk = 3}).on(2).map(who, input), Each(2));
  for (const int each : pool_.on(0).imap(who, input)) ASSERT_EQ(each, 0);
  for (const int each : pool_.on(2).imap_unordered(who, input)) ASSERT_EQ(each, 2);
  for (const int each : pool_.with({.chunk = 1}).on(1).imap(who, input)) ASSERT_EQ(each, 1);
}

TEST_F(OnWorker, AnIndexOutOfRangeIsRefusedWithBothNumbers) {
  const auto refused = [](auto call) {
    try {
      call();
      ADD_FAILURE();
    } catch (const error& caught) {
      EXPECT_EQ(caught.code(), errc::invalid_argument);
      EXPECT_THAT(caught.what(), AllOf(HasSubstr("on(7)"), HasSubstr("3 workers")));
    }
  };
  refused([&] { static_cast<void>(pool_.on(7)); });
  refused([&] { static_cast<void>(pool_.with({}).on(7)); });
  refused([&] { static_cast<void>(pool_.collect_errors().on(7)); });
}

TEST_F(OnWorker, WhatWaitsThereSurvivesTheWorker) {
  auto fatal = pool_.on(1).apply_async([] {
    test::work_for(20ms);  // long enough that the others wait behind it
    ::raise(SIGKILL);
  });
  std::vector<future<int>> waiting;
  for (int each = 0; each < 30; ++each) waiting.push_back(pool_.on(1).apply_async(who, each));
  EXPECT_EQ(fatal.get_result().error(), errc::worker_died);
  for (auto& each : waiting) EXPECT_EQ(each.get(), 1);
}

TEST_F(OnWorker, ARetriedTaskComesBackThere) {
  EXPECT_EQ(pool_.with({.retries = 1}).on(2).apply(die_first, 5), 5);
  EXPECT_EQ(pool_.on(2).apply([] { return this_worker::incarnation(); }), 2U);
}

// More than there are slots on the board: the others' tasks still get through.
TEST_F(OnWorker, ThousandsThatWaitForOneWorkerDoNotHoldUpTheOthers) {
  auto stuck = pool_.on(0).apply_async(hang);
  std::vector<future<int>> waiting;
  for (int each = 0; each < 5000; ++each) waiting.push_back(pool_.on(0).apply_async(add, each, 1));
  for (int each = 0; each < 100; ++each) ASSERT_EQ(pool_.on(1).apply(add, each, 1), each + 1);
  EXPECT_EQ(pool_.map([](int x) { return x; }, std::views::iota(0, 1000)).size(), 1000U);
  stuck.cancel();
  for (int each = 0; each < 5000; ++each) ASSERT_EQ(waiting[static_cast<std::size_t>(each)].get(), each + 1);
}

TEST_F(OnWorker, TerminateEndsWhatWaitsForOneWorker) {
  auto stuck = pool_.on(0).apply_async(hang);
  std::vector<future<int>> waiting;
  for (int each = 0; each < 3000; ++each) waiting.push_back(pool_.on(0).apply_async(add, each, 1));
  pool_.terminate();
  for (auto& each : waiting) EXPECT_EQ(each.get_result().error(), errc::cancelled);
  EXPECT_FALSE(stuck.get_result());
}

TEST_F(OnWorker, WhatWaitsCanBeCancelled) {
  auto stuck = pool_.on(0).apply_async(hang);
  std::vector<future<int>> waiting;
  for (int each = 0; each < 2000; ++each) waiting.push_back(pool_.on(0).apply_async(add, each, 1));
  for (auto& each : waiting) EXPECT_TRUE(each.cancel());
  for (auto& each : waiting) EXPECT_EQ(each.get_result().error(), errc::cancelled);
  stuck.cancel();
  EXPECT_EQ(pool_.on(0).apply(add, 1, 1), 2);
}

// ---- pools that deal out

class P2pPool : public testing::Test {
protected:
  p2p_pool pool_{{.workers = 4, .quarantine_after = 0, .log = discard}};
};

TEST_F(P2pPool, WorkersTakeTurns) {
  std::vector<future<int>> futures;
  for (int each = 0; each < 8; ++each) futures.push_back(pool_.apply_async(who, each));
  std::vector<int> found;
  for (auto& each : futures) found.push_back(each.get());
  EXPECT_THAT(found, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST_F(P2pPool, ChunksTakeTurnsToo) {
  const auto found = pool_.with({.chunk = 2}).map(who, std::views::iota(0, 16));
  EXPECT_THAT(found, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3));
}

TEST_F(P2pPool, OnNamesTheWorkerInstead) { EXPECT_EQ(pool_.on(3).apply(who, 0), 3); }

// Predecessor's list, 11: there exactly half of these never came back.
TEST_F(P2pPool, AllOfEightTasksComeBackWhenWorkerOneIsKilled) {
  p2p_pool pool({.workers = 2, .log = discard});
  const auto victim = pool.workers()[1];
  ::kill(victim.pid, SIGKILL);
  std::vector<future<int>> futures;
  for (int each = 0; each < 8; ++each) futures.push_back(pool.with({.retries = 1}).apply_async(add, each, 1));
  for (int each = 0; each < 8; ++each) EXPECT_EQ(futures[static_cast<std::size_t>(each)].get(), each + 1);
}

TEST_F(P2pPool, EveryTaskComesBackWhileWorkersAreKilled) {
  std::vector<future<int>> futures;
  for (int each = 0; each < 2000; ++each) {
    futures.push_back(pool_.with({.retries = 10}).apply_async(add, each, 1));
    if (each % 400 != 399) continue;
    // Only who has started: three starts in a row that fail break the pool.
    const auto victim = pool_.workers()[static_cast<std::size_t>(each / 400) % 4];
    if (victim.state == worker_lifecycle::state::working) ::kill(victim.pid, SIGKILL);
  }
  for (int each = 0; each < 2000; ++each) ASSERT_EQ(futures[static_cast<std::size_t>(each)].get(), each + 1);
}

TEST_F(P2pPool, IsAPool) {
  const pool& any = pool_;
  EXPECT_EQ(any.size(), 4U);
  const auto found = any.with({}).collect_errors().map(who, std::views::iota(0, 4));
  EXPECT_EQ(found.size(), 4U);
}

}  // namespace
}  // namespace muster::on_worker_test
