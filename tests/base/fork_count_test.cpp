// SPDX-License-Identifier: BSL-1.0
#include <muster/base/fork_count.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace muster::fork_count_test {
namespace {

TEST(ForkCount, IsAnotherInAForkedChildAndTheSameInTheParent) {
  const auto before = fork_count();
  const auto child = ::fork();
  if (child == 0) ::_exit(fork_count() == before + 1 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fork_count(), before);
}

}  // namespace
}  // namespace muster::fork_count_test
