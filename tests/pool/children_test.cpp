// SPDX-License-Identifier: BSL-1.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::children_test {
namespace {

void discard(log_level, std::string_view) {}

// Its number, of a process that would stay for ever.
pid_t start_child() {
  const auto child = ::fork();
  if (child != 0) return child;
  for (;;) ::pause();
}

// A process that nobody has reaped yet may still be there: its state says that it is dead.
bool is_gone(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(status, line)) return true;
  const auto state = line[line.rfind(')') + 2];
  return state == 'Z' || state == 'X';
}

TEST(Children, OfAWorkerThatIsKilledDieWithIt) {
  pool pool({.workers = 1, .log = discard});
  const auto child = pool.apply(start_child);
  ASSERT_FALSE(is_gone(child));
  EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);
  EXPECT_TRUE(test::eventually([&] { return is_gone(child); }));
}

TEST(Children, OfAWorkerThatLeavesDieWithIt) {
  pid_t child = 0;
  {
    pool pool({.workers = 1});
    child = pool.apply(start_child);
    pool.close();
    pool.join();
    EXPECT_EQ(pool.stats().workers.killed, 0U);
  }
  EXPECT_TRUE(test::eventually([&] { return is_gone(child); }));
}

TEST(Children, OfAWorkerThatIsKilledForItsTimeDieWithIt) {
  pool pool({.workers = 1, .log = discard});
  const auto child = pool.apply(start_child);
  const auto never_ends = [] {
    for (;;) ::pause();
  };
  EXPECT_THROW(pool.with({.timeout = std::chrono::milliseconds(100)}).apply(never_ends), error);
  EXPECT_TRUE(test::eventually([&] { return is_gone(child); }));
}

TEST(Children, OfWorkersWithoutGroupsOfTheirOwnStay) {
  pid_t child = 0;
  {
    pool pool({.workers = 1, .worker_groups = false, .log = discard});
    EXPECT_EQ(pool.apply([] { return ::getpgrp(); }), ::getpgrp());
    child = pool.apply(start_child);
    EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);
    pool.apply([] {});
  }
  EXPECT_FALSE(is_gone(child));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return is_gone(child); }));
}

TEST(Children, OfAnotherWorkerStay) {
  pool pool({.workers = 2, .log = discard});
  const auto child = pool.on(0).apply(start_child);
  EXPECT_THROW(pool.on(1).apply([] { ::raise(SIGKILL); }), worker_died);
  pool.on(1).apply([] {});
  EXPECT_FALSE(is_gone(child));
  pool.terminate();
  EXPECT_TRUE(test::eventually([&] { return is_gone(child); }));
}

TEST(Children, DieWithTheProgram) {
  const test::shared<std::atomic<pid_t>> child;
  const auto program = test::spawn(1, [&](std::size_t) {
    init(0, nullptr);  // a forked child is another process
    pool pool({.workers = 1});
    *child = pool.apply(start_child);
    for (;;) ::pause();
    return 0;
  });
  ASSERT_TRUE(test::eventually([&] { return *child != 0; }));
  program->kill(0);
  static_cast<void>(program->wait(0));
  EXPECT_TRUE(test::eventually([&] { return is_gone(*child); }));
}

TEST(Children, WorkersLeadGroupsOfTheirOwn) {
  pool pool({.workers = 1});
  EXPECT_TRUE(pool.apply([] { return ::getpgrp() == ::getpid(); }));
}

}  // namespace
}  // namespace muster::children_test
