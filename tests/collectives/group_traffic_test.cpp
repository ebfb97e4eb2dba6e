// SPDX-License-Identifier: BSL-1.0
// Many ranks as threads of this process, which count what they do: docs/design/collectives.md has the table.
#include <cstdio>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "group_support.hpp"

namespace muster::group_traffic_test {
namespace {

using test::rank_kind;
using test::run_group;

struct cost {
  group_traffic most;  // of any rank
  group_traffic sum;
};

cost cost_of(std::size_t ranks, const std::function<void(group&)>& call) {
  std::mutex guard;
  cost found;
  run_group(rank_kind::threads, ranks, [&](group& group) {
    call(group);
    const auto own = group.traffic();
    const std::scoped_lock lock(guard);
    found.sum.bytes_read += own.bytes_read;
    found.sum.bytes_written += own.bytes_written;
    found.most.exchanges = std::max(found.most.exchanges, own.exchanges);
    found.most.words_looked = std::max(found.most.words_looked, own.words_looked);
    found.most.bytes_read = std::max(found.most.bytes_read, own.bytes_read);
    found.most.bytes_written = std::max(found.most.bytes_written, own.bytes_written);
  });
  return found;
}

void print(const char* what, std::size_t ranks, const cost& found) {
  std::printf("| %s | %zu | %zu | %zu | %zu | %zu |\n", what, ranks, std::size_t{found.most.exchanges},
              std::size_t{found.most.words_looked}, std::size_t{found.most.bytes_read},
              std::size_t{found.most.bytes_written});
}

class GroupTraffic : public testing::TestWithParam<std::size_t> {};

TEST_P(GroupTraffic, OfShortSumsGrowsWithTheRanks) {
  const auto ranks = GetParam();
  const auto found = cost_of(ranks, [](group& group) { group.all_reduce(tensor::ones<float>({2})); });
  print("all_reduce of 8 B", ranks, found);
  EXPECT_EQ(found.most.exchanges, 1U);
  EXPECT_EQ(found.most.words_looked, ranks - 1);
  EXPECT_EQ(found.most.bytes_read, 8 * ranks);
  EXPECT_EQ(found.most.bytes_written, 8U);
}

// Each byte of a result is written once, and each of an input read once, whatever the number of ranks; of many ranks,
// the others' slices are read once more.
TEST_P(GroupTraffic, OfLongSumsIsTheSameForEachRank) {
  const auto ranks = GetParam();
  constexpr std::size_t count = 65536;
  constexpr std::size_t bytes = count * sizeof(float);
  const auto found = cost_of(ranks, [](group& group) { group.all_reduce(tensor::ones<float>({count})); });
  print("all_reduce of 256 KiB", ranks, found);
  const bool pushes = ranks <= 16;
  EXPECT_EQ(found.most.exchanges, pushes ? 2U : 3U);
  EXPECT_EQ(found.sum.bytes_read, bytes * (pushes ? ranks : 2 * ranks - 1));
  EXPECT_EQ(found.sum.bytes_written, bytes * ranks);
  EXPECT_LE(found.most.bytes_read, (pushes ? 1 : 2) * (bytes + 64 * ranks)) << "shares are equal but for a cache line";
}

TEST_P(GroupTraffic, OfBroadcastsIsShared) {
  const auto ranks = GetParam();
  constexpr std::size_t count = 65536;
  constexpr std::size_t bytes = count * sizeof(float);
  const auto found = cost_of(ranks, [](group& group) { group.broadcast(tensor::ones<float>({count}), 0); });
  print("broadcast of 256 KiB", ranks, found);
  EXPECT_EQ(found.most.exchanges, 2U);
  EXPECT_EQ(found.sum.bytes_written, bytes * (ranks - 1));
  EXPECT_LE(found.most.bytes_written, bytes + 64 * ranks);
}

TEST_P(GroupTraffic, OfBarriersIsOneExchange) {
  const auto ranks = GetParam();
  const auto found = cost_of(ranks, [](group& group) { group.barrier(); });
  print("barrier", ranks, found);
  EXPECT_EQ(found.most.exchanges, 1U);
  EXPECT_EQ(found.most.words_looked, ranks - 1);
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupTraffic, testing::Values(2, 8, 64, 256), testing::PrintToStringParamName());

}  // namespace
}  // namespace muster::group_traffic_test
