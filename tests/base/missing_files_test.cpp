// SPDX-License-Identifier: BSL-1.0
// What is read of /proc and /sys, where it is missing, empty or without the line that is looked for: sandboxes hide
// files (ProcSubset=pid of systemd), and what is unknown is neither much nor an error.
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/cgroup.hpp>
#include <muster/base/cpu_list.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/base/memory_budget.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pinning.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::missing_files_test {
namespace {

using testing::HasSubstr;

std::uint64_t all_memory() {
  struct sysinfo found{};
  return ::sysinfo(&found) == 0 ? std::uint64_t{found.totalram} * found.mem_unit : 0;
}

class MissingFiles : public testing::Test {
protected:
  [[nodiscard]] const std::filesystem::path& root() const { return directory_.path(); }
  void write(const char* file, const char* text) const { directory_.write(file, text); }
  void be_in_group() const {
    write("proc/self/cgroup", "0::/a\n");
    write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  }

private:
  test::temporary_directory directory_;
};

TEST_F(MissingFiles, WithoutMeminfoTheKernelIsAskedInAnotherWay) {
  const auto found = available_memory(root());
  EXPECT_EQ(found.limit_bytes, all_memory());
  EXPECT_LE(found.available_bytes, found.limit_bytes);
  EXPECT_GT(found.available_bytes, 0U);
  EXPECT_THAT(found.limited_by, HasSubstr("sysinfo"));
}

TEST_F(MissingFiles, AMeminfoThatDoesNotSayIsAsGoodAsNone) {
  for (const char* const text : {"", "\n", "MemTotal:\n", "MemTotal: 0 kB\n", "MemTotal: many kB\n", "MemFree: 10 kB\n",
                                 "MemAvailable: 10 kB\n", "\xff\xfe 7"}) {
    write("proc/meminfo", text);
    EXPECT_EQ(available_memory(root()).limit_bytes, all_memory()) << text;
  }
}

TEST_F(MissingFiles, WithoutMemAvailableWhatIsFreeAndPagesOfFilesCount) {
  write("proc/meminfo", "MemTotal: 16000 kB\nMemFree: 1000 kB\nActive(file): 400 kB\nInactive(file): 300 kB\n");
  EXPECT_EQ(available_memory(root()).limit_bytes, 16000U * 1024);
  EXPECT_EQ(available_memory(root()).available_bytes, 1500U * 1024);
  write("proc/meminfo", "MemTotal: 16000 kB\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 0U);
}

TEST_F(MissingFiles, WithoutMeminfoTheNodesOfSysAreAddedUp) {
  write("sys/devices/system/node/online", "0-1\n");
  write("sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal:       8000 kB\nNode 0 MemFree:  1000 kB\nNode 0 Inactive(file): 500 kB\n");
  write("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       4000 kB\nNode 1 MemFree:  100 kB\n");
  write("sys/devices/system/node/node2/meminfo", "");
  const auto found = available_memory(root());
  EXPECT_EQ(found.limit_bytes, 12000U * 1024);
  EXPECT_EQ(found.available_bytes, 1600U * 1024);
  EXPECT_THAT(found.limited_by, HasSubstr("/sys/devices/system/node"));
}

TEST_F(MissingFiles, AGroupWhoseFilesDoNotSayLimitsNothing) {
  be_in_group();
  write("proc/meminfo", "MemTotal: 16000 kB\nMemAvailable: 8000 kB\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 8000U * 1024);
  for (const char* const text : {"", "\n", "max\n", "much\n"}) {
    write("sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(available_memory(root()).available_bytes, 8000U * 1024) << text;
  }
  write("sys/fs/cgroup/a/memory.max", "4096\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 4096U) << "how much is used is unknown";
  write("sys/fs/cgroup/a/memory.current", "");
  EXPECT_EQ(available_memory(root()).available_bytes, 4096U);
  write("sys/fs/cgroup/a/memory.current", "96\n");
  write("sys/fs/cgroup/a/memory.stat", "anon 7\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 4000U);
}

TEST_F(MissingFiles, AQuotaThatDoesNotSayLimitsNothing) {
  be_in_group();
  const auto all = effective_cpus(root());
  EXPECT_EQ(all, process_cpus().size());
  for (const char* const text : {"", "\n", "max\n", "max 100000\n", "100000\n", "100000 0\n", "half 100000\n"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(effective_cpus(root()), all) << text;
  }
  write("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  EXPECT_EQ(effective_cpus(root()), 1U);
}

TEST_F(MissingFiles, ListsOfGroupsAndMountsThatDoNotSayMeanNone) {
  for (const char* const text : {"", "\n", "0\n", "0:\n", "::\n", "nonsense\n"}) {
    write("proc/self/cgroup", text);
    EXPECT_EQ(cgroup("memory", root()).version(), 0) << text;
  }
  write("proc/self/cgroup", "0::/a\n");
  for (const char* const text : {"", "\n", "30\n", "30 23 0:26 / /sys -\n", "30 23 0:26 / /sys rw - cgroup2\n"}) {
    write("proc/self/mountinfo", text);
    EXPECT_EQ(cgroup("memory", root()).version(), 0) << text;
  }
}

TEST_F(MissingFiles, WhetherTheKernelOvercommitsIsUnknownAndNothingFollows) {
  EXPECT_FALSE(never_overcommits(root()));
  write("proc/sys/vm/overcommit_memory", "");
  EXPECT_FALSE(never_overcommits(root()));
  write("proc/sys/vm/overcommit_memory", "2\n");
  write("proc/meminfo", "MemTotal: 16000 kB\nMemAvailable: 8000 kB\nCommitted_AS: 1 kB\n");
  EXPECT_EQ(available_memory(root()).available_bytes, 8000U * 1024) << "there is no CommitLimit";
}

TEST_F(MissingFiles, WithoutSysEveryProcessorIsACoreAndAllAreNear) {
  const auto mine = process_cpus();
  EXPECT_EQ(pinning::one_each().resolve(root()).size(), mine.size());
  EXPECT_THAT(pinning::node_each().resolve(root()), testing::ElementsAre(mine));
  EXPECT_THROW(static_cast<void>(pinning::to_node(0).resolve(root())), error);
  for (const char* const text : {"", "\n", "nodes\n", "1-0\n"}) {
    write("sys/devices/system/node/online", text);
    EXPECT_THAT(pinning::node_each().resolve(root()), testing::ElementsAre(mine)) << text;
    write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", text);
    EXPECT_EQ(pinning::one_each().resolve(root()).size(), mine.size()) << text;
  }
}

// ---- really

constexpr int not_permitted = 77;

/// In a process with mounts of its own, whose /proc is mounted anew, from `type` and with `options`.
exit_status with_proc(const char* type, const char* options, const std::function<int()>& what) {
  return test::spawn(1,
                     [&](std::size_t) {
                       if (::unshare(CLONE_NEWNS) != 0) return not_permitted;
                       if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return not_permitted;
                       if (::mount(type, "/proc", type, 0, options) != 0) return not_permitted;
                       return what();
                     })
      ->wait(0);
}

TEST(MissingProc, APoolIsMadeWhereProcHasProcessesOnly) {
  const auto found = with_proc("proc", "subset=pid", [] {
    if (std::filesystem::exists("/proc/meminfo")) return 1;
    if (available_memory().limit_bytes > all_memory()) return 2;
    init(0, nullptr);
    const pool pool({.workers = 1, .log = [](log_level, std::string_view) {}});
    if (domain::of_program()->blocks().size_bytes() > all_memory()) return 3;
    const auto size_of = [](const std::string& text) { return text.size(); };
    return pool.apply(size_of, std::string(100000, 'x')) == 100000 ? 0 : 4;
  });
  if (found == exit_status::exited(not_permitted)) GTEST_SKIP() << "this process may not mount /proc (subset=pid) anew";
  EXPECT_EQ(found, exit_status::exited(0));
}

TEST(MissingProc, WithoutAnyNothingIsThoughtToBeHuge) {
  const auto found = with_proc("tmpfs", "", [] {
    if (available_memory().limit_bytes > all_memory()) return 1;
    if (effective_cpus() < 1 || effective_cpus() > process_cpus().size()) return 2;
    if (status_of_zombie(::getpid()) != exit_status::lost() || all_threads_have_ended(::getpid())) return 3;
    domain own({});
    return own.blocks().size_bytes() <= all_memory() && own.blocks().allocate(100000).size() == 100000 ? 0 : 4;
  });
  if (found == exit_status::exited(not_permitted)) GTEST_SKIP() << "this process may not mount anything over /proc";
  EXPECT_EQ(found, exit_status::exited(0));
}

}  // namespace
}  // namespace muster::missing_files_test
