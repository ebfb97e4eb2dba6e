// SPDX-License-Identifier: BSL-1.0
#include <muster/base/cpu_list.hpp>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>

namespace muster::cpu_list_test {
namespace {

TEST(CpuList, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(parse_cpu_list("0-3,8"), (cpu_list{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5\n"), (cpu_list{5}));
  EXPECT_EQ(parse_cpu_list("7,2-3,3"), (cpu_list{2, 3, 7}));
  EXPECT_EQ(parse_cpu_list(""), cpu_list());
}

TEST(CpuList, WhatIsNoListIsNothing) {
  for (const auto* wrong : {"x", "1-", "-1", "3-1", "1,", ",1", "1 2", "1-2-3", "99999999999", "0-4294967295"}) {
    EXPECT_EQ(parse_cpu_list(wrong), std::nullopt) << wrong;
  }
}

TEST(CpuList, IsDescribedAsItIsRead) {
  for (const auto* text : {"0-3,8", "5", "0,2,4-5", ""}) EXPECT_EQ(describe(*parse_cpu_list(text)), text);
}

TEST(AffinityScope, EndsWithItsBlock) {
  const auto before = allowed_cpus();
  ASSERT_FALSE(before.empty());
  {
    const affinity_scope bound({before.back()});
    EXPECT_EQ(allowed_cpus(), cpu_list{before.back()});
  }
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(AffinityScope, NoProcessorIsAnError) {
  const auto before = allowed_cpus();
  EXPECT_THROW(affinity_scope({}), error);
  EXPECT_THROW(affinity_scope({100'000}), error);
  EXPECT_EQ(allowed_cpus(), before);
}

}  // namespace
}  // namespace muster::cpu_list_test
