// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/ring_news.hpp>

#include <array>

#include <gtest/gtest.h>

namespace muster::ring_news_test {
namespace {

using words = std::array<std::atomic<std::uint64_t>, 2>;

TEST(RingNews, AreTakenOnce) {
  words shared{};
  ring_news news(shared);
  EXPECT_FALSE(news.is_any());
  news.tell(3);
  news.tell(3);
  EXPECT_TRUE(news.is_any());
  EXPECT_EQ(news.take(0), 8U);
  EXPECT_EQ(news.take(0), 0U);
  EXPECT_FALSE(news.is_any());
}

TEST(RingNews, OfWorkersBeyondTheFirst64AreInTheNextGroup) {
  words shared{};
  ring_news news(shared);
  news.tell(64);
  news.tell(127);
  EXPECT_TRUE(news.is_any());
  EXPECT_EQ(news.take(0), 0U);
  EXPECT_EQ(news.take(1), 1U | std::uint64_t{1} << 63U);
}

}  // namespace
}  // namespace muster::ring_news_test
