// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/domain.hpp>
#include <muster/pool/process.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"

namespace muster::process_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

void do_nothing() {}

void wait_for(const event& begin) { begin.wait(); }

void ignore_termination(const event& ready) {
  std::signal(SIGTERM, SIG_IGN);
  ready.set();
  for (;;) ::pause();
}

std::string text_of(const process& of) {
  try {
    of.watch();
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
  return {};
}

exit_status death_of(const process& of) {
  try {
    of.watch();
  } catch (const worker_died& death) {
    return death.status();
  }
  return {};
}

TEST(Process, RunsItsFunctionInAProcessOfItsOwn) {
  const event there;
  const event done;
  const process other(
      [](int number, const std::string& text, const event& right, const event& end) {
        if (number == 42 && text == "text") right.set();
        end.wait();
      },
      42, "text", there, done);
  EXPECT_TRUE(there.wait_for(100s));
  EXPECT_TRUE(other.is_alive());
  EXPECT_NE(other.pid(), ::getpid());
  EXPECT_EQ(other.exit_status(), std::nullopt);
  EXPECT_NO_THROW(other.watch());
  EXPECT_FALSE(other.join_for(1ms));
  done.set();
  other.join();
  EXPECT_FALSE(other.is_alive());
  EXPECT_EQ(other.exit_status(), exit_status::exited(0));
  EXPECT_NO_THROW(other.watch());
  EXPECT_TRUE(other.join_for(0s));
}

TEST(Process, TakesEveryCallableThatPoolsTake) {
  process function(do_nothing);
  process bound(muster::bind_front([](const std::vector<int>& numbers, int more) { return more + numbers[0]; },
                                   std::vector<int>(1000)),
                1);
  function.join();
  bound.join();
  EXPECT_EQ(function.exit_status(), exit_status::exited(0));
  EXPECT_EQ(bound.exit_status(), exit_status::exited(0));
}

TEST(Process, WatchThrowsWhatTheFunctionThrewEachTime) {
  const process other([] { throw std::out_of_range("the index"); });
  other.join();
  EXPECT_THROW(other.watch(), std::out_of_range);
  EXPECT_THROW(other.watch(), std::out_of_range);
  EXPECT_THAT(text_of(other), HasSubstr("the index"));
  EXPECT_EQ(other.exit_status(), exit_status::exited(1));
}

TEST(Process, ATextOfAMebibyteArrivesWhole) {
  const process other([] { throw std::runtime_error(std::string(1U << 20U, 'x') + "end"); });
  EXPECT_TRUE(test::eventually([&] { return !text_of(other).empty(); }));  // also before it was joined
  other.join();
  EXPECT_THAT(text_of(other), HasSubstr(std::string(1U << 20U, 'x') + "end"));
}

TEST(Process, AThrownDeathOfAWorkerIsNotTakenForItsOwn) {
  const process other([] {
    pool inner({.workers = 1});
    inner.apply([] { std::_Exit(7); });
  });
  other.join();
  EXPECT_EQ(other.exit_status(), exit_status::exited(1));
  EXPECT_THAT(text_of(other), HasSubstr("exited with code 7"));
}

TEST(Process, AnExitCodeIsTold) {
  const process other([] { std::exit(3); });
  other.join();
  EXPECT_EQ(other.exit_status(), exit_status::exited(3));
  EXPECT_EQ(death_of(other), exit_status::exited(3));
  EXPECT_EQ(death_of(other), exit_status::exited(3));
  EXPECT_THAT(text_of(other), HasSubstr(std::to_string(other.pid())));
  EXPECT_THAT(text_of(other), HasSubstr("exited with code 3"));
}

TEST(Process, AnExitWithCodeZeroIsAGoodEnd) {
  const process other([] { std::exit(0); });
  other.join();
  EXPECT_EQ(other.exit_status(), exit_status::exited(0));
  EXPECT_NO_THROW(other.watch());
}

TEST(Process, AKillIsTold) {
  const event never;
  const process other(wait_for, never);
  EXPECT_TRUE(other.kill(SIGKILL));
  other.join();
  EXPECT_EQ(other.exit_status(), exit_status::killed(SIGKILL));
  EXPECT_EQ(death_of(other), exit_status::killed(SIGKILL));
  EXPECT_FALSE(other.kill(SIGKILL));
}

TEST(Process, ACrashIsTold) {
  const process other([] {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  });
  other.join();
  EXPECT_EQ(death_of(other), exit_status::killed(SIGSEGV));
}

TEST(Process, ACrashAfterTheFunctionHasReturnedIsToldToo) {
  const process other([] { std::atexit([] { std::raise(SIGKILL); }); });
  other.join();
  EXPECT_EQ(death_of(other), exit_status::killed(SIGKILL));
}

TEST(Process, HandlesSignals) {
  const event ready;
  const process other(
      [](const event& handled) {
        std::signal(SIGUSR1, [](int) { std::_Exit(5); });
        handled.set();
        for (;;) ::pause();
      },
      ready);
  ready.wait();
  EXPECT_TRUE(other.kill(SIGUSR1));
  other.join();
  EXPECT_EQ(other.exit_status(), exit_status::exited(5));
}

TEST(Process, OneThatHeedsTerminationIsNotKilled) {
  const event never;
  const process other({.grace = 100s}, wait_for, never);
  other.terminate();
  EXPECT_EQ(other.exit_status(), exit_status::killed(SIGTERM));
  other.terminate();
}

TEST(Process, OneThatIgnoresTerminationIsKilled) {
  const event ready;
  const process other({.grace = 1ms}, ignore_termination, ready);
  ready.wait();
  other.terminate();
  EXPECT_EQ(other.exit_status(), exit_status::killed(SIGKILL));
}

TEST(Process, TheDestructorEndsIt) {
  const event ready;
  pid_t pid = 0;
  {
    const process other(ignore_termination, ready);
    pid = other.pid();
    ready.wait();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Process, CanBeMoved) {
  const event begin;
  std::vector<process> all;
  for (int each = 0; each < 3; ++each) all.emplace_back(wait_for, begin);
  process last = std::move(all.back());
  all.pop_back();
  all[0] = std::move(all[1]);
  EXPECT_THROW(all[1].watch(), error);  // NOLINT(bugprone-use-after-move): on purpose
  begin.set();
  last.join();
  all[0].join();
  EXPECT_EQ(last.exit_status(), exit_status::exited(0));
}

TEST(Process, AHundredOneAfterTheOtherLeaveNothing) {
  const auto domain = domain::of_program();
  const auto participants = domain->participants().count();
  for (int each = 0; each < 100; ++each) {
    const process other(
        [](int number) {
          if (number % 3 == 0) throw std::runtime_error("every third");
        },
        each);
    other.join();
    EXPECT_EQ(other.exit_status(), exit_status::exited(each % 3 == 0 ? 1 : 0));
  }
  EXPECT_EQ(domain->participants().count(), participants);
  EXPECT_EQ(domain->blocks().read_statistics().live_blocks, 0U);
  EXPECT_EQ(domain->blocks().read_statistics().holds, 0U);
}

TEST(Process, OfAForkedChildIsLeftAlone) {
  const event begin;
  auto other = std::make_unique<process>(wait_for, begin);
  auto child = test::spawn(1, [&](std::size_t) { return other.reset(), 0; });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  EXPECT_TRUE(other->is_alive());
}

TEST(Process, WhatCannotBeEncodedIsThrownBeforeAnythingIsStarted) {
  const event elsewhere(std::make_shared<domain>(domain_options{.arena_bytes = 1 << 22}));
  EXPECT_THROW(process(wait_for, elsewhere), error);
}

}  // namespace
}  // namespace muster::process_test
