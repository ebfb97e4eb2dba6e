// SPDX-License-Identifier: BSL-1.0
// What groups leave behind that are made and destroyed over and over: whoever lets go last has freed them.
#include <cstddef>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>

#include "group_support.hpp"

namespace muster::group_warm_test {
namespace {

using test::rank_kind;

constexpr std::size_t ranks = 4;
constexpr std::size_t groups = 2000;
constexpr std::size_t mebibyte = std::size_t{1} << 20U;

arena::statistics memory() { return domain::of_program()->blocks().read_statistics(); }

class GroupWarm : public testing::TestWithParam<rank_kind> {};

// The first rank makes their memory, the last lets go of it last.
void make_and_destroy(group& among) {
  std::vector<std::size_t> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
  const auto one = tensor::ones<float>({100});
  for (std::size_t each = 0; each < groups; ++each) {
    std::optional<group> made(among.subset(all));
    made->all_reduce(one);
    one.fill(1.0F);
    if (among.rank() + 1 < ranks) made.reset();
    among.barrier();
  }
}

TEST_P(GroupWarm, ThousandsKeepLittleAndNothingWhenNobodyUsesIt) {
  const auto before = memory().in_use_bytes();
  test::run_group(GetParam(), ranks, [&](group& among) {
    make_and_destroy(among);
    among.barrier();
    EXPECT_LE(memory().cached_bytes, 2 * mebibyte) << "by one process";
    EXPECT_LE(memory().warm_bytes, 2 * ranks * mebibyte) << "by all";
    EXPECT_LE(memory().in_use_bytes(), before + 4 * mebibyte);
    among.barrier();
    // The others sleep in a barrier, and give back what their processes keep.
    if (among.rank() == 0) {
      const auto others = [] { return memory().warm_bytes - memory().cached_bytes; };
      const bool is_alone = GetParam() == rank_kind::processes;
      EXPECT_TRUE(test::eventually([&] { return (is_alone ? others() : memory().warm_bytes) == 0; }));
    }
    among.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Of, GroupWarm, testing::ValuesIn(test::rank_kinds()),
                         [](const auto& given) { return test::name_of(given.param); });

}  // namespace
}  // namespace muster::group_warm_test
