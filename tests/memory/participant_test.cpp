// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/participant.hpp>

#include <array>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>

namespace muster::participant_test {
namespace {

TEST(ParticipantTable, GivesEveryProcessItsOwnNumber) {
  std::array<participant_entry, 4> entries{};
  participant_table table(entries, 100);
  const auto one = table.enrol();
  const auto two = table.enrol();
  EXPECT_NE(one, two);
  EXPECT_NE(one, participant_id::host);
  EXPECT_EQ(table.count(), 3U);
}

TEST(ParticipantTable, PublishesIncarnationAndProcess) {
  std::array<participant_entry, 4> entries{};
  participant_table table(entries, 100);
  const auto first = table.enrol();
  table.publish(first, 200);
  table.retire(first);
  EXPECT_EQ(entries[index_of(first)].word, 0U);
  const auto again = table.enrol();
  ASSERT_EQ(again, first);
  table.publish(again, 300);
  EXPECT_EQ(entries[index_of(again)].word, (std::uint64_t{2} << 32U | 300U));
}

TEST(ParticipantTable, WhenAllNumbersAreTakenTheErrorSaysHowMany) {
  std::array<participant_entry, 3> entries{};
  participant_table table(entries, 100);
  static_cast<void>(table.enrol());
  try {
    static_cast<void>(table.enrol());
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::out_of_memory);
    EXPECT_NE(std::string(failure.what()).find("2 participants"), std::string::npos);
  }
}

}  // namespace
}  // namespace muster::participant_test
