// SPDX-License-Identifier: BSL-1.0
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::timeout_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }
void run_for_ever() {
  for (;;) ::pause();
}
int hang_at_seven(int x) {
  if (x == 7) run_for_ever();
  return x * 2;
}

pool_options quiet(unsigned workers) {
  return {.workers = workers, .log = [](log_level, std::string_view) {}};
}

TEST(Timeout, TheLongestIsNever) {
  const pool pool(quiet(1));
  EXPECT_EQ(pool.with({.timeout = std::chrono::nanoseconds::max()}).apply(add, 1, 2), 3);
  EXPECT_EQ(pool.with({.deadline = std::chrono::nanoseconds::max()}).apply(add, 1, 2), 3);
  EXPECT_THAT(pool.with({.timeout = std::chrono::nanoseconds::max()}).map(hang_at_seven, std::vector{1, 2}),
              testing::ElementsAre(2, 4));
}

// Whoever is killed for a timeout shows that all times have been looked at.
TEST(Timeout, TheLongestIsNotOverWhenThatOfAnotherTaskIs) {
  const pool pool(quiet(3));
  const event began;
  const event end;
  auto patient = pool.with({.timeout = std::chrono::nanoseconds::max()}).apply_async(test::run_until, began, end);
  began.wait();
  const event other_began;
  auto other = pool.with({.deadline = std::chrono::nanoseconds::max(), .timeout = 1h})
                   .apply_async(test::run_until, other_began, end);
  other_began.wait();
  EXPECT_EQ(pool.with({.timeout = 20ms}).apply_async(run_for_ever).get_result().error(), errc::timed_out);
  end.set();
  EXPECT_TRUE(patient.get_result().has_value());
  EXPECT_TRUE(other.get_result().has_value());
  EXPECT_EQ(pool.stats().tasks.timed_out, 1U);
  EXPECT_EQ(pool.stats().workers.overdue, 1U);
}

TEST(Timeout, OneThatIsNegativeIsRefused) {
  const pool pool(quiet(1));
  const auto refusal = [&](const task_options& how) -> std::string {
    try {
      static_cast<void>(pool.with(how));
    } catch (const error& found) {
      EXPECT_EQ(found.code(), errc::invalid_argument);
      return found.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({.timeout = -5ms}), HasSubstr("timeout = -5 ms"));
  EXPECT_THAT(refusal({.retry_delay = -1ms}), HasSubstr("retry_delay = -1 ms"));
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
}

int stop_all_and_work(pid_t group) {
  ::kill(-group, SIGSTOP);  // the program, and this worker with it
  timespec used{};
  do {
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 30'000'000);
  return 42;
}

// It was ended when it went on, though it had hardly run.
TEST(Timeout, TheTimeInWhichTheWholeProgramWasStoppedDoesNotCount) {
  const auto ranks = test::spawn(1, [](std::size_t) {
    ::setpgid(0, 0);
    init(0, nullptr);  // a forked child is another process
    auto options = quiet(1);
    options.worker_groups = false;
    const pool pool(options);
    const auto timed = pool.with({.timeout = 1s}).apply_async(stop_all_and_work, ::getpid()).get_result();
    const auto late = pool.with({.deadline = 3s}).apply_async(stop_all_and_work, ::getpid()).get_result();
    return timed.has_value() && late.has_value() ? 0 : 1;
  });
  const auto program = ranks->pid(0);
  for (const auto limit : {1s, 3s}) {
    int status = 0;
    ASSERT_EQ(::waitpid(program, &status, WUNTRACED), program);
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
    std::this_thread::sleep_until(clock::now() + limit + 500ms);  // longer than it may run
    ::kill(-program, SIGCONT);
  }
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

TEST(Timeout, ATaskThatRunsForTooLongIsEndedAndItsWorkerReplaced) {
  const pool pool(quiet(1));
  const auto found = pool.with({.timeout = 50ms, .label = "hanging"}).apply_async(run_for_ever).get_result();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error(), errc::timed_out);
  EXPECT_THAT(found.error().describe(), HasSubstr("longer than its timeout of 50 ms"));
  EXPECT_THAT(found.error().describe(), HasSubstr("hanging"));
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
  EXPECT_EQ(pool.stats().tasks.timed_out, 1U);
  EXPECT_EQ(pool.stats().tasks.lost, 0U);
  EXPECT_EQ(pool.stats().workers.overdue, 1U);
}

TEST(Timeout, OneThatIsInTimeGivesItsValue) {
  const pool pool(quiet(2));
  const auto timed = pool.with({.timeout = 60s});
  for (int each = 0; each < 200; ++each) EXPECT_EQ(timed.apply(add, each, 1), each + 1);
  EXPECT_EQ(pool.stats().workers.overdue, 0U);
}

TEST(Timeout, WaitingForAWorkerDoesNotCount) {
  const pool pool(quiet(1));
  auto first = pool.apply_async([] { ::usleep(400'000); });
  auto second = pool.with({.timeout = 100ms}).apply_async(add, 1, 2);
  EXPECT_EQ(second.get(), 3);
  first.get();
}

TEST(Timeout, IsNotRetried) {
  const pool pool(quiet(1));
  const auto found = pool.with({.retries = 5, .timeout = 50ms}).apply_async(run_for_ever).get_result();
  EXPECT_EQ(found.error(), errc::timed_out);
  EXPECT_EQ(pool.stats().tasks.retried, 0U);
}

TEST(Timeout, HarmsNoOtherTask) {
  const pool pool(quiet(2));
  std::vector<future<int>> others;
  std::vector<future<void>> hanging;
  for (int each = 0; each < 300; ++each) {
    others.push_back(pool.apply_async(add, each, 1));
    if (each % 100 == 50) hanging.push_back(pool.with({.timeout = 50ms}).apply_async(run_for_ever));
  }
  for (auto& each : hanging) EXPECT_EQ(each.get_result().error(), errc::timed_out);
  for (int each = 0; each < 300; ++each) EXPECT_EQ(others[static_cast<std::size_t>(each)].get(), each + 1);
  EXPECT_EQ(pool.stats().tasks.lost, 0U);
}

TEST(Timeout, OfAMapIsThatOfEachElement) {
  const pool pool(quiet(2));
  std::vector<int> input(100);
  std::iota(input.begin(), input.end(), 0);
  const auto found = pool.with({.timeout = 1s, .chunk = 20}).collect_errors().map(hang_at_seven, input);
  for (std::size_t index = 0; index < found.size(); ++index) {
    ASSERT_EQ(found[index].has_value(), index != 7) << index;
    EXPECT_EQ(found[index].has_value() ? found[index].value() : 14, static_cast<int>(index) * 2);
  }
  EXPECT_EQ(found[7].error(), errc::timed_out);
  EXPECT_EQ(found[7].error().place().element, 7U);
}

TEST(Timeout, OfAStreamIsThatOfEachElement) {
  const pool pool(quiet(2));
  std::vector<int> input(50);
  std::iota(input.begin(), input.end(), 0);
  int next = 0;
  auto results = pool.with({.timeout = 1s}).imap(hang_at_seven, input);
  for (auto each = results.next_result(); each; each = results.next_result()) {
    EXPECT_EQ(each->has_value(), next != 7) << next;
    ++next;
  }
  EXPECT_EQ(next, 50);
}

TEST(Timeout, AStoppedWorkerIsKilledWhenItsTaskIsOverdue) {
  const pool pool(quiet(1));
  const auto found = pool.with({.timeout = 100ms}).apply_async([] { ::raise(SIGSTOP); }).get_result();
  EXPECT_EQ(found.error(), errc::timed_out);
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
}

TEST(Timeout, DroppedFuturesAreWatchedToo) {
  const pool pool(quiet(1));
  static_cast<void>(pool.with({.timeout = 50ms}).apply_async(run_for_ever));
  EXPECT_EQ(pool.apply(add, 1, 2), 3);
}

}  // namespace
}  // namespace muster::timeout_test
