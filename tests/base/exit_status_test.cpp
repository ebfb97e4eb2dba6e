// SPDX-License-Identifier: BSL-1.0
#include <muster/base/exit_status.hpp>

#include <csignal>

#include <gtest/gtest.h>

namespace muster::exit_status_test {
namespace {

TEST(ExitStatus, SaysHowTheProcessEnded) {
  EXPECT_EQ(to_string(exit_status::exited(3)), "exited with code 3");
  EXPECT_EQ(to_string(exit_status::killed(SIGSEGV)), "was killed by SIGSEGV (11)");
  EXPECT_TRUE(to_string(exit_status::lost()).starts_with("ended, and its exit status is lost: this program ignores"));
}

TEST(ExitStatus, OnlyExitZeroIsSuccess) {
  EXPECT_TRUE(exit_status::exited(0).success());
  EXPECT_FALSE(exit_status::exited(1).success());
  EXPECT_FALSE(exit_status::killed(SIGTERM).success());
  EXPECT_FALSE(exit_status::lost().success());
}

TEST(ExitStatus, PartsThatDoNotApplyAreNeutral) {
  EXPECT_EQ(exit_status::killed(9).code(), -1);
  EXPECT_EQ(exit_status::exited(9).signal(), 0);
}

TEST(SignalName, NamesRealTimeSignalsByNumber) {
  EXPECT_EQ(signal_name(SIGRTMIN + 3), "signal " + std::to_string(SIGRTMIN + 3));
}

}  // namespace
}  // namespace muster::exit_status_test
