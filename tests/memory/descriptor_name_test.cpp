// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/descriptor_name.hpp>

#include <gtest/gtest.h>

namespace muster::descriptor_name_test {
namespace {

TEST(DescriptorName, HasAllItsParts) {
  const descriptor_name name(participant_id(0xabcd), 0x54321, 0x7654321);
  EXPECT_EQ(name.depositor(), participant_id(0xabcd));
  EXPECT_EQ(name.incarnation(), 0x54321U);
  EXPECT_EQ(name.number(), 0x7654321U);
  EXPECT_EQ(descriptor_name(name.bits()), name);
}

TEST(DescriptorName, IncarnationsAndNumbersThatAreTooLongTouchNoOtherPart) {
  const descriptor_name name(participant_id(7), 0xfff00001, 0xf0000002);
  EXPECT_EQ(name, descriptor_name(participant_id(7), 1, 2));
  EXPECT_TRUE(name.is_of(0xfff00001));
  EXPECT_TRUE(name.is_of(1));
  EXPECT_FALSE(name.is_of(2));
}

TEST(DescriptorName, ComesInTheOrderOfDepositors) {
  const descriptor_name last_of_one(participant_id(2), 3, descriptor_name::most_number);
  const descriptor_name first_of_next(participant_id(2), 4, 0);
  EXPECT_LT(last_of_one, first_of_next);
  EXPECT_LT(first_of_next, descriptor_name(participant_id(3), 1, 0));
  EXPECT_LT(descriptor_name(), descriptor_name(participant_id::host, 1, 0));
}

}  // namespace
}  // namespace muster::descriptor_name_test
