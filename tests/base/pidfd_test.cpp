// SPDX-License-Identifier: BSL-1.0
#include <muster/base/pidfd.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>

namespace muster {
namespace {

pid_t fork_child(int exit_code) {
  const auto pid = ::fork();
  if (pid == 0) ::_exit(exit_code);
  return pid;
}

pid_t fork_sleeper() {
  const auto pid = ::fork();
  while (pid == 0) ::pause();
  return pid;
}

TEST(Pidfd, ReapTellsTheExitCode) {
  const auto process = open_pidfd(fork_child(5));
  EXPECT_EQ(reap(process.get()), exit_status::exited(5));
}

TEST(Pidfd, ReapTellsTheSignal) {
  const auto process = open_pidfd(fork_sleeper());
  EXPECT_TRUE(send_signal(process.get(), SIGKILL));
  EXPECT_EQ(reap(process.get()), exit_status::killed(SIGKILL));
}

TEST(Pidfd, ReapIsLostWhenSomebodyElseReaped) {
  const auto pid = fork_child(0);
  const auto process = open_pidfd(pid);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(reap(process.get()), exit_status::lost());
}

TEST(Pidfd, SignalAfterReapingReportsThatThereIsNobody) {
  const auto process = open_pidfd(fork_child(0));
  static_cast<void>(reap(process.get()));
  EXPECT_FALSE(send_signal(process.get(), SIGKILL));
}

TEST(Pidfd, OpeningNobodyThrows) {
  const auto pid = fork_child(0);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_THROW(static_cast<void>(open_pidfd(pid)), error);
}

}  // namespace
}  // namespace muster
