// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/worker_cache.hpp>

#include <string>

#include <gtest/gtest.h>

namespace muster::worker_cache_test {
namespace {

constexpr block_ref first{.descriptor = 1, .generation = 1, .size_bytes = 8};
constexpr block_ref second{.descriptor = 2, .generation = 1, .size_bytes = 8};

TEST(WorkerCache, MakesAValueOnce) {
  worker_cache cache;
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_EQ(*cache.find_or_make<int>(first, make), 1);
  EXPECT_EQ(*cache.find_or_make<int>(first, make), 1);
  EXPECT_EQ(*cache.find_or_make<int>(second, make), 2);
}

TEST(WorkerCache, TheSameBlockAsAnotherTypeIsAnotherValue) {
  worker_cache cache;
  EXPECT_EQ(*cache.find_or_make<int>(first, [] { return 5; }), 5);
  EXPECT_EQ(*cache.find_or_make<std::string>(first, [] { return std::string("s"); }), "s");
}

TEST(WorkerCache, ClearingForgets) {
  worker_cache cache;
  int made = 0;
  const auto make = [&] { return ++made; };
  static_cast<void>(cache.find_or_make<int>(first, make));
  cache.clear();
  EXPECT_EQ(*cache.find_or_make<int>(first, make), 2);
}

TEST(WorkerCache, AValueInUseSurvivesItsEviction) {
  worker_cache cache;
  const auto kept = cache.find_or_make<int>(first, [] { return 1; });
  for (std::uint32_t each = 10; each < 20; ++each) {
    static_cast<void>(
        cache.find_or_make<int>(block_ref{.descriptor = each, .generation = 1, .size_bytes = 1}, [] { return 2; }));
  }
  EXPECT_EQ(*kept, 1);
}

}  // namespace
}  // namespace muster::worker_cache_test
