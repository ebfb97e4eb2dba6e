// SPDX-License-Identifier: BSL-1.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

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

// Of a program in which others reap workers: 0 if all is well.
int lose_a_worker_with_a_child() {
  init(0, nullptr);  // a forked child is another process
  pool pool({.workers = 1, .log = discard});
  const auto child = pool.apply(start_child);
  if (is_gone(child)) return 1;
  if (pool.apply_async([] { ::raise(SIGKILL); }).get_result()) return 2;
  pool.apply([] {});
  return test::eventually([&] { return is_gone(child); }) ? 0 : 3;
}

TEST(Children, OfAWorkerThatTheKernelReapsDieWithIt) {
  const auto program = test::spawn(1, [](std::size_t) {
    std::signal(SIGCHLD, SIG_IGN);
    return lose_a_worker_with_a_child();
  });
  EXPECT_EQ(program->wait(0), exit_status::exited(0));
}

TEST(Children, OfAWorkerThatAnOlderKernelReapsDieWithIt) {
  const auto program = test::spawn(1, [](std::size_t) {
    const test::refused_calls before_6_9("pidfd_send_signal PROCESS_GROUP", EINVAL);
    std::signal(SIGCHLD, SIG_IGN);
    return lose_a_worker_with_a_child();
  });
  EXPECT_EQ(program->wait(0), exit_status::exited(0));
}

// Or the supervisor: it is the same to them.
TEST(Children, OfAWorkerThatALibraryReapsDieWithIt) {
  const auto program = test::spawn(1, [](std::size_t) {
    const std::jthread library([](const std::stop_token& stop) {
      while (!stop.stop_requested()) ::waitpid(-1, nullptr, WNOHANG);
    });
    return lose_a_worker_with_a_child();
  });
  EXPECT_EQ(program->wait(0), exit_status::exited(0));
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

int add(int a, int b) { return a + b; }

int status_of(pid_t child) {
  int status = -1;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

template <class F>
bool is_refused(F call) {
  try {
    call();
    return false;
  } catch (const error& failure) {
    return failure.code() == errc::forked;
  }
}

int use_the_pool_in_a_child() {
  auto under_way = this_pool::apply_async(add, 20, 22);
  const auto child = ::fork();
  if (child == 0) {
    const bool refused = is_refused([] { this_pool::apply(add, 1, 2); }) &&
                         is_refused([&] { static_cast<void>(under_way.ready()); }) &&
                         is_refused([&] { under_way.cancel(); }) && is_refused([&] { under_way.get(); });
    {
      const auto dropped = std::move(under_way);
    }
    ::_exit(refused ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  const auto how = status_of(child);
  return WIFEXITED(how) && WEXITSTATUS(how) == EXIT_SUCCESS ? under_way.get() : how;
}

TEST(Children, ThatATaskForksAreToldThatTheyHaveNoPoolAndDropNothingOfIt) {
  const pool pool({.workers = 1});
  EXPECT_EQ(pool.apply(use_the_pool_in_a_child), 42);
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
}

// In the child everything after the fork happens once more.
std::string return_in_a_child(bool throws) {
  const auto child = ::fork();
  if (child == 0 && throws) throw std::runtime_error("of the child");
  if (child == 0) return "of the child";
  const auto how = status_of(child);
  return WIFEXITED(how) && WEXITSTATUS(how) == EXIT_FAILURE ? "of the task" : "another end";
}

int return_element_in_a_child(int x) {
  const auto child = ::fork();
  if (child == 0) return -1;
  return status_of(child) == EXIT_SUCCESS ? -2 : x;
}

TEST(Children, ThatATaskForksEndWhenTheyReturnAndTheTaskGoesOn) {
  const pool pool({.workers = 1, .output = output_choice::discard()});
  const auto worker = pool.workers()[0].pid;
  EXPECT_EQ(pool.apply(return_in_a_child, false), "of the task");
  EXPECT_EQ(pool.apply(return_in_a_child, true), "of the task");
  const std::vector<int> xs{1, 2, 3};
  EXPECT_EQ(pool.with({.chunk = 3}).map(return_element_in_a_child, xs), xs);
  EXPECT_EQ(pool.workers()[0].pid, worker);
}

TEST(Children, WorkersLeadGroupsOfTheirOwn) {
  pool pool({.workers = 1});
  EXPECT_TRUE(pool.apply([] { return ::getpgrp() == ::getpid(); }));
}

}  // namespace
}  // namespace muster::children_test
