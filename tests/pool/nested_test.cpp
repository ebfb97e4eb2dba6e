// SPDX-License-Identifier: BSL-1.0
// Tasks that call their own pool.
#include <muster/pool/this_pool.hpp>

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/std_future.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::nested_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::uint64_t fib(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  auto one = this_pool::apply_async(fib, n - 1);
  const auto other = this_pool::apply(fib, n - 2);
  return one.get() + other;
}

int square(int x) { return x * x; }

int sum_of_squares(int count, bool backwards) {
  std::vector<future<int>> futures;
  for (int each = 0; each < count; ++each) futures.push_back(this_pool::apply_async(square, each));
  int sum = 0;
  if (backwards) std::reverse(futures.begin(), futures.end());
  for (auto& each : futures) sum += each.get();
  return sum;
}

std::vector<double> doubled(std::vector<double> values) {
  for (auto& each : values) each *= 2;
  return values;
}

double sum_of_doubled(std::size_t count) {
  std::vector<double> values(count, 1.5);
  const auto result = this_pool::apply(doubled, values);
  return std::accumulate(result.begin(), result.end(), 0.0);
}

int throw_out_of_range(int x) { throw std::out_of_range("no " + std::to_string(x)); }
std::string what_is_thrown() {
  try {
    return std::to_string(this_pool::apply(throw_out_of_range, 7));
  } catch (const std::out_of_range& failure) {
    return failure.what();
  }
}

void forget_some(int count) {
  for (int each = 0; each < count; ++each) static_cast<void>(this_pool::apply_async(square, each));
}

// The child does not start before another worker takes it.
template <class R>
result<R> result_of_another_worker(future<R> child) {
  while (!child.ready()) ::usleep(200);
  return child.get_result();
}

int kill_oneself(int x) {
  ::raise(SIGKILL);
  return x;
}

std::string name_of_childs_end() {
  const auto how = result_of_another_worker(this_pool::apply_async(kill_oneself, 1));
  if (how) return "a value";
  return how.error() == errc::worker_died && how.error().place().worker >= 0 ? "died" : how.error().describe();
}

int die_with_calls(int count) {
  std::vector<future<std::vector<double>>> futures;
  for (int each = 0; each < count; ++each) {
    futures.push_back(this_pool::apply_async(doubled, std::vector<double>(10000, 1.0)));
  }
  return kill_oneself(count);
}

// As fib, for a world in which calls die.
std::uint64_t stubborn_fib(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  auto one = this_pool::apply_async(stubborn_fib, n - 1);
  auto other = this_pool::apply_async(stubborn_fib, n - 2).get_result();
  while (!other) other = this_pool::apply_async(stubborn_fib, n - 2).get_result();
  auto first = one.get_result();
  while (!first) first = this_pool::apply_async(stubborn_fib, n - 1).get_result();
  return *first + *other;
}

double stubborn_sum_of_doubled(std::size_t count) {
  const std::vector<double> values(count, 1.5);
  auto how = this_pool::apply_async(doubled, values).get_result();
  while (!how) how = this_pool::apply_async(doubled, values).get_result();
  return std::accumulate(how->begin(), how->end(), 0.0);
}

void sleep_long() { ::sleep(1000); }
void wait_long() { this_pool::apply(sleep_long); }

int value_after(std::chrono::milliseconds time, int value) {
  test::work_for(time);
  return value;
}
int slow_sum() {
  auto one = this_pool::apply_async(value_after, 30ms, 1);
  auto other = this_pool::apply_async(value_after, 30ms, 2);
  test::work_for(50ms);
  return one.get() + other.get();
}

int in_another_thread() {
  int code = 0;
  std::thread([&] {
    try {
      this_pool::apply(square, 2);
    } catch (const error& failure) {
      code = failure.code().value();
    }
  }).join();
  return code;
}

// ---- callbacks in a task

int square_by_callbacks(int x) {
  const auto mine = std::this_thread::get_id();
  auto made = this_pool::apply_async(square, x)
                  .then([mine](int value) { return std::pair(value, std::this_thread::get_id() == mine); })
                  .then([](std::pair<int, bool> value) { return value.second ? value.first + 1 : -1; });
  return made.get();
}

int sum_by_when_all(int count) {
  std::vector<future<int>> futures;
  for (int each = 0; each < count; ++each) futures.push_back(this_pool::apply_async(square, each));
  return when_all(std::move(futures))
      .then([](std::vector<int> all) { return std::accumulate(all.begin(), all.end(), 0); })
      .get();
}

int first_of_some(int count) {
  std::vector<future<int>> futures;
  for (int each = 0; each < count; ++each) futures.push_back(this_pool::apply_async(square, each));
  const auto first = when_any(std::move(futures)).get();
  return first.value == square(static_cast<int>(first.index)) ? 1 : 0;
}

int sum_as_completed(int count) {
  std::vector<future<int>> futures;
  for (int each = 0; each < count; ++each) futures.push_back(this_pool::apply_async(square, each));
  int sum = 0;
  for (auto& each : as_completed(futures)) sum += each.get();
  return sum;
}

std::string name_of_failure_in_callback() {
  std::string found = "not called";
  auto failed = this_pool::apply_async(throw_out_of_range, 7).then([](int x) { return x; });
  try {
    failed.get();
  } catch (const std::out_of_range& failure) {
    found = failure.what();
  }
  return found;
}

std::atomic<int> noted = 0;  // of this process
void note_square(int x) {
  this_pool::apply_async(square, x).on_complete([](int value) { noted += value; },
                                                [](const error_info&) { noted = -1; });
}
int note_and_throw(int x) {
  note_square(x);
  throw std::runtime_error("after its calls");
}
void throw_in_callback(int x) {
  this_pool::apply_async(square, x).on_complete([](int) { throw std::runtime_error("in a callback"); },
                                                [](const error_info&) {});
  note_square(x);
}
int call_in_callback(int x) {
  return this_pool::apply_async(square, x).then([](int value) { return this_pool::apply(square, value); }).get();
}
int what_was_noted() { return noted.exchange(0); }

int code_of_std_in_a_task() {
  auto value = this_pool::apply_async(square, 3);
  try {
    static_cast<void>(value.std());
  } catch (const error& failure) {
    return value.get() == 9 ? failure.code().value() : 0;
  }
  return 0;
}

class Nested : public testing::TestWithParam<unsigned> {
protected:
  void TearDown() override {
    EXPECT_TRUE(pool_.drain(60s));
    EXPECT_TRUE(test::eventually([&] { return pool_.stats().memory.live_blocks == 0; }));
    const auto stats = pool_.stats();
    EXPECT_EQ(stats.tasks.accepted, stats.tasks.ended);
    EXPECT_EQ(stats.tasks.corrupted, 0U);
  }

  pool pool_{{.workers = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Workers, Nested, testing::Values(1, 2, 4));

TEST_P(Nested, RecursionEnds) { EXPECT_EQ(pool_.apply(fib, 13), 233U); }

TEST_P(Nested, ManyRecursionsAtOnceEnd) {
  const auto all = pool_.map(fib, std::vector(30, 8));
  EXPECT_EQ(all, std::vector<std::uint64_t>(30, 21));
}

TEST_P(Nested, MoreCallsThanTheBoardHasSlotsEnd) {
  std::vector<future<int>> futures;
  for (int each = 0; each < 3000; ++each) futures.push_back(pool_.apply_async(sum_of_squares, 3, false));
  for (auto& each : futures) ASSERT_EQ(each.get(), 5);
}

TEST_P(Nested, FuturesAreTakenInAnyOrder) {
  for (const int count : {1, 5, 31, 33, 300}) {
    const int expected = (count - 1) * count * (2 * count - 1) / 6;
    EXPECT_EQ(pool_.apply(sum_of_squares, count, false), expected);
    EXPECT_EQ(pool_.apply(sum_of_squares, count, true), expected);
  }
}

TEST_P(Nested, LargeArgumentsAndResultsArrive) {
  for (const std::size_t count : {1U, 100U, 5000U, 1000000U}) {
    EXPECT_EQ(pool_.apply(sum_of_doubled, count), 3.0 * static_cast<double>(count));
  }
}

TEST_P(Nested, AnExceptionArrivesAsItself) { EXPECT_EQ(pool_.apply(what_is_thrown), "no 7"); }

TEST_P(Nested, AFutureThatIsDroppedLetsItsCallRun) {
  pool_.apply(forget_some, 20);
  EXPECT_TRUE(pool_.drain(60s));
  EXPECT_EQ(pool_.stats().tasks.ended, 21U);
}

TEST_P(Nested, CallsAreLetThroughAfterClose) {
  auto slow = pool_.apply_async(slow_sum);
  pool_.close();
  EXPECT_EQ(slow.get(), 3);
  pool_.join();
}

TEST_P(Nested, TerminateEndsATaskThatWaits) {
  auto stuck = pool_.apply_async(wait_long);
  test::work_for(20ms);
  pool_.terminate();
  const auto end = stuck.get_result();
  ASSERT_FALSE(end);
  EXPECT_TRUE(end.error() == errc::cancelled || end.error() == errc::worker_died) << end.error().describe();
}

TEST_P(Nested, ATaskThatDiesTakesItsCallsAlong) {
  for (int each = 0; each < 5; ++each) {
    EXPECT_EQ(pool_.apply_async(die_with_calls, 20).get_result().error(), errc::worker_died);
  }
  EXPECT_EQ(pool_.apply(sum_of_squares, 4, false), 14);
}

TEST_P(Nested, OtherThreadsOfATaskAreRefused) {
  EXPECT_EQ(pool_.apply(in_another_thread), static_cast<int>(errc::invalid_argument));
}

TEST_P(Nested, ThenRunsOnTheTasksOwnThread) {
  for (int each = 0; each < 50; ++each) ASSERT_EQ(pool_.apply(square_by_callbacks, each), each * each + 1);
}

TEST_P(Nested, AllOrAnyOfSomeCallsAreAwaitedInATask) {
  for (const int count : {1, 2, 20, 40}) {
    const int expected = (count - 1) * count * (2 * count - 1) / 6;
    EXPECT_EQ(pool_.apply(sum_by_when_all, count), expected);
    EXPECT_EQ(pool_.apply(sum_as_completed, count), expected);
    EXPECT_EQ(pool_.apply(first_of_some, count), 1);
  }
}

TEST_P(Nested, AFailureSkipsCallbacks) { EXPECT_EQ(pool_.apply(name_of_failure_in_callback), "no 7"); }

TEST_P(Nested, ACallbackMayCallThePool) { EXPECT_EQ(pool_.apply(call_in_callback, 3), 81); }

TEST_P(Nested, CallbacksHaveRunWhenTheTaskHasEnded) {
  pool_.on(0).apply(note_square, 4);
  EXPECT_EQ(pool_.on(0).apply(what_was_noted), 16);
  EXPECT_THROW(pool_.on(0).apply(note_and_throw, 5), std::runtime_error);
  EXPECT_EQ(pool_.on(0).apply(what_was_noted), 25);
}

TEST_P(Nested, WhatACallbackThrowsHarmsNothing) {
  pool_.on(0).apply(throw_in_callback, 6);
  EXPECT_EQ(pool_.on(0).apply(what_was_noted), 36);
}

TEST_P(Nested, WhatOnlyAnotherThreadCouldNoticeIsRefused) {
  EXPECT_EQ(pool_.apply(code_of_std_in_a_task), static_cast<int>(errc::invalid_argument));
}

TEST(NestedCall, OutsideOfATaskTheErrorSaysWhatToDo) {
  try {
    this_pool::apply(square, 2);
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_THAT(failure.what(), HasSubstr("call the pool itself"));
  }
}

TEST(NestedCall, TheDeathOfAChildIsAnErrorOfTheChild) {
  pool pool({.workers = 2});
  EXPECT_EQ(pool.apply(name_of_childs_end), "died");
  EXPECT_EQ(pool.apply(square, 3), 9);
}

TEST(NestedSoak, RandomKillsLoseDoubleAndCorruptNothing) {
  constexpr task_options patient{.retries = 1000000};
  pool pool({.workers = 3, .quarantine_after = 0, .start_tries = 1000000, .log = [](log_level, std::string_view) {}});
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0;
  std::atomic<int> wrong = 0;
  const auto check = [&](bool right) { ++calls, wrong += right ? 0 : 1; };
  const auto client = [&](unsigned seed) {
    std::minstd_rand random(seed);
    while (!stop) {
      switch (random() % 3) {
        case 0: check(pool.with(patient).apply(stubborn_fib, 8) == 21); break;
        case 1: check(pool.with(patient).apply(stubborn_sum_of_doubled, 3000U) == 9000.0); break;
        default: pool.with(patient).apply(forget_some, 7);
      }
    }
  };
  std::thread one(client, 1);
  std::thread two(client, 2);
  std::minstd_rand random(3);
  int kills = 0;
  for (const auto end = deadline::after(3s); !end.expired();) {
    test::work_for(std::chrono::microseconds(500 + random() % 4000));  // the rate of killing
    const auto victim = pool.workers()[random() % 3];
    if (victim.pid != 0 && ::kill(victim.pid, SIGKILL) == 0) ++kills;
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_TRUE(pool.drain(60s));
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(test::eventually([&] { return pool.stats().memory.live_blocks == 0; }));
  const auto stats = pool.stats();
  EXPECT_EQ(stats.tasks.accepted, stats.tasks.ended);
  EXPECT_EQ(stats.tasks.corrupted, 0U);
  std::printf("%d calls, %d kills, %llu tasks\n", calls.load(), kills,
              static_cast<unsigned long long>(stats.tasks.accepted));
}

}  // namespace
}  // namespace muster::nested_test
