// SPDX-License-Identifier: BSL-1.0
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "foreign_locale.hpp"
#include "memory_group.hpp"
#include "processes.hpp"
#include "temporary_directory.hpp"
#include "waiting_tasks.hpp"

namespace muster::memory_group_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

/// A control group inside of this program's own, where that may be.
class MemoryGroup : public testing::Test {
protected:
  void SetUp() override {
    if (!group_.why_not().empty()) GTEST_SKIP() << group_.why_not();
  }

  [[nodiscard]] pool_options options(unsigned workers, std::size_t most_bytes = 1024 * mebibyte) const {
    auto made = test::quiet(workers);
    made.worker_memory = most_bytes;
    made.worker_cgroup = group_.path();
    return made;
  }
  [[nodiscard]] std::vector<fs::path> groups() const {
    std::vector<fs::path> found;
    for (const auto& each : fs::directory_iterator(group_.path())) {
      if (each.is_directory()) found.push_back(each.path());
    }
    return found;
  }
  static std::vector<pid_t> members(const fs::path& group) {
    std::ifstream in(group / "cgroup.procs");
    return {std::istream_iterator<pid_t>(in), std::istream_iterator<pid_t>()};
  }

  test::memory_group group_;
};

void touch(std::size_t bytes) {
  std::vector<char> much(bytes, 'x');
  volatile char seen = much[bytes / 2];
  static_cast<void>(seen);
}

TEST_F(MemoryGroup, EveryWorkerHasOneOfItsOwn) {
  {
    const pool pool(options(2));
    std::vector<pid_t> inside;
    for (const auto& each : groups()) {
      const auto all = members(each);
      ASSERT_THAT(all, testing::SizeIs(1));
      inside.push_back(all.front());
    }
    std::vector<pid_t> workers;
    for (const auto& each : pool.workers()) workers.push_back(each.pid);
    EXPECT_THAT(inside, testing::UnorderedElementsAreArray(workers));
  }
  EXPECT_THAT(groups(), testing::IsEmpty());
}

TEST_F(MemoryGroup, IsMadeInEveryLocale) {
  const test::foreign_locale scope;
  const pool pool(options(1));
  ASSERT_THAT(groups(), testing::SizeIs(1));
  const auto made = groups().front();
  EXPECT_EQ(made.filename(), "muster-" + std::to_string(::getpid()) + "-1");
  EXPECT_THAT(members(made), testing::ElementsAre(pool.workers().front().pid));
}

TEST_F(MemoryGroup, WhoHasTooMuchIsKilledAndTheErrorSaysWhy) {
  if (std::string_view(MUSTER_SANITIZER) != "") GTEST_SKIP() << "the sanitizer's own memory counts";
  const pool pool(options(1, 64 * mebibyte));
  pool.apply(touch, 8 * mebibyte);
  auto failed = pool.apply_async(touch, 256 * mebibyte);
  const auto found = failed.get_result();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), errc::worker_died);
  EXPECT_THAT(found.error().describe(), HasSubstr("killed by the kernel"));
  EXPECT_THAT(found.error().crash(), HasSubstr(std::to_string(64 * mebibyte)));
  EXPECT_NO_THROW(pool.apply(touch, 8 * mebibyte)) << "its successor";
}

// They die when it is killed, and some of them a little later.
void start_children() {
  for (int each = 0; each < 20; ++each) {
    if (::fork() != 0) continue;
    for (;;) ::pause();
  }
}

TEST_F(MemoryGroup, OfAWorkerWithChildrenIsRemovedAlsoAfterItsPool) {
  const pool other({.workers = 1});
  {
    const pool pool(options(1));
    pool.apply(start_children);
  }
  EXPECT_TRUE(test::eventually([&] { return groups().empty(); }));
}

TEST_F(MemoryGroup, OfAWorkerWithChildrenIsRemovedBeforeTheLastPoolHasGone) {
  {
    const pool pool(options(1));
    pool.apply(start_children);
  }
  EXPECT_THAT(groups(), testing::IsEmpty());
}

TEST_F(MemoryGroup, WhatAKilledProgramLeftIsRemoved) {
  const auto dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const auto left = group_.path() / ("muster-" + std::to_string(dead) + "-1");
  ASSERT_EQ(::mkdir(left.c_str(), 0755), 0);
  const pool pool(options(1));
  EXPECT_FALSE(fs::exists(left));
}

TEST(MemoryGroupOption, WhatIsNoGroupIsRefused) {
  const test::temporary_directory directory;
  try {
    pool({.workers = 1, .worker_memory = mebibyte, .worker_cgroup = directory.path()});
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), HasSubstr("subtree_control"));
  }
  EXPECT_THROW(pool({.workers = 1, .worker_cgroup = directory.path()}), error) << "without a limit";
}

}  // namespace
}  // namespace muster::memory_group_test
