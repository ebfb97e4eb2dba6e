// SPDX-License-Identifier: BSL-1.0
// Pools whose constructor does not wait.
#include <muster/pool/pool.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <muster/pool/async.hpp>

#include "waiting_tasks.hpp"

namespace muster::start_test {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

pool_options at_once(unsigned workers) {
  auto options = test::quiet(workers);
  options.wait_for_start = false;
  return options;
}

TEST(AsyncStart, FutureIsReadyOnceAllWorkersWereAccepted) {
  pool pool(at_once(3));
  pool.started().get();
  for (const auto& each : pool.workers()) EXPECT_NE(each.pid, 0);
  pool.started().get();
}

TEST(AsyncStart, TasksMayComeBeforeTheWorkers) {
  const pool pool(at_once(2));
  auto early = pool.apply_async(add, 1, 2);
  EXPECT_EQ(pool.apply(add, 2, 3), 5);
  EXPECT_EQ(early.get(), 3);
}

TEST(AsyncStart, IsReadyAtOnceWhenTheConstructorHasWaited) {
  pool pool(test::quiet(1));
  EXPECT_TRUE(pool.started().ready());
}

TEST(AsyncStart, IsAwaitedOnTheLoopThatThePoolIsOn) {
  asio::io_context loop;
  pool pool(loop, at_once(2));
  std::optional<int> found;
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> {
        co_await pool.started()(asio::use_awaitable);
        found = co_await pool.apply_async(add, 1, 2)(asio::use_awaitable);
      },
      [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  loop.run();
  EXPECT_EQ(found, 3);
}

TEST(AsyncStart, PoolThatEndsBeforeItHasStartedLeavesNobodyWaiting) {
  for (int round = 0; round < 10; ++round) {
    future<void> started;
    {
      pool short_lived(at_once(2));
      started = short_lived.started();
      short_lived.terminate();
    }
    const auto how = started.get_result();
    EXPECT_TRUE(how.has_value() || how.error() == errc::cancelled);
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool looks_need_descriptors = true;  // the sanitizer opens a pipe to see whether an exception is one
#else
constexpr bool looks_need_descriptors = false;
#endif

// No more descriptors than the board's.
class few_descriptors {
public:
  few_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::dup(STDIN_FILENO);
    ::close(lowest);
    auto few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest) + 1;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  few_descriptors(const few_descriptors&) = delete;
  few_descriptors& operator=(const few_descriptors&) = delete;
  ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
  rlimit before_{};
};

TEST(AsyncStart, FailsWithWhyThePoolBroke) {
  if (looks_need_descriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const pool makes_the_domain(test::quiet(1));
  std::optional<few_descriptors> scope(std::in_place);
  auto options = at_once(1);
  options.start_patience = std::chrono::milliseconds(20);
  pool broken(options);
  const auto how = broken.started().get_result();
  EXPECT_THROW(static_cast<void>(broken.apply_async(add, 1, 2)), error);
  scope.reset();
  ASSERT_FALSE(how.has_value());
  EXPECT_EQ(how.error(), errc::start_failed);
  EXPECT_THAT(how.error().message(), HasSubstr("cannot be started"));
}

TEST(AsyncStart, ConstructorThatWaitsThrowsTheSame) {
  if (looks_need_descriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const pool makes_the_domain(test::quiet(1));
  const few_descriptors scope;
  try {
    auto options = test::quiet(1);
    options.start_patience = std::chrono::milliseconds(20);
    const pool broken(options);
    FAIL();
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::start_failed);
  }
}

}  // namespace
}  // namespace muster::start_test
