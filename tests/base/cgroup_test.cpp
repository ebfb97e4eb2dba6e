// SPDX-License-Identifier: BSL-1.0
#include <muster/base/cgroup.hpp>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/effective_cpus.hpp>
#include <muster/base/memory_budget.hpp>

#include "foreign_locale.hpp"
#include "temporary_directory.hpp"

namespace muster::cgroup_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

// Made-up systems with more processors than any quota below, which the real affinity mask may not have.
class FakeSystem : public testing::Test {
protected:
  [[nodiscard]] const std::filesystem::path& root() const { return directory_.path(); }
  void write(const char* file, const char* text) const { directory_.write(file, text); }

  void version_2(const char* path) const {
    write("proc/self/cgroup", (std::string("0::") + path + "\n").c_str());
    write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  }
  void hybrid() const {
    write("proc/self/cgroup", "5:memory:/service/worker\n2:cpu,cpuacct:/service\n0::/other\n");
    write("proc/self/mountinfo",
          "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
          "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
          "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  }

private:
  test::temporary_directory directory_;
};

using Cgroup = FakeSystem;
using EffectiveCpus = FakeSystem;
using AvailableMemory = FakeSystem;

TEST_F(Cgroup, NothingMountedMeansNoLimits) {
  const cgroup group("cpu", root());
  EXPECT_EQ(group.version(), 0);
  EXPECT_TRUE(group.directories().empty());
}

TEST_F(Cgroup, Version2HasAllAncestorsInnermostFirst) {
  version_2("/user.slice/app");
  const cgroup group("cpu", root());
  EXPECT_EQ(group.version(), 2);
  const auto top = root() / "sys/fs/cgroup";
  EXPECT_THAT(group.directories(), ElementsAre(top / "user.slice/app", top / "user.slice", top));
}

TEST_F(Cgroup, HybridFindsEachControllerWhereItIs) {
  hybrid();
  EXPECT_EQ(cgroup("cpu", root()).version(), 1);
  EXPECT_EQ(cgroup("memory", root()).version(), 1);
  EXPECT_EQ(cgroup("io", root()).version(), 2);
  EXPECT_THAT(cgroup("memory", root()).directories().front().string(), EndsWith("memory/service/worker"));
}

TEST_F(Cgroup, InAContainerTheMountIsNotTheRootOfTheHierarchy) {
  write("proc/self/cgroup", "5:memory:/docker/abc/inner\n");
  write("proc/self/mountinfo", "31 23 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  const auto top = root() / "sys/fs/cgroup/memory";
  EXPECT_THAT(cgroup("memory", root()).directories(), ElementsAre(top / "inner", top));
}

TEST_F(Cgroup, APathOutsideTheMountFallsBackToTheMount) {
  write("proc/self/cgroup", "5:memory:/elsewhere\n");
  write("proc/self/mountinfo", "31 23 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  EXPECT_THAT(cgroup("memory", root()).directories(), ElementsAre(root() / "sys/fs/cgroup/memory"));
}

TEST_F(EffectiveCpus, WithoutAQuotaItIsTheAffinityMask) { EXPECT_EQ(effective_cpus(root()), effective_cpus("/")); }

TEST_F(EffectiveCpus, AVersion2QuotaOfAnAncestorCounts) {
  version_2("/a/b");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(effective_cpus(root()), 1U);
}

TEST_F(EffectiveCpus, AVersion1QuotaCounts) {
  hybrid();
  write("sys/fs/cgroup/cpu,cpuacct/service/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/service/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(effective_cpus(root()), 1U);
}

TEST_F(EffectiveCpus, NoVersion1QuotaIsMinusOne) {
  hybrid();
  write("sys/fs/cgroup/cpu,cpuacct/service/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/service/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(effective_cpus(root()), effective_cpus("/"));
}

TEST_F(EffectiveCpus, AQuotaIsReadInEveryLocale) {
  const test::foreign_locale scope;
  version_2("/a");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(effective_cpus(root()), 1U);
}

constexpr const char* meminfo = "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    8000 kB\n";

TEST_F(AvailableMemory, WithoutGroupsItIsMemAvailable) {
  write("proc/meminfo", meminfo);
  const auto budget = available_memory(root());
  EXPECT_EQ(budget.available_bytes, 8000U * 1024);
  EXPECT_EQ(budget.limit_bytes, 16000U * 1024);
  EXPECT_THAT(budget.limited_by, testing::HasSubstr("MemAvailable"));
}

TEST_F(AvailableMemory, WhatMayBeCommittedCountsWhereTheKernelNeverOvercommits) {
  write("proc/meminfo", (std::string(meminfo) + "CommitLimit: 5000 kB\nCommitted_AS: 3000 kB\n").c_str());
  EXPECT_FALSE(never_overcommits(root()));
  write("proc/sys/vm/overcommit_memory", "0\n");
  EXPECT_FALSE(never_overcommits(root()));
  EXPECT_EQ(available_memory(root()).available_bytes, 8000U * 1024);
  write("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_TRUE(never_overcommits(root()));
  const auto budget = available_memory(root());
  EXPECT_EQ(budget.available_bytes, 2000U * 1024);
  EXPECT_EQ(budget.limit_bytes, 5000U * 1024);
  EXPECT_THAT(budget.limited_by, testing::HasSubstr("CommitLimit"));
}

TEST_F(AvailableMemory, AVersion2LimitCountsAndDroppableCacheIsFree) {
  write("proc/meminfo", meminfo);
  version_2("/a");
  write("sys/fs/cgroup/a/memory.max", "4096000\n");
  write("sys/fs/cgroup/a/memory.current", "4000000\n");
  write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 1000000\n");
  const auto budget = available_memory(root());
  EXPECT_EQ(budget.available_bytes, 4096000U - 3000000U);
  EXPECT_EQ(budget.limit_bytes, 4096000U);
  EXPECT_THAT(budget.limited_by, EndsWith("a/memory.max"));
}

TEST_F(AvailableMemory, IsReadInEveryLocale) {
  const test::foreign_locale scope;
  write("proc/meminfo", meminfo);
  EXPECT_EQ(available_memory(root()).available_bytes, 8000U * 1024);
  version_2("/a");
  write("sys/fs/cgroup/a/memory.max", "4096000\n");
  write("sys/fs/cgroup/a/memory.current", "4000000\n");
  write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 1000000\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 4096000U - 3000000U);
}

TEST_F(AvailableMemory, AVersion2GroupWithoutLimitDoesNotCount) {
  write("proc/meminfo", meminfo);
  version_2("/a");
  write("sys/fs/cgroup/a/memory.max", "max\n");
  write("sys/fs/cgroup/a/memory.current", "4000000\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 8000U * 1024);
}

TEST_F(AvailableMemory, AVersion1LimitCounts) {
  write("proc/meminfo", meminfo);
  hybrid();
  write("sys/fs/cgroup/memory/service/worker/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/service/memory.limit_in_bytes", "2000000\n");
  write("sys/fs/cgroup/memory/service/memory.usage_in_bytes", "1500000\n");
  write("sys/fs/cgroup/memory/service/memory.stat", "total_inactive_file 100000\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 600000U);
}

TEST_F(AvailableMemory, AGroupOverItsLimitHasNothingLeft) {
  write("proc/meminfo", meminfo);
  version_2("/a");
  write("sys/fs/cgroup/a/memory.max", "1000\n");
  write("sys/fs/cgroup/a/memory.current", "2000\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 0U);
}

TEST(RealSystem, HasMemoryAndProcessors) {
  EXPECT_GT(available_memory().available_bytes, 0U);
  EXPECT_GE(available_memory().limit_bytes, available_memory().available_bytes);
  EXPECT_GE(effective_cpus(), 1U);
}

}  // namespace
}  // namespace muster::cgroup_test
