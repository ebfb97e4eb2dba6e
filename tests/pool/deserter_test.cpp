// SPDX-License-Identifier: BSL-1.0
// Tasks that execute another program in their worker, or close its descriptors; and programs that are killed while a
// child of theirs, or a worker that has become another program, holds their descriptors.
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::deserter_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void discard(log_level, std::string_view) {}

// Longer than any test may take.
int become_another_program() { return ::execl("/bin/sleep", "sleep", "100000", nullptr); }

int close_all_and_stay() {
  ::closefrom(STDERR_FILENO + 1);
  for (;;) ::pause();
}

int become_another_program_in_a_thread() {
  std::thread([] { become_another_program(); }).join();
  return 1;
}

int become_another_program_beside_a_child() {
  if (::fork() == 0) {
    for (;;) ::pause();
  }
  return become_another_program();
}

int add(int a, int b) { return a + b; }

template <class F>
void expect_to_be_killed_as_deserter(F f) {
  pool pool({.workers = 1, .log = discard});
  const auto before = pool.workers()[0].pid;
  const auto how = pool.apply_async(f).get_result();
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error(), errc::worker_died);
  EXPECT_EQ(how.error().status(), exit_status::killed(SIGKILL));
  EXPECT_THAT(how.error().describe(), AllOf(HasSubstr("closed its control socket"), HasSubstr("posix_spawn")));
  EXPECT_EQ(pool.apply(add, 20, 22), 42);
  EXPECT_NE(pool.workers()[0].pid, before);
  EXPECT_EQ(::kill(before, 0), -1) << "it is still there";
}

TEST(Deserter, ATaskThatExecutesAnotherProgramEndsInWorkerDiedThatSaysSo) {
  expect_to_be_killed_as_deserter(become_another_program);
}

TEST(Deserter, ATaskThatExecutesAnotherProgramInAThreadEndsSo) {
  expect_to_be_killed_as_deserter(become_another_program_in_a_thread);
}

TEST(Deserter, ATaskThatExecutesAnotherProgramWhileAForkedChildLivesEndsSo) {
  expect_to_be_killed_as_deserter(become_another_program_beside_a_child);
}

TEST(Deserter, ATaskThatClosesAllDescriptorsEndsInWorkerDiedThatSaysSo) {
  expect_to_be_killed_as_deserter(close_all_and_stay);
}

TEST(Deserter, AProcessWhoseFunctionExecutesAnotherProgramIsKilledAndSaysSo) {
  const process alone({.log = discard}, become_another_program);
  alone.join();
  EXPECT_EQ(alone.exit_status(), exit_status::killed(SIGKILL));
  try {
    alone.watch();
    FAIL() << "no error";
  } catch (const worker_died& death) {
    EXPECT_THAT(death.what(), HasSubstr("closed its control socket"));
  }
}

TEST(Deserter, AnInitializerThatExecutesAnotherProgramFailsWithASentence) {
  try {
    pool never({.workers = 1, .initializer = [] { become_another_program(); }, .log = discard});
    never.apply(add, 1, 2);
    FAIL() << "it started";
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("closed its control socket"), HasSubstr("initialized")));
  }
}

void end_worker(bool exits) {
  if (exits) ::_exit(7);
  ::raise(SIGKILL);
}

// The kernel closes the socket before it says that the process has ended.
TEST(Deserter, ATaskThatExitsOrIsKilledIsNoneHoweverOften) {
  pool pool({.workers = 1, .quarantine_after = 0, .log = discard});
  for (int round = 0; round < 50; ++round) {
    const bool exits = round % 2 == 0;
    const auto how = pool.apply_async(end_worker, exits).get_result();
    ASSERT_FALSE(how);
    EXPECT_EQ(how.error().status(), exits ? exit_status::exited(7) : exit_status::killed(SIGKILL));
    EXPECT_THAT(how.error().describe(), Not(HasSubstr("control socket")));
  }
}

// Closes all from `first` on, and has files of its own in their places.
int close_from_and_open(int first, const std::string& file) {
  ::closefrom(first);
  for (int count = 0; count < 16; ++count) {
    if (::open(file.c_str(), O_RDWR | O_APPEND) < 0) return 0;
  }
  return 1;
}

class DeserterFiles : public testing::TestWithParam<int> {};

// The handler makes the supervisor wait for the bell.
TEST_P(DeserterFiles, GetNothingOfWhatTheWorkerWrites) {
  const test::temporary_directory directory;
  directory.write("file", "");
  const std::string file = directory.path() / "file";
  pool pool({.workers = 1, .quarantine_after = 0, .log = discard});
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> told = false;
    auto closing = pool.apply_async(close_from_and_open, GetParam(), file);
    closing.on_complete([&](int) { told = true; }, [&](const error_info&) { told = true; });
    ASSERT_TRUE(test::eventually([&] { return told.load(); }));
    const auto next = pool.apply_async(add, 20, 22).get_result();  // its worker may just be killed for that task
    if (next) EXPECT_EQ(*next, 42);
  }
  EXPECT_EQ(std::filesystem::file_size(file), 0U);
  EXPECT_TRUE(test::eventually([&] {
    const auto how = pool.apply_async(add, 20, 22).get_result();
    return how && *how == 42;
  }));
}

// All of them; and all but the control socket.
INSTANTIATE_TEST_SUITE_P(Closed, DeserterFiles, testing::Values(3, 4));

TEST(Deserter, AWorkerThatCannotRingItsBellAnyMoreIsReplaced) {
  pool pool({.workers = 1, .log = discard});
  const auto before = pool.workers()[0].pid;
  std::atomic<int> told = 0;
  auto closing = pool.apply_async([] { ::closefrom(4); });
  closing.on_complete([&] { ++told; }, [&](const error_info&) { ++told; });
  EXPECT_TRUE(test::eventually([&] { return told == 1; })) << "its death did not wake the supervisor";
  EXPECT_TRUE(test::eventually([&] {
    auto next = pool.apply_async(add, 20, 22);
    next.on_complete([](int) {}, [](const error_info&) {});
    return pool.workers()[0].pid != before && pool.workers()[0].pid != 0;
  }));
}

// ---- programs that are killed

struct family {
  std::atomic<pid_t> worker;
  std::atomic<pid_t> child;
};

bool is_reaped(pid_t pid) {
  return test::eventually([&] { return ::waitpid(pid, nullptr, WNOHANG) == pid; });
}

std::string name_of(pid_t pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return name;
}

// The program is stopped before its worker executes the other one, so that nothing but the kernel ends that.
TEST(Deserter, AProgramThatATaskHasExecutedDiesWithTheProgramOfThePool) {
  const test::temporary_directory directory;
  const std::string sign = directory.path() / "sign";
  const test::shared<family> shared;
  const auto host = test::spawn(1, [&](std::size_t) {
    init(0, nullptr);  // a forked child is another process
    const pool pool({.workers = 1});
    const auto worker = pool.apply([] { return ::getpid(); });
    const auto under_way = pool.apply_async(
        [](const std::string& awaited) {
          while (!std::filesystem::exists(awaited)) ::sched_yield();
          return become_another_program();
        },
        sign);
    shared->worker = worker;
    for (;;) ::pause();
    return 0;
  });
  ASSERT_TRUE(test::eventually([&] { return shared->worker != 0; }));
  host->freeze(0);
  directory.write("sign", "");
  ASSERT_TRUE(test::eventually([&] { return name_of(shared->worker) == "sleep"; }));
  host->kill(0);
  EXPECT_EQ(host->wait(0), exit_status::killed(SIGKILL));
  EXPECT_TRUE(is_reaped(shared->worker));
}

// As a container's runtime, or an allocator's helper, makes children: past pthread_atfork.
pid_t clone_past_the_library() {
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child != 0) return child;
  for (;;) ::pause();
}

TEST(Deserter, WorkersOfAKilledProgramDieThoughAChildMadeByRawCloneLivesOn) {
  const test::shared<family> shared;
  const auto host = test::spawn(1, [&](std::size_t) {
    init(0, nullptr);
    const pool pool({.workers = 1});
    const auto spinning = pool.apply_async([] {
      sigset_t all;
      ::sigfillset(&all);
      ::sigprocmask(SIG_BLOCK, &all, nullptr);
      const std::atomic<bool> for_ever = true;
      while (for_ever) continue;
    });
    shared->child = clone_past_the_library();
    shared->worker = pool.workers()[0].pid;
    for (;;) ::pause();
    return 0;
  });
  ASSERT_TRUE(test::eventually([&] { return shared->worker != 0; }));
  host->kill(0);
  EXPECT_EQ(host->wait(0), exit_status::killed(SIGKILL));
  EXPECT_TRUE(is_reaped(shared->worker));
  EXPECT_EQ(::kill(shared->child, SIGKILL), 0) << "the child was to live on";
  EXPECT_TRUE(is_reaped(shared->child));
}

}  // namespace
}  // namespace muster::deserter_test
