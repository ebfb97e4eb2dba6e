// SPDX-License-Identifier: BSL-1.0
// Workers that cannot be started: for want of something, which may pass, or for good.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::start_lack_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

/// What is logged, counted by level.
struct counts {
  std::atomic<int> warnings = 0;
  std::atomic<int> notes = 0;
};

pool_options counted(unsigned workers, const std::shared_ptr<counts>& log) {
  return {.workers = workers, .log = [log](log_level level, std::string_view) {
            ++(level == log_level::info ? log->notes : log->warnings);
          }};
}

bool all_work(const pool& of) {
  return test::eventually([&] {
    const auto workers = of.workers();
    return std::all_of(workers.begin(), workers.end(),
                       [](const auto& each) { return each.state == worker_lifecycle::state::working; });
  });
}

error_info what_is_thrown_by_a_pool(const pool_options& options) {
  try {
    const pool broken(options);
    ADD_FAILURE() << "nothing was thrown";
    return {};
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::start_failed);
    return error_info(errc::start_failed, failure.what());
  }
}

TEST(StartLack, IsTriedAgainWhileTheOthersServe) {
  const auto log = std::make_shared<counts>();
  pool pool(counted(2, log));
  const test::refused_calls scope("posix_spawn", EAGAIN, 4);
  EXPECT_EQ(pool.apply_async([] { ::raise(SIGKILL); }).get_result().error(), errc::worker_died);
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
  EXPECT_TRUE(test::eventually([] { return test::refused_calls::left() == -1; })) << "refused four times, made once";
  EXPECT_TRUE(all_work(pool));
  EXPECT_TRUE(test::eventually([&] { return log->notes == 1; }));
  EXPECT_EQ(log->warnings, 1);
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
}

// Everything that a process takes, and each of the four reasons for which it may be lacking.
class StartLackOf : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(StartLackOf, AnyCallPassesAndBreaksNothing) {
  const auto [name, cause] = GetParam();
  const auto log = std::make_shared<counts>();
  auto options = counted(2, log);
  options.output = output_choice::discard();  // so that there are pipes
  pool pool(options);
  const test::refused_calls scope(name, cause, 4);
  EXPECT_EQ(pool.apply_async([] { ::raise(SIGKILL); }).get_result().error(), errc::worker_died);
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
  EXPECT_TRUE(test::eventually([] { return test::refused_calls::left() == -1; })) << "refused four times, made once";
  EXPECT_TRUE(all_work(pool));
  EXPECT_TRUE(test::eventually([&] { return log->notes == 1; }));
  EXPECT_EQ(log->warnings, 1);
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
}

INSTANTIATE_TEST_SUITE_P(Start, StartLackOf,
                         testing::Combine(testing::Values("socketpair", "pipe2", "posix_spawn", "pidfd_open"),
                                          testing::Values(EAGAIN, ENOMEM, EMFILE, ENFILE)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param)) + '_' +
                                  ::strerrorname_np(std::get<1>(given.param));
                         });

/// While it lives, no worker, or none of the first, is welcomed for want of what a message with descriptors takes. For
/// one worker: each start sends a greeting, and then the welcome.
class refused_welcomes {
public:
  explicit refused_welcomes(int cause, int count = INT_MAX / 2) {
    cause_ = cause;
    last_ = 2 * count;
    sent_ = 0;
    detail::refused_calls = &refuse;
  }
  refused_welcomes(const refused_welcomes&) = delete;
  refused_welcomes& operator=(const refused_welcomes&) = delete;
  ~refused_welcomes() { detail::refused_calls = nullptr; }

private:
  static int refuse(std::string_view name) {
    if (name != "sendmsg") return 0;
    const int number = ++sent_;
    return number % 2 == 0 && number <= last_ ? cause_.load() : 0;
  }

  static inline std::atomic<int> cause_;
  static inline std::atomic<int> last_;
  static inline std::atomic<int> sent_;
};

TEST(StartLack, OfAWelcomeIsNoFailedStart) {
  for (const int cause : {ETOOMANYREFS, ENOBUFS, ENOMEM}) {
    const auto log = std::make_shared<counts>();
    const refused_welcomes scope(cause, 3);
    pool pool(counted(1, log));
    EXPECT_EQ(pool.apply(add, 20, 22), 42);
    EXPECT_TRUE(test::eventually([&] { return log->notes == 1; })) << "workers can be started again";
    EXPECT_EQ(log->warnings, 1);
    EXPECT_EQ(pool.workers().front().incarnation, 4U);
  }
}

TEST(StartLack, OfAllWelcomesEndsWithThePatience) {
  auto options = counted(1, std::make_shared<counts>());
  options.start_patience = 20ms;
  const refused_welcomes scope(ETOOMANYREFS);
  EXPECT_THAT(what_is_thrown_by_a_pool(options).message(), AllOf(HasSubstr("sendmsg"), HasSubstr("handshake")));
}

TEST(StartLack, OfAWelcomeCountsForThoseWhoHaveNoPatience) {
  auto options = counted(1, std::make_shared<counts>());
  options.start_patience = 0ns;
  const refused_welcomes scope(ENOBUFS);
  EXPECT_THAT(what_is_thrown_by_a_pool(options).message(), HasSubstr("sendmsg"));
}

TEST(StartLack, IsOvercomeWhileTheLogBlocks) {
  std::atomic<bool> blocks = true;
  std::atomic<int> logged = 0;
  pool pool({.workers = 2, .log = [&](log_level, std::string_view) {
               blocks.wait(true);
               ++logged;
             }});
  const test::refused_calls scope("posix_spawn", EAGAIN, 2);
  EXPECT_EQ(pool.apply_async([] { ::raise(SIGKILL); }).get_result().error(), errc::worker_died);
  EXPECT_TRUE(test::eventually([] { return test::refused_calls::left() == -1; }));
  EXPECT_TRUE(all_work(pool));
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
  EXPECT_EQ(logged, 0);
  blocks = false;
  blocks.notify_all();
}

TEST(StartLack, WithoutAnyWorkerForLongerThanItsPatienceThePoolIsBroken) {
  auto options = counted(1, std::make_shared<counts>());
  options.start_patience = 20ms;
  pool pool(options);
  const test::refused_calls scope("posix_spawn", EMFILE);
  EXPECT_EQ(pool.apply_async([] { ::raise(SIGKILL); }).get_result().error(), errc::worker_died);
  const auto waits = pool.apply_async(add, 1, 2).get_result();
  ASSERT_FALSE(waits);
  EXPECT_EQ(waits.error(), errc::pool_broken);
  EXPECT_THAT(waits.error().describe(), AllOf(HasSubstr("posix_spawn"), HasSubstr("Too many open files")));
}

TEST(StartLack, ConstructorThatWaitsGivesUpThoughOthersRun) {
  auto options = counted(3, std::make_shared<counts>());
  options.start_patience = 20ms;
  const test::refused_calls scope("posix_spawn", EAGAIN, -1, 2);
  EXPECT_THAT(what_is_thrown_by_a_pool(options).message(), HasSubstr("posix_spawn"));
}

TEST(StartLack, PoolThatWaitsForTheMeansEndsAtOnce) {
  auto options = counted(2, std::make_shared<counts>());
  options.start_patience = 24h;
  options.wait_for_start = false;
  const test::refused_calls scope("posix_spawn", ENOMEM);
  std::optional<pool> waits(options);
  auto pending = waits->apply_async(add, 1, 2);
  waits.reset();
  EXPECT_EQ(pending.get_result().error(), errc::cancelled);
}

TEST(StartLack, ResizeFailsAfterThePatienceAndTheRestComesLater) {
  auto options = counted(1, std::make_shared<counts>());
  options.start_patience = 20ms;
  pool pool(options);
  {
    const test::refused_calls scope("posix_spawn", EAGAIN);
    EXPECT_THAT(pool.resize_async(3).get_result().error().message(), HasSubstr("posix_spawn"));
    EXPECT_EQ(pool.apply(add, 20, 22), 42);
  }
  EXPECT_TRUE(all_work(pool));
  EXPECT_EQ(pool.workers().size(), 3U);
}

TEST(StartLack, WorkersThatAreNotWantedAnyMoreAreNotStarted) {
  auto options = counted(1, std::make_shared<counts>());
  options.start_patience = 24h;
  pool pool(options);
  {
    const test::refused_calls scope("posix_spawn", EAGAIN);
    auto more = pool.resize_async(2);
    pool.resize(1);
    EXPECT_TRUE(more.get_result()) << "a later size is the size";
  }
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
  EXPECT_EQ(pool.workers().size(), 1U);
}

TEST(StartFailure, OfALaterWorkerIsTheConstructorsError) {
  for (const unsigned tries : {1U, 3U}) {
    auto options = counted(4, std::make_shared<counts>());
    options.start_tries = tries;
    const test::refused_calls scope("pidfd_open", EPERM, -1, 1);
    EXPECT_THAT(what_is_thrown_by_a_pool(options).message(), HasSubstr("pidfd_open"));
  }
}

TEST(StartFailure, ThousandsOfTriesDoNotNest) {
  const auto log = std::make_shared<counts>();
  auto options = counted(1, log);
  options.start_tries = 20'000;
  const test::refused_calls scope("socketpair");
  EXPECT_THAT(what_is_thrown_by_a_pool(options).message(), HasSubstr("socketpair"));
  EXPECT_EQ(log->warnings, 2) << "of the first, and of the end";
}

TEST(StartFailure, NegativeTimesAreRefused) {
  using member = std::chrono::nanoseconds pool_options::*;
  for (const member each : {&pool_options::start_timeout, &pool_options::start_patience, &pool_options::overflow_wait,
                            &pool_options::destructor_grace, &pool_options::max_worker_age}) {
    pool_options options{.workers = 1};
    options.*each = -1ns;
    EXPECT_THROW(pool refused(options), error);
  }
}

}  // namespace
}  // namespace muster::start_lack_test
