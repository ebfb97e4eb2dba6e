// SPDX-License-Identifier: BSL-1.0
// A program that is the first process of a container, or a subreaper, gets what its workers have started as children
// when they die.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::adopted_children_test {
namespace {

constexpr int not_permitted = 77;

void discard(log_level, std::string_view) {}

// They stay when the task has ended.
void start_children() {
  for (int count = 0; count < 3; ++count) {
    if (::fork() != 0) continue;
    for (;;) ::pause();
  }
}

// Whether this process has no child but `own`, which has ended and which nobody has taken.
bool has_only(pid_t own) {
  siginfo_t own_end{};
  if (::waitid(P_PID, static_cast<id_t>(own), &own_end, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
  if (own_end.si_pid != own || own_end.si_status != 5) return false;
  int status = 0;
  if (::waitpid(own, &status, 0) != own) return false;
  return test::eventually(
      [] { return ::waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD; });
}

// The worker is killed, or leaves after its task. 0 if all is well.
int recycle_workers(bool are_killed) {
  init(0, nullptr);  // a forked child is another process
  const auto own = ::fork();
  if (own == 0) ::_exit(5);
  {
    pool pool({.workers = 1, .max_tasks_per_worker = are_killed ? 0U : 1U, .quarantine_after = 0, .log = discard});
    for (int round = 0; round < 20; ++round) {
      pool.apply(start_children);
      if (are_killed && pool.apply_async([] { ::raise(SIGKILL); }).get_result()) return 1;
    }
  }
  return has_only(own) ? 0 : 2;
}

int recycle_as_subreaper(bool are_killed) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  return recycle_workers(are_killed);
}

TEST(AdoptedChildren, OfWorkersThatLeaveAreReaped) {
  const auto program = test::spawn(1, [](std::size_t) { return recycle_as_subreaper(false); });
  EXPECT_EQ(program->wait(0), exit_status::exited(0));
}

TEST(AdoptedChildren, OfWorkersThatAreKilledAreReaped) {
  const auto program = test::spawn(1, [](std::size_t) { return recycle_as_subreaper(true); });
  EXPECT_EQ(program->wait(0), exit_status::exited(0));
}

TEST(AdoptedChildren, OfWorkersThatAreKilledAreReapedAlsoBeforeLinux6_9) {
  const auto program = test::spawn(1, [](std::size_t) {
    const test::refused_calls before_6_9("pidfd_send_signal PROCESS_GROUP", EINVAL);
    return recycle_as_subreaper(true);
  });
  EXPECT_EQ(program->wait(0), exit_status::exited(0));
}

// In a namespace of its own, whose numbers are not those of /proc.
int recycle_as_first_process() {
  if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return not_permitted;
  const auto first = ::fork();
  if (first == 0) std::_Exit(::getpid() == 1 ? recycle_workers(true) : 3);
  if (first < 0) return not_permitted;
  int status = 0;
  return ::waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

TEST(AdoptedChildren, OfTheFirstProcessOfAContainerAreReaped) {
  const auto container = test::spawn(1, [](std::size_t) { return recycle_as_first_process(); });
  const auto how = container->wait(0);
  if (how == exit_status::exited(not_permitted)) GTEST_SKIP() << "PID namespaces cannot be made here";
  EXPECT_EQ(how, exit_status::exited(0));
}

}  // namespace
}  // namespace muster::adopted_children_test
