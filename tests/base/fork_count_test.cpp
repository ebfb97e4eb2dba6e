// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/fork_count.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

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

TEST(ClosedInChildren, AreAllOfThemHoweverMany) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  std::vector<int> descriptors;
  std::deque<closed_in_children> all;
  for (int each = 0; each < 200; ++each) all.emplace_back(descriptors.emplace_back(::dup(ends[1])));
  all.pop_front();  // that one stays open
  const auto child = ::fork();
  if (child == 0) {
    const auto is_open = [](int each) { return ::fcntl(each, F_GETFD) >= 0; };
    ::_exit(std::count_if(descriptors.begin(), descriptors.end(), is_open) == 1 && is_open(descriptors[0]) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int each : descriptors) EXPECT_EQ(::close(each), 0);
  for (const int each : ends) EXPECT_EQ(::close(each), 0);
}

}  // namespace
}  // namespace muster::fork_count_test
