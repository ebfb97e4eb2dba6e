// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/completion_ring.hpp>

#include <array>
#include <thread>

#include <gtest/gtest.h>

namespace muster::completion_ring_test {
namespace {

using word = std::atomic<std::uint64_t>;

TEST(CompletionRing, KeepsEntriesInOrder) {
  word tail = 0;
  std::array<word, 4> entries{};
  completion_ring ring(tail, entries);
  ring.push({.generation = 4000000000U, .slot = 65535});
  ring.push({.generation = 2, .slot = 3});
  EXPECT_EQ(ring.tail(), 2U);
  EXPECT_EQ(ring.read(0).generation, 4000000000U);
  EXPECT_EQ(ring.read(0).slot, 65535);
  EXPECT_EQ(ring.read(1).slot, 3);
}

TEST(CompletionRing, ASlowReaderCanTellThatItWasOvertaken) {
  word tail = 0;
  std::array<word, 4> entries{};
  completion_ring ring(tail, entries);
  for (std::uint16_t each = 0; each < 6; ++each) ring.push({.generation = each, .slot = each});
  EXPECT_GT(ring.tail() - 0, ring.capacity());
}

TEST(CompletionRing, AReaderThreadSeesCompleteEntries) {
  constexpr std::uint32_t count = 20000;
  word tail = 0;
  std::array<word, 1024> entries{};
  std::atomic<std::uint64_t> head = 0;
  std::thread writer([&] {
    completion_ring ring(tail, entries);
    for (std::uint32_t each = 0; each < count; ++each) {
      while (each - head.load() >= ring.capacity()) std::this_thread::yield();
      ring.push({.generation = each, .slot = static_cast<std::uint16_t>(each)});
    }
  });
  completion_ring ring(tail, entries);
  bool right = true;
  while (head < count) {
    for (const auto end = ring.tail(); head != end; ++head) {
      right = right && ring.read(head).generation == head && ring.read(head).slot == static_cast<std::uint16_t>(head);
    }
  }
  writer.join();
  EXPECT_TRUE(right);
}

}  // namespace
}  // namespace muster::completion_ring_test
