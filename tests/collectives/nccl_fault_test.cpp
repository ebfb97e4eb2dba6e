// SPDX-License-Identifier: BSL-1.0
// Groups of which some ranks have no NCCL, or one that fails: they go by way of the host, or say what happened.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/text.hpp>
#include <muster/cuda/cuda_device.hpp>

#include "conformance.hpp"
#include "group_operations.hpp"
#include "nccl_support.hpp"
#include "refused_calls.hpp"

namespace muster::nccl_fault_test {
namespace {

using namespace std::chrono_literals;
using test::text_thrown_by;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t ranks = 3;

class NcclFault : public test::nccl_test {
protected:
  // Asks NCCL to fail, in this rank.
  static void fail(const char* function, ncclResult_t code, int after_calls = 0) {
    test::fake_nccl().fail(function, code, after_calls);
  }

  static void run_all(group& mine, device where) {
    for (const auto& each : test::operations)
      each.run(mine, {.count = 700, .round = 1, .where = where, .is_into = true});
    test::check_all<std::int16_t>(mine, 20, where);
  }

  static void expect_by_host(group& mine, device where, const std::string& why) {
    run_all(mine, where);
    const auto way = mine.way_of_devices();
    EXPECT_FALSE(way.is_direct);
    EXPECT_THAT(way.how, AllOf(HasSubstr("by way of the host: "), HasSubstr(why)));
  }

  static void expect_directly(group& mine, device where) {
    run_all(mine, where);
    EXPECT_TRUE(mine.way_of_devices().is_direct) << mine.way_of_devices().how;
  }
};

class NcclFakeFault : public NcclFault {
protected:
  void SetUp() override {
    NcclFault::SetUp();
    if (!IsSkipped() && !is_fake()) GTEST_SKIP() << "NCCL is the real one, which does not fail when it is asked to";
  }
};

// ---- ranks that differ

TEST_F(NcclFault, BeforeTheFirstCallNothingIsKnown) {
  test::run_on_devices(2, [](group& mine, device there) {
    EXPECT_THAT(mine.way_of_devices().how, HasSubstr("until all ranks have made a collective"));
    expect_directly(mine, there);
  });
}

// What is on the host at one rank, or on another device, goes by the host; and the next call goes directly.
TEST_F(NcclFault, TensorsThatLieElsewhereAtSomeRanksGoByTheHostAndOthersDirectly) {
  test::run_on_devices(ranks, [](group& mine, device there) {
    for (std::size_t differs = 0; differs < ranks; ++differs) {
      const auto where = mine.rank() == differs ? device::cpu() : there;
      run_all(mine, where);
      test::run_all_reduce(mine, {.count = 20'000, .where = where});
      expect_directly(mine, there);
    }
    if (cuda_device::count() > 1) {
      const auto other = device::cuda(static_cast<std::uint16_t>(1 - there.index() % 2));
      run_all(mine, mine.rank() == 1 ? other : there);
      expect_directly(mine, there);
    }
  });
}

TEST_F(NcclFault, InAndOutInDifferentPlacesGoByTheHost) {
  test::run_on_devices(2, [](group& mine, device there) {
    const auto own = test::floats(3000, 1, there);
    const auto out = test::floats(3000, 0);
    mine.all_reduce(own, out);
    test::expect_all(out, 3000, 2, "all_reduce");
    mine.all_reduce(out, own);
    test::expect_all(own, 3000, 4, "all_reduce");
  });
}

// A real driver, too, needs files for what goes by the host.
TEST_F(NcclFakeFault, WithoutTheLibraryAtOneRankAllGoByTheHostAndKnowWhy) {
  test::run_on_devices(ranks, [](group& mine, device there) {
    const auto warm = tensor::ones<float>({1}, there);
    static_cast<void>(mine.all_gather(tensor::ones<float>({1})));
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    auto none = before;
    none.rlim_cur = 0;
    if (mine.rank() == 1) ::setrlimit(RLIMIT_NOFILE, &none);
    mine.all_reduce(warm);
    if (mine.rank() == 1) ::setrlimit(RLIMIT_NOFILE, &before);
    test::expect_all(warm, 1, ranks, "all_reduce");
    expect_by_host(mine, there,
                   text("rank 1 (pid ", mine.members()[1].pid, "): NCCL cannot be used: its library could "));
  });
}

TEST_F(NcclFakeFault, WithAnOldLibraryAtOneRankAllGoByTheHostAndKnowWhy) {
  test::run_on_devices(ranks, [](group& mine, device there) {
    if (mine.rank() == 2) ::setenv("FAKE_NCCL_VERSION", "20805", 1);
    expect_by_host(mine, there, "is of version 2.8.5");
  });
}

TEST_F(NcclFakeFault, WithDifferentLibrariesAllGoByTheHostAndKnowWhy) {
  test::run_on_devices(2, [](group& mine, device there) {
    if (mine.rank() == 1) ::setenv("FAKE_NCCL_VERSION", "22703", 1);
    expect_by_host(mine, there, "rank 1 has 2.27.3: they must have the same");
  });
}

TEST_F(NcclFakeFault, RanksOnOneDeviceGoByTheHostAndKnowWhy) {
  test::run_on_devices(2, [](group& mine, device) {
    ::unsetenv("NCCL_HOSTID");
    expect_by_host(mine, device::cuda(0), "ranks 0 and 1 are on one device, which NCCL refuses");
  });
}

// ---- joining that fails

TEST_F(NcclFakeFault, WhereOneCannotBeginToJoinAllGoByTheHostAndKnowWhy) {
  for (const auto* function : {"ncclGetUniqueId", "ncclCommInitRankConfig"}) {
    test::run_on_devices(ranks, [&](group& mine, device there) {
      if (mine.rank() == 0) fail(function, ncclSystemError);
      expect_by_host(mine, there, text(function, '('));
      EXPECT_EQ(test::fake_nccl().live(), 0U);
    });
  }
}

TEST_F(NcclFakeFault, WhereJoiningFailsInTheBackgroundAllGoByTheHostAndKnowWhy) {
  test::run_on_devices(ranks, [](group& mine, device there) {
    if (mine.rank() == 1) fail("async", ncclRemoteError);
    expect_by_host(mine, there, "6, ncclRemoteError");
    EXPECT_EQ(test::fake_nccl().live(), 0U);
  });
}

// ---- operations that fail

// Whoever it happens to is told what, the others who and what; and the next call joins anew.
TEST_F(NcclFakeFault, WhatFailsInOneRankIsToldToAllAndTheGroupGoesOn) {
  for (const auto* function : {"ncclGroupStart", "ncclAllReduce", "ncclGroupEnd", "async"}) {
    SCOPED_TRACE(function);
    test::run_on_devices(ranks, [&](group& mine, device there) {
      expect_directly(mine, there);
      if (mine.rank() == 1) fail(function, ncclInternalError);
      const auto own = test::floats(100'000, 1, there);
      const auto text = text_thrown_by<error>([&] { mine.all_reduce(own); });
      EXPECT_THAT(text, HasSubstr("3, ncclInternalError"));
      if (mine.rank() != 1) {
        EXPECT_THAT(text, HasSubstr("failed, and its results are undefined: rank 1"));
      }
      EXPECT_TRUE(mine.is_whole());
      EXPECT_EQ(test::fake_nccl().live(), 0U);
      expect_directly(mine, there);
    });
  }
}

TEST_F(NcclFakeFault, WhatFailsInTheMiddleOfAnOrderedReductionIsToldToAll) {
  test::run_on_devices(ranks,
                       [](group& mine, device there) {
                         test::run_all_reduce(mine, {.count = 1000, .where = there});
                         if (mine.rank() == 2) fail("ncclAllGather", ncclInternalError);
                         EXPECT_THROW(test::run_all_reduce(mine, {.count = 999, .where = there}), error);
                         EXPECT_TRUE(mine.is_whole());
                         test::run_all_reduce(mine, {.count = 1000, .where = there});
                         EXPECT_TRUE(mine.way_of_devices().is_direct);
                       },
                       {.is_ordered_on_devices = true});
}

TEST_F(NcclFakeFault, WhatNeverEndsTimesOutAndTheOthersAreNamed) {
  test::run_on_devices(ranks, [](group& mine, device there) {
    expect_directly(mine, there);
    fail("hang", ncclInternalError);
    const auto own = test::floats(100'000, 1, there);
    try {
      mine.all_reduce(own, reduction_op::sum, {.timeout = 200ms});
      ADD_FAILURE() << "it ended";
    } catch (const group_error& found) {
      EXPECT_EQ(found.code(), errc::timed_out) << found.what();
      EXPECT_THAT(found.what(), HasSubstr("all_reduce"));
    }
    EXPECT_FALSE(mine.is_whole());
    EXPECT_EQ(test::fake_nccl().live(), 0U);
  });
}

TEST_F(NcclFakeFault, WithoutAThreadToEndItWhatNeverEndsKeepsItsTensors) {
  test::run_on_devices(ranks, [](group& mine, device there) {
    expect_directly(mine, there);
    fail("hang", ncclInternalError);
    std::uintptr_t address = 0;
    {
      const auto own = test::floats(100'000, 1, there);
      address = own.device_address();
      const test::refused_calls no_thread("pthread_create", EAGAIN);
      EXPECT_THROW(mine.all_reduce(own, reduction_op::sum, {.timeout = 200ms}), group_error);
    }
    EXPECT_EQ(test::fake_nccl().live(), 1U);
    EXPECT_NE(tensor::empty<float>({100'000}, there).device_address(), address) << "NCCL may still write there";
  });
}

TEST_F(NcclFakeFault, AnAbortEndsWhatTheDeviceWaitsFor) {
  test::run_on_devices(2, [](group& mine, device there) {
    expect_directly(mine, there);
    if (mine.rank() == 0) fail("hang", ncclInternalError);
    const auto own = test::floats(100'000, 1, there);
    const auto begun = mine.all_reduce_async(own);
    if (mine.rank() == 1) {
      EXPECT_FALSE(begun.wait_for(50ms));
      mine.abort("the test wants it");
    }
    EXPECT_THAT(text_thrown_by<group_error>([&] { begun.wait(); }), HasSubstr("the test wants it"));
    EXPECT_EQ(test::fake_nccl().live(), 0U);
  });
}

// ---- nothing is left

TEST_F(NcclFakeFault, GroupsThatEndLeaveNothing) {
  test::run_on_devices(2, [](group& mine, device there) {
    const auto count_files = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
    };
    test::run_all_reduce(mine, {.count = 1000, .where = there});
    const auto before = count_files();
    for (int round = 0; round < 5; ++round) {
      auto part = mine.split(0);
      test::run_all_reduce(*part, {.count = 1000, .where = there});
      EXPECT_EQ(test::fake_nccl().live(), 2U);
      mine.barrier();
    }
    EXPECT_EQ(test::fake_nccl().live(), 1U);
    EXPECT_EQ(count_files(), before);
  });
}

}  // namespace
}  // namespace muster::nccl_fault_test
