// SPDX-License-Identifier: BSL-1.0
// Every blocking call ends. Times are bounded by the tests' watchdog only; how long shutdown takes is a benchmark.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::shutdown_test {
namespace {

using namespace std::chrono_literals;

void discard(log_level, std::string_view) {}
int add(int a, int b) { return a + b; }
void hang() {
  for (;;) ::pause();
}
void spin_for_ever() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  std::atomic<bool> for_ever = true;
  while (for_ever) continue;
}

TEST(Shutdown, CloseLetsEverythingFinish) {
  pool pool({.workers = 2});
  std::vector<future<int>> futures;
  for (int each = 0; each < 2000; ++each) futures.push_back(pool.apply_async(add, each, 1));
  pool.close();
  pool.join();
  for (int each = 0; each < 2000; ++each) EXPECT_EQ(futures[static_cast<std::size_t>(each)].get(), each + 1);
}

TEST(Shutdown, AClosedPoolRefusesEveryCall) {
  pool pool({.workers = 1});
  pool.close();
  pool.close();
  const auto refused = [](auto call) {
    try {
      call();
      ADD_FAILURE();
    } catch (const task_error& caught) {
      EXPECT_EQ(caught.code(), errc::pool_closed);
      EXPECT_THAT(caught.what(), testing::HasSubstr("closed"));
    }
  };
  refused([&] { pool.apply(add, 1, 1); });
  refused([&] { static_cast<void>(pool.apply_async(add, 1, 1)); });
  refused([&] { pool.map([](int x) { return x; }, {1, 2}); });
  refused([&] { static_cast<void>(pool.imap([](int x) { return x; }, std::vector{1}).next()); });
}

TEST(Shutdown, JoinOfAPoolThatStillTakesTasksIsAnError) {
  pool pool({.workers = 1});
  try {
    pool.join();
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::invalid_argument);
    EXPECT_THAT(caught.what(), testing::HasSubstr("close()"));
  }
}

TEST(Shutdown, JoinForEndsWithoutTheWorkers) {
  pool pool({.workers = 1});
  auto stuck = pool.apply_async(hang);
  pool.close();
  EXPECT_FALSE(pool.join_for(5ms));
  pool.terminate();
  EXPECT_TRUE(pool.join_for(30s));
}

TEST(Shutdown, DrainWaitsForWhatWasAccepted) {
  pool pool({.workers = 2});
  std::vector<future<int>> futures;
  for (int each = 0; each < 100; ++each) futures.push_back(pool.apply_async(add, each, 1));
  pool.drain();
  for (auto& each : futures) EXPECT_TRUE(each.ready());
  EXPECT_THROW(static_cast<void>(pool.apply_async(add, 1, 1)), task_error);
}

TEST(Shutdown, DrainHasADeadline) {
  pool pool({.workers = 1});
  auto stuck = pool.apply_async(hang);
  EXPECT_FALSE(pool.drain(5ms));
}

// Predecessor's list, 7.
TEST(Shutdown, TerminateEndsAFullQueueAndLongTasks) {
  pool pool({.workers = 2});
  std::vector<future<void>> futures;
  for (int each = 0; each < 3000; ++each) futures.push_back(pool.apply_async(hang));
  pool.terminate();
  for (auto& each : futures) {
    const auto end = each.get_result();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error(), errc::cancelled) << end.error().describe();
  }
  pool.join();
}

TEST(Shutdown, TerminateEndsWorkersThatBlockAllSignals) {
  pool pool({.workers = 2});
  auto one = pool.apply_async(spin_for_ever);
  auto two = pool.apply_async(spin_for_ever);
  pool.terminate();
  EXPECT_FALSE(one.get_result());
  EXPECT_FALSE(two.get_result());
}

TEST(Shutdown, TerminateWakesThoseWhoWait) {
  pool pool({.workers = 1});
  auto stuck = pool.apply_async(hang);
  std::thread waiter([&] { EXPECT_FALSE(stuck.get_result()); });
  std::thread mapper([&] { EXPECT_THROW(pool.map([](int) { hang(); }, std::vector<int>(10)), task_error); });
  std::thread streamer([&] {
    auto results = pool.imap([](int) { hang(); }, std::vector<int>(10));
    EXPECT_THROW(results.next(), task_error);
  });
  ASSERT_TRUE(test::eventually([&] { return pool.stats().tasks.accepted >= 3; }));
  std::thread drainer([&] { pool.drain(); });
  pool.terminate();
  waiter.join();
  mapper.join();
  streamer.join();
  drainer.join();
}

TEST(Shutdown, TheDestructorEndsLongTasks) {
  std::vector<future<void>> futures;
  {
    pool pool({.workers = 2, .destructor_grace = 1ms});
    for (int each = 0; each < 100; ++each) futures.push_back(pool.apply_async(hang));
  }
  for (auto& each : futures) EXPECT_FALSE(each.get_result());
}

TEST(Shutdown, TheDestructorGivesRunningTasksItsGrace) {
  const test::temporary_directory files;
  const auto mark = (files.path() / "begun").string();
  future<int> running;
  {
    pool pool({.workers = 1, .destructor_grace = 30s});
    running = pool.apply_async(
        [](const std::string& begun) {
          std::ofstream(begun).put('x');
          test::work_for(50ms);
          return 5;
        },
        mark);
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(mark); }));
  }
  EXPECT_EQ(running.get(), 5);
}

TEST(Shutdown, JoinAfterLostTasksEnds) {
  pool pool({.workers = 2, .log = discard});
  std::vector<future<void>> futures;
  for (int each = 0; each < 20; ++each) futures.push_back(pool.apply_async([] { ::raise(SIGKILL); }));
  pool.close();
  pool.join();
  for (auto& each : futures) EXPECT_EQ(each.get_result().error(), errc::worker_died);
}

TEST(Shutdown, AnEmptyStreamThenCloseAndJoinEnds) {
  pool pool({.workers = 2});
  for ([[maybe_unused]] const int each : pool.imap([](int x) { return x; }, std::vector<int>())) FAIL();
  pool.close();
  pool.join();
}

TEST(Shutdown, JoinWhileChunksOfADroppedMapAreLeft) {
  pool pool({.workers = 1});
  static_cast<void>(pool.with({.chunk = 1}).map_async([](int x) { return x; }, std::vector<int>(500)));
  pool.close();
  pool.join();
}

TEST(Shutdown, CallbacksThatWereDueHaveRunWhenThePoolIsGone) {
  std::atomic<int> calls = 0;
  {
    pool pool({.workers = 1});
    for (int each = 0; each < 100; ++each) {
      pool.apply_async(add, each, 1).on_complete([&](int) { ++calls; }, [&](const error_info&) { ++calls; });
    }
  }
  EXPECT_EQ(calls, 100);
}

TEST(Shutdown, ACallbackMayDestroyThePool) {
  auto doomed = std::make_unique<pool>(pool_options{.workers = 1});
  std::atomic<bool> gone = false;
  doomed->apply_async(add, 1, 1).on_complete(
      [&](int) {
        doomed.reset();
        gone = true;
      },
      [](const error_info&) {});
  EXPECT_TRUE(test::eventually([&] { return gone.load(); }));
}

TEST(Shutdown, ManyPoolsOneAfterTheOther) {
  for (int round = 0; round < 20; ++round) {
    pool pool({.workers = 2});
    ASSERT_EQ(pool.apply(add, round, 1), round + 1);
  }
}

TEST(Shutdown, DrainingIsAFutureThatIsReadyAfterTheLastTask) {
  pool pool({.workers = 2});
  const event end;
  auto waiting = pool.apply_async([](const event& until) { until.wait(); }, end);
  auto first = pool.drain_async();
  auto second = pool.drain_async();
  EXPECT_FALSE(first.ready());
  EXPECT_THROW(static_cast<void>(pool.apply_async(add, 1, 1)), error);
  end.set();
  first.get();
  second.get();
  EXPECT_TRUE(waiting.ready());
  pool.drain_async().get();
  pool.join();
}

TEST(Shutdown, DrainingIsOverWhenThePoolIsTerminated) {
  pool pool({.workers = 1});
  auto stuck = pool.apply_async(hang);
  auto drained = pool.drain_async();
  pool.terminate();
  drained.get();
  EXPECT_EQ(stuck.get_result().error(), errc::cancelled);
}

TEST(Shutdown, TwoThreadsMayTerminateAtOnce) {
  pool pool({.workers = 2});
  auto stuck = pool.apply_async(hang);
  std::thread other([&] { pool.terminate(); });
  pool.terminate();
  other.join();
  EXPECT_FALSE(stuck.get_result());
}

TEST(Shutdown, AForkedChildThatEndsDoesNotHarmThePool) {
  auto shared = std::make_unique<pool>(pool_options{.workers = 1});
  const auto ranks = test::spawn(1, [&](std::size_t) {
    shared.reset();
    return 0;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
  EXPECT_EQ(shared->apply(add, 1, 1), 2);
}

TEST(Shutdown, CloseLetsMapsThatWereAcceptedFinish) {
  pool pool({.workers = 2});
  auto all = pool.with({.chunk = 10}).map_async([](int x) { return x + 1; }, std::views::iota(0, 20000));
  pool.close();
  pool.join();
  EXPECT_EQ(all.get().back(), 20000);
}

TEST(Shutdown, CloseLetsMapsFinishWhoseWorkersDie) {
  pool pool({.workers = 2, .quarantine_after = 0, .log = discard});
  auto all = pool.with({.retries = 3, .chunk = 10})
                 .map_async(
                     [](int x) {
                       if (x == 555 && this_worker::incarnation() == 1) ::raise(SIGKILL);
                       return x + 1;
                     },
                     std::views::iota(0, 2000));
  pool.close();
  pool.drain();
  EXPECT_TRUE(all.ready());
  EXPECT_EQ(all.get()[555], 556);
}

TEST(Shutdown, AStreamEndsWithTheErrorOfAPoolThatWasClosed) {
  pool pool({.workers = 2});
  auto stream = pool.with({.chunk = 1, .window = 4}).imap([](int x) { return x; }, std::views::iota(0));
  int seen = 0;
  try {
    for (const int each : stream) {
      EXPECT_EQ(each, seen++);
      if (seen == 10) pool.close();
    }
    FAIL() << "the input is endless";
  } catch (const error& closed) {
    EXPECT_EQ(closed.code(), errc::pool_closed);
  }
  EXPECT_GE(seen, 10);
  pool.join();
}

}  // namespace
}  // namespace muster::shutdown_test
