// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/fifo.hpp>

#include <memory>

#include <gtest/gtest.h>

namespace muster::fifo_test {
namespace {

using numbers = detail::fifo<std::unique_ptr<int>>;

TEST(Fifo, GivesWhatWasPutFirst) {
  numbers row;
  EXPECT_TRUE(row.empty());
  int next = 0;
  for (int put = 0; put < 100; ++put) {
    row.push_back(std::make_unique<int>(put));
    if (put % 3 != 0) {
      EXPECT_EQ(*row.front(), next);
      EXPECT_EQ(*row.take_front(), next++);
    }
  }
  EXPECT_EQ(row.size(), 100U - static_cast<unsigned>(next));
  while (!row.empty()) EXPECT_EQ(*row.take_front(), next++);
  EXPECT_EQ(next, 100);
}

TEST(Fifo, IsGoneOverFromTheFirst) {
  numbers row;
  for (int put = 0; put < 4; ++put) row.push_back(std::make_unique<int>(put));
  (void)row.take_front();
  int next = 1;
  for (const auto& each : row) EXPECT_EQ(*each, next++);
  EXPECT_EQ(next, 4);
}

}  // namespace
}  // namespace muster::fifo_test
