// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/attachment_list.hpp>

#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>

namespace muster::attachment_list_test {
namespace {

class AttachmentList : public testing::Test {
protected:
  [[nodiscard]] attachment_list list_of(std::size_t count) {
    attachment_list made(count);
    for (std::size_t index = 0; index < count; ++index) made.set(index, domain_.blocks().allocate_shared(100));
    return made;
  }
  [[nodiscard]] std::size_t live_blocks() { return domain_.blocks().read_statistics().live_blocks; }

  domain domain_{{.arena_bytes = std::size_t{16} << 20U, .max_participants = 2, .max_blocks = 64}};
};

TEST_F(AttachmentList, IsOfTheSizeOfAPointer) { EXPECT_EQ(sizeof(attachment_list), sizeof(void*)); }

TEST_F(AttachmentList, KeepsAsManyBlocksAsItHasRoomForAndLetsThemGo) {
  for (const std::size_t count : {0U, 1U, 2U, 17U}) {
    {
      const auto list = list_of(count);
      EXPECT_EQ(list.empty(), count == 0);
      EXPECT_EQ(live_blocks(), count);
    }
    EXPECT_EQ(live_blocks(), 0U);
  }
}

TEST_F(AttachmentList, WhatIsMovedGoesAlongAndWhatIsReplacedIsLetGo) {
  auto three = list_of(3);
  auto one = list_of(1);
  three = std::move(one);
  EXPECT_EQ(live_blocks(), 1U);
  EXPECT_TRUE(one.empty());
  const auto last = std::move(three);
  EXPECT_EQ(live_blocks(), 1U);
}

TEST_F(AttachmentList, RoomThatWasNotFilledIsNothing) {
  {
    attachment_list several(4);
    several.set(2, domain_.blocks().allocate_shared(100));
  }
  {
    const attachment_list one(1);
    EXPECT_TRUE(one.empty());
  }
  EXPECT_EQ(live_blocks(), 0U);
}

}  // namespace
}  // namespace muster::attachment_list_test
