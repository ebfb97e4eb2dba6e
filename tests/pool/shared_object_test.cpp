// SPDX-License-Identifier: BSL-1.0
// One copy for all workers, read in place.
#include <array>
#include <csignal>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/interprocess/containers/map.hpp>

#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/serialize/shared_segment.hpp>

#include "processes.hpp"

namespace muster::shared_object_test {
namespace {

namespace bip = boost::interprocess;

struct squares {
  std::array<int, 100'000> values;
};
using index = bip::map<int, int, std::less<>, shared_allocator<std::pair<const int, int>>>;

squares first_squares() {
  squares made{};
  for (std::size_t each = 0; each < made.values.size(); ++each)
    made.values[each] = static_cast<int>(each * each % 10007);
  return made;
}

index build_index(const shared_allocator<std::byte>& where, int count) {
  index made(where);
  for (int each = 0; each < count; ++each) made.emplace(each, 3 * each);
  return made;
}

shared_object<index> index_of(int count) {
  return share<index>(std::size_t{64} * static_cast<std::size_t>(count),
                      [=](const shared_allocator<std::byte>& where) { return build_index(where, count); });
}

class PoolSharedObject : public testing::Test {
protected:
  pool pool_{{.workers = 2}};
};

TEST_F(PoolSharedObject, EveryWorkerReadsTheOneCopy) {
  const auto table = pool_.share(first_squares());
  const auto before = pool_.stats().memory.held_bytes;
  const auto find = muster::bind_front(
      [](const shared_object<squares>& in, int x) { return in->values[static_cast<std::size_t>(x)]; }, table);
  const auto found = pool_.map(find, std::views::iota(0, 1000));
  for (std::size_t each = 0; each < 1000; ++each) ASSERT_EQ(found[each], table->values[each]);
  // 400 KB of it: a second copy would show.
  EXPECT_LT(pool_.stats().memory.held_bytes, before + 400'000);
}

// Nothing is write-protected either, as docs/formats/shared_object.md says.
TEST_F(PoolSharedObject, ItIsTheVerySameMemory) {
  const auto table = pool_.share(first_squares());
  const auto read = [](const shared_object<squares>& in) { return in->values[7]; };
  EXPECT_EQ(pool_.apply(read, table), 49);
  const_cast<squares&>(*table).values[7] = -1;  // NOLINT: that is the question
  EXPECT_EQ(pool_.apply(read, table), -1);
}

TEST_F(PoolSharedObject, ContainersAreReadInPlaceToo) {
  const auto table = index_of(10'000);
  const auto triple = muster::bind_front([](const shared_object<index>& in, int x) { return in->at(x); }, table);
  const auto found = pool_.map(triple, std::views::iota(0, 10'000));
  EXPECT_EQ(found[9'999], 29'997);
  EXPECT_EQ(pool_.apply([](const shared_object<index>& in) { return in->size(); }, table), 10'000U);
}

TEST_F(PoolSharedObject, OneThatAWorkerMadeOutlivesIt) {
  pool own({.workers = 1});
  const auto made = own.apply([] { return index_of(1000); });
  ::kill(own.workers().front().pid, SIGKILL);
  ASSERT_TRUE(test::eventually([&] { return own.workers().front().incarnation == 2; }));
  EXPECT_EQ(made->at(999), 2997);
  EXPECT_EQ(pool_.apply([](const shared_object<index>& in) { return in->at(500); }, made), 1500);
}

TEST_F(PoolSharedObject, OneOfAnIsolatedPoolIsReadThereAndOutlivesThatPool) {
  shared_object<squares> kept;
  {
    pool own({.workers = 1, .arena_bytes = std::size_t{64} << 20U, .isolated = true});
    const auto table = own.share(first_squares());
    EXPECT_EQ(own.apply([](const shared_object<squares>& in) { return in->values[3]; }, table), 9);
    kept = own.apply([](shared_object<squares> in) { return in; }, table);
    EXPECT_EQ(kept.get(), table.get());
  }
  EXPECT_EQ(kept->values[4], 16);
}

TEST_F(PoolSharedObject, ContainersOfThemAndResultsOfMapsArrive) {
  const std::map<std::string, shared_object<index>> tables = {{"small", index_of(10)}, {"large", index_of(100)}};
  const auto sizes = pool_.apply(
      [](const std::map<std::string, shared_object<index>>& in) {
        return in.at("small")->size() + in.at("large")->size();
      },
      tables);
  EXPECT_EQ(sizes, 110U);
  const auto made = pool_.map([](int count) { return index_of(count); }, std::vector{1, 2, 3});
  EXPECT_EQ(made.at(2)->at(2), 6);
}

TEST_F(PoolSharedObject, NothingIsLeftWhenTheLastHandleIsGone) {
  const auto domain = muster::domain::of_program();
  for (int round = 0; round < 50; ++round) {
    const auto table = index_of(100);
    static_cast<void>(pool_.apply([](shared_object<index> in) { return in; }, table));
  }
  EXPECT_TRUE(test::eventually([&] {
    const auto found = domain->blocks().read_statistics();
    return found.holds == 0 && found.live_blocks == 0;
  }));
}

}  // namespace
}  // namespace muster::shared_object_test
