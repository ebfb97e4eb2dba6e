// SPDX-License-Identifier: BSL-1.0
// this_task::stop_token, in worker processes and in threads.
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "refused_calls.hpp"
#include "waiting_tasks.hpp"

namespace muster::stop_token_test {
namespace {

using test::quiet;
using test::run_until_asked;

std::size_t threads_here() {
  using iterator = std::filesystem::directory_iterator;
  return static_cast<std::size_t>(std::distance(iterator("/proc/self/task"), iterator()));
}

// Whether a token that is made after the request is stopped, and a callback called at once.
bool looks_late(const event& began) {
  began.set();
  while (!this_task::stop_requested()) std::this_thread::yield();
  bool called = false;
  const std::stop_callback callback(this_task::stop_token(), [&called] { called = true; });
  return called && this_task::stop_token().stop_requested();
}

template <class Pool>
void expect_that_cancelling_wakes(const Pool& pool) {
  for (int round = 0; round < 20; ++round) {
    const event began;
    auto waiting = pool.apply_async(run_until_asked, began);
    began.wait();
    EXPECT_FALSE(waiting.cancel());
    EXPECT_EQ(waiting.get(), 7);
  }
}

TEST(StopToken, WakesATaskOfAWorkerProcess) { expect_that_cancelling_wakes(pool(quiet(1))); }

TEST(StopToken, WakesATaskOfAThread) { expect_that_cancelling_wakes(thread_pool({.workers = 1})); }

// Whether the task is told of it in a way that it can understand.
bool is_refused_without_thread() {
  const test::refused_calls scope("pthread_create", EAGAIN);
  try {
    static_cast<void>(this_task::stop_token());
    return false;
  } catch (const error& failure) {
    return failure.code() == std::errc::resource_unavailable_try_again;
  }
}

TEST(StopToken, WithoutAThreadIsAnErrorOfTheLibrary) {
  const pool processes(quiet(1));
  EXPECT_TRUE(processes.apply(is_refused_without_thread));
}

TEST(StopToken, MadeAfterTheRequestItIsStopped) {
  const pool processes(quiet(1));
  const thread_pool threads({.workers = 1});
  const event in_process;
  const event in_thread;
  auto first = processes.apply_async(looks_late, in_process);
  auto second = threads.apply_async(looks_late, in_thread);
  in_process.wait();
  in_thread.wait();
  first.cancel();
  second.cancel();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
}

TEST(StopToken, ThatNobodyUsesEndsWithItsTask) {
  const pool pool(quiet(1));
  const auto asks = [](int x) {
    const auto token = this_task::stop_token();
    return token.stop_possible() && !token.stop_requested() ? x : -1;
  };
  ASSERT_EQ(pool.apply(asks, 0), 0);  // a sanitizer may start a thread of its own beside the first
  const auto before = pool.apply(threads_here);
  for (int each = 0; each < 100; ++each) ASSERT_EQ(pool.apply(asks, each), each);
  EXPECT_EQ(pool.apply(threads_here), before);
}

TEST(StopToken, OfACallInsideOfATaskIsItsOwn) {
  const pool pool(quiet(1));
  const auto inner_and_outer = [] {
    const auto outer = this_task::stop_token();
    const bool differs = this_pool::apply([] { return !this_task::stop_token().stop_requested(); });
    return differs && outer == this_task::stop_token();
  };
  EXPECT_TRUE(pool.apply(inner_and_outer));
}

TEST(StopToken, TerminatingAPoolOfThreadsStopsAll) {
  thread_pool pool({.workers = 2});
  const event began[2];
  auto first = pool.apply_async(run_until_asked, began[0]);
  auto second = pool.apply_async(run_until_asked, began[1]);
  for (const auto& each : began) each.wait();
  pool.terminate();
  EXPECT_EQ(first.get(), 7);
  EXPECT_EQ(second.get(), 7);
}

TEST(StopToken, CancellingAMapOfThreadsStopsItsElements) {
  const thread_pool pool({.workers = 1});
  const event began;
  auto all = pool.map_async([&began](int /*x*/) { return run_until_asked(began); }, std::vector<int>(10));
  began.wait();
  EXPECT_TRUE(all.cancel());
  EXPECT_EQ(all.get_result().error(), errc::cancelled);
}

TEST(StopToken, OutsideOfATaskCanNeverBeStopped) { EXPECT_FALSE(this_task::stop_token().stop_possible()); }

}  // namespace
}  // namespace muster::stop_token_test
