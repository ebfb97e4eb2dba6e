// SPDX-License-Identifier: BSL-1.0
// Whatever system call fails on the supervisor, and whenever it does: the pool goes on or ends with the error, and
// nobody waits for ever. docs/design/deaths.md
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::refused_call_test {
namespace {

using namespace std::chrono_literals;

int add(int a, int b) { return a + b; }
void hang() {
  for (;;) ::pause();
}

pool_options two_quiet_workers() {
  return {.workers = 2, .log = [](log_level, std::string_view) {}};
}

// Either way is right, but one it must be.
void expect_served_or_refused(pool& pool) {
  try {
    EXPECT_EQ(pool.apply(add, 20, 22), 42);
  } catch (const task_error& failure) {
    EXPECT_EQ(failure.code(), errc::pool_broken) << failure.what();
  }
}

// The call, and how many of it fail: all of them (-1), or so many.
class RefusedCall : public testing::TestWithParam<std::tuple<const char*, int>> {
protected:
  test::refused_calls refuse() const {
    return test::refused_calls(std::get<0>(GetParam()), EPERM, std::get<1>(GetParam()));
  }
};

TEST_P(RefusedCall, WhileAWorkerDiesEndsItsTask) {
  pool pool(two_quiet_workers());
  {
    const auto scope = refuse();
    const auto ended = pool.apply_async([] { ::raise(SIGKILL); }).get_result();
    ASSERT_FALSE(ended);
    EXPECT_THAT(ended.error().code(), testing::AnyOf(errc::worker_died, errc::pool_broken));
    expect_served_or_refused(pool);
  }
  expect_served_or_refused(pool);
}

TEST_P(RefusedCall, WhileATaskIsOverdueEndsIt) {
  pool pool(two_quiet_workers());
  const auto scope = refuse();
  const auto ended = pool.with({.timeout = 10ms}).apply_async(hang).get_result();
  ASSERT_FALSE(ended);
  EXPECT_THAT(ended.error().code(), testing::AnyOf(errc::timed_out, errc::worker_died, errc::pool_broken));
}

TEST_P(RefusedCall, WhileAPoolStartsIsItsErrorOrNone) {
  const auto scope = refuse();
  try {
    pool pool(two_quiet_workers());
    expect_served_or_refused(pool);
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("failed")) << "names the call";
  }
}

TEST_P(RefusedCall, WhileAPoolEndsLeavesNobodyWaiting) {
  std::optional<pool> pool(two_quiet_workers());
  auto pending = pool->apply_async(hang);
  EXPECT_EQ(pool->apply(add, 20, 22), 42);
  const auto scope = refuse();
  pool->terminate();
  EXPECT_FALSE(pending.get_result());
}

// Nobody could end it, and its pool has gone without it. What it has is given back when it ends after all.
TEST(LostWorker, IsBuriedWhenItEndsAlsoAfterItsPool) {
  const pool other({.workers = 1});
  const auto domain = domain::of_program();
  const auto before = domain->participants().count();
  pid_t worker = 0;
  {
    std::optional<pool> short_lived(pool_options{.workers = 1, .log = [](log_level, std::string_view) {}});
    worker = short_lived->apply([] { return ::getpid(); });
    ::kill(worker, SIGSTOP);  // it does not even hear that it is to leave
    const test::refused_calls scope("pidfd_send_signal");
    short_lived.reset();
  }
  EXPECT_EQ(domain->participants().count(), before + 1);
  ::kill(worker, SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return domain->participants().count() == before; }));
}

// What the kernel refuses then: to kill those that are root's still.
TEST(RootGivenUp, AfterThePoolWasMadeEndsItsTasksAndThePool) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be given up";
  const auto program = test::spawn(1, [](std::size_t) {
    init(0, nullptr);  // a forked child is another process
    {
      pool pool(two_quiet_workers());
      if (pool.apply(add, 20, 22) != 42) return 1;
      if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return 2;
      if (pool.apply(add, 20, 22) != 42) return 3;
      auto other = pool.apply_async(hang);
      const auto late = pool.with({.timeout = 10ms}).apply_async(hang).get_result();
      if (late || (late.error() != errc::timed_out && late.error() != errc::pool_broken)) return 4;
      if (other.get_result()) return 5;
      expect_served_or_refused(pool);
    }
    return testing::Test::HasFailure() ? 6 : 0;
  });
  EXPECT_EQ(program->wait(0), exit_status::exited(0));
}

// The kernel takes what such a process executes for a program with more rights than who started it.
TEST(RootGivenUp, InPartIsSaidByThePoolThatCannotStartWorkersAnyMore) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be given up";
  const auto program = test::spawn(1, [](std::size_t) {
    init(0, nullptr);  // a forked child is another process
    const pool pool({.workers = 1, .log = [](log_level, std::string_view) {}});
    if (::setegid(65534) != 0 || ::seteuid(65534) != 0) return 2;
    static_cast<void>(pool.apply_async([] { ::raise(SIGKILL); }).get_result());
    try {
      return pool.apply(add, 20, 22) == 42 ? 77 : 3;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::pool_broken);
      EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("real user 0, effective user 65534"),
                                                 testing::HasSubstr("setresuid")));
    }
    return testing::Test::HasFailure() ? 4 : 0;
  });
  const auto how = program->wait(0);
  if (how == exit_status::exited(77)) GTEST_SKIP() << "this system does not say so to programs (AT_SECURE)";
  EXPECT_EQ(how, exit_status::exited(0));
}

std::string name_of(const testing::TestParamInfo<RefusedCall::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + (std::get<1>(info.param) < 0 ? "_always" : "_once");
}

INSTANTIATE_TEST_SUITE_P(Supervisor, RefusedCall,
                         testing::Combine(testing::Values("pidfd_open", "pidfd_send_signal", "poll", "read", "recv",
                                                          "recvmsg", "sendmsg", "socketpair", "waitid"),
                                          testing::Values(-1, 1)),
                         name_of);

}  // namespace
}  // namespace muster::refused_call_test
