// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/recycled_memory.hpp>

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace muster::detail::recycled_memory_test {
namespace {

TEST(RecycledMemory, GivesAPieceOutAgain) {
  recycled_memory memory;
  auto* const first = memory.take(100);
  auto* const second = memory.take(100);
  EXPECT_NE(first, second);
  memory.put_back(first, 100);
  EXPECT_EQ(memory.take(100), first);
  memory.put_back(first, 100);
  memory.put_back(second, 100);
}

TEST(RecycledMemory, GivesWhatItKeepsOnlyForTheSameSize) {
  recycled_memory memory;
  auto* const small = memory.take(32);
  memory.put_back(small, 32);
  auto* const large = memory.take(1000);
  EXPECT_NE(large, small);
  memory.put_back(large, 1000);
  EXPECT_EQ(memory.take(32), small);
  memory.put_back(small, 32);
}

TEST(RecycledMemory, KeepsSomeOfMany) {
  recycled_memory memory;
  std::vector<void*> all;
  for (std::size_t each = 0; each < recycled_memory::most_kept + 10; ++each) all.push_back(memory.take(64));
  for (auto* const each : all) memory.put_back(each, 64);
  for (auto& each : all) each = memory.take(64);
  for (auto* const each : all) memory.put_back(each, 64);
}

TEST(RecycledMemory, OutlivesWhoeverMadeTheObject) {
  auto memory = std::make_shared<recycled_memory>();
  const std::weak_ptr<recycled_memory> watched = memory;
  auto made = std::allocate_shared<int>(recycling_allocator<int>(memory), 7);
  memory.reset();
  EXPECT_EQ(*made, 7);
  made.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(RecycledMemory, IsTakenAndPutBackByManyThreads) {
  const auto memory = std::make_shared<recycled_memory>();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&memory, thread] {
      std::vector<std::shared_ptr<int>> held(10);
      for (int each = 0; each < 10000; ++each) {
        auto& place = held[static_cast<std::size_t>(each) % held.size()];
        if (place) {
          EXPECT_EQ(*place, thread);
        }
        place = std::allocate_shared<int>(recycling_allocator<int>(memory), thread);
      }
    });
  }
  for (auto& each : threads) each.join();
}

}  // namespace
}  // namespace muster::detail::recycled_memory_test
