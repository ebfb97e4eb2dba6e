// SPDX-License-Identifier: BSL-1.0
#include <muster/base/pidfd.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "foreign_locale.hpp"
#include "processes.hpp"
#include "refused_calls.hpp"
#include "tracer.hpp"

namespace muster::pidfd_test {
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

// Since Linux 6.15 the kernel keeps it.
void expect_kept_or_lost(const exit_status& found, const exit_status& kept) {
  EXPECT_TRUE(found == kept || found == exit_status::lost()) << to_string(found);
}

TEST(Pidfd, TheStatusOfOneThatAnotherPartOfTheProgramReapedIsWhatTheKernelKeeps) {
  for (const int code : {0, 5}) {
    const auto pid = fork_child(code);
    const auto process = open_pidfd(pid);
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    expect_kept_or_lost(reap(process.get()), exit_status::exited(code));
    const test::refused_calls older("ioctl PIDFD_GET_INFO", ENOTTY);
    EXPECT_EQ(reap(process.get()), exit_status::lost());
    EXPECT_EQ(try_reap(process.get()), exit_status::lost());
  }
}

TEST(Pidfd, SignalAfterReapingReportsThatThereIsNobody) {
  const auto process = open_pidfd(fork_child(0));
  static_cast<void>(reap(process.get()));
  EXPECT_FALSE(send_signal(process.get(), SIGKILL));
}

// The leader of a process group, and its child there, who stays when the leader is reaped.
struct family {
  pid_t leader = 0;
  unique_fd process{};
  pid_t child = 0;
};

family fork_family() {
  const test::shared<std::atomic<pid_t>> child;
  family made{.leader = ::fork()};
  if (made.leader == 0) {
    ::setpgid(0, 0);
    *child = fork_sleeper();
    for (;;) ::pause();
  }
  made.process = open_pidfd(made.leader);
  EXPECT_TRUE(test::eventually([&] { return *child != 0; }));
  made.child = *child;
  return made;
}

void expect_that_a_group_ends_after_its_leader() {
  const auto found = fork_family();
  send_signal(found.process.get(), SIGKILL);
  static_cast<void>(reap(found.process.get()));
  EXPECT_TRUE(send_signal_to_group(found.process.get(), found.leader, SIGKILL));
  EXPECT_TRUE(test::eventually([&] { return ::kill(found.child, 0) != 0 || test::is_zombie(found.child); }));
}

TEST(Pidfd, ASignalToAGroupReachesWhoIsLeftWhenItsLeaderIsReaped) { expect_that_a_group_ends_after_its_leader(); }

TEST(Pidfd, ASignalToAGroupReachesWhoIsLeftAlsoBeforeLinux6_9) {
  const test::refused_calls scope("pidfd_send_signal PROCESS_GROUP", EINVAL);
  expect_that_a_group_ends_after_its_leader();
}

TEST(Pidfd, ASignalToAGroupThatIsNotThereReachesNobody) {
  const auto pid = fork_child(0);
  const auto process = open_pidfd(pid);
  static_cast<void>(reap(process.get()));
  EXPECT_FALSE(send_signal_to_group(process.get(), pid, SIGKILL));
  const test::refused_calls scope("pidfd_send_signal PROCESS_GROUP", EINVAL);
  EXPECT_FALSE(send_signal_to_group(process.get(), pid, SIGKILL));
}

// The test program is a subreaper.
void expect_that_a_group_is_reaped_and_nobody_else() {
  const auto other = fork_child(5);
  const auto found = fork_family();
  send_signal(found.process.get(), SIGKILL);
  static_cast<void>(reap(found.process.get()));
  EXPECT_TRUE(reap_group(found.process.get(), found.leader)) << "the child lives";
  send_signal_to_group(found.process.get(), found.leader, SIGKILL);
  wait_for_group(found.process.get(), found.leader);
  EXPECT_EQ(::kill(found.child, 0), -1);
  EXPECT_FALSE(reap_group(found.process.get(), found.leader));
  EXPECT_EQ(reap(open_pidfd(other).get()), exit_status::exited(5)) << "it was in another group";
}

TEST(Pidfd, AGroupIsReapedAndNobodyElse) { expect_that_a_group_is_reaped_and_nobody_else(); }

TEST(Pidfd, AGroupIsReapedAlsoBeforeLinux6_9) {
  const test::refused_calls scope("pidfd_send_signal PROCESS_GROUP", EINVAL);
  expect_that_a_group_is_reaped_and_nobody_else();
}

TEST(Pidfd, AProcessThatExitsHasNoMemoryAndOneThatRunsHas) {
  EXPECT_EQ(has_memory(open_pidfd(::getpid()).get()), true);
  const auto process = open_pidfd(fork_child(0));
  EXPECT_TRUE(test::eventually([&] { return has_ended(process.get()); }));
  EXPECT_EQ(has_memory(process.get()), false);
  static_cast<void>(reap(process.get()));
  EXPECT_EQ(has_memory(process.get()), std::nullopt);
}

TEST(Pidfd, OpeningNobodyThrows) {
  const auto pid = fork_child(0);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_THROW(static_cast<void>(open_pidfd(pid)), error);
}

TEST(Pidfd, TryReapHasNothingWhileTheChildRuns) {
  const auto process = open_pidfd(fork_sleeper());
  EXPECT_FALSE(has_ended(process.get()));
  EXPECT_EQ(try_reap(process.get()), std::nullopt);
  send_signal(process.get(), SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return has_ended(process.get()); }));
  EXPECT_EQ(try_reap(process.get()), exit_status::killed(SIGKILL));
  EXPECT_TRUE(has_ended(process.get()));
  expect_kept_or_lost(try_reap(process.get()).value(), exit_status::killed(SIGKILL));
}

TEST(Pidfd, AChildThatDiesUnderATracerHasEndedAndSaysHow) {
  const auto pid = fork_sleeper();
  const auto process = open_pidfd(pid);
  test::tracer tracer(pid);
  send_signal(process.get(), SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return has_ended(process.get()); }));
  if (tracer.works()) {
    EXPECT_EQ(try_reap(process.get()), std::nullopt);
    EXPECT_EQ(status_of_zombie(process.get()), exit_status::killed(SIGKILL));
  }
  tracer.let_go();
  EXPECT_EQ(reap(process.get()), exit_status::killed(SIGKILL));
}

TEST(Pidfd, TheStatusOfAProcessThatRunsIsLost) {
  EXPECT_EQ(status_of_zombie(open_pidfd(::getpid()).get()), exit_status::lost());
}

TEST(Pidfd, TheStatusOfAZombieIsFoundInEveryLocale) {
  const test::foreign_locale scope;
  const auto pid = fork_child(5);
  const auto process = open_pidfd(pid);
  EXPECT_TRUE(test::eventually([&] { return has_ended(process.get()); }));
  EXPECT_TRUE(all_threads_have_ended(process.get()));
  EXPECT_EQ(status_of_zombie(process.get()), exit_status::exited(5));
  EXPECT_EQ(reap(process.get()), exit_status::exited(5));
}

TEST(Pidfd, ADescriptorThatIsNoneCannotBeAsked) {
  EXPECT_THAT([] { static_cast<void>(has_ended(987'654)); },
              testing::ThrowsMessage<error>(testing::HasSubstr("poll(987654)")));
  EXPECT_THROW(send_signal(987'654, SIGKILL), error);
  EXPECT_EQ(try_reap(987'654), exit_status::lost());
}

TEST(RefusedCalls, FailAsOftenAsTheTestSays) {
  const auto process = open_pidfd(fork_child(0));
  {
    const test::refused_calls scope("poll", EPERM, 1);
    EXPECT_THROW(static_cast<void>(has_ended(process.get())), error);
    EXPECT_NO_THROW(static_cast<void>(has_ended(process.get())));
  }
  static_cast<void>(reap(process.get()));
}

}  // namespace
}  // namespace muster::pidfd_test
