// SPDX-License-Identifier: BSL-1.0
#include "channel.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <muster/base/memfd.hpp>

namespace muster::detail::channel_test {
namespace {

TEST(Channel, MessagesKeepKindBodyAndBoundaries) {
  const auto [one, other] = make_channel();
  send_message(one.get(), message_kind::hello, body_of(std::string("first")));
  send_message(one.get(), message_kind::ready, {});
  const auto first = receive_message(other.get(), wait_mode::block);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, message_kind::hello);
  EXPECT_EQ(first->read<std::string>(), "first");
  const auto second = receive_message(other.get(), wait_mode::block);
  EXPECT_EQ(second->kind, message_kind::ready);
  EXPECT_TRUE(second->body.empty());
}

TEST(Channel, PollingFindsNothingYet) {
  const auto [one, other] = make_channel();
  EXPECT_FALSE(receive_message(other.get(), wait_mode::poll));
}

TEST(Channel, APeerThatIsGoneIsSeen) {
  auto [one, other] = make_channel();
  one.reset();
  EXPECT_EQ(receive_message(other.get(), wait_mode::block)->kind, message_kind::closed);
  EXPECT_THROW(send_message(other.get(), message_kind::ready, {}), error);
}

TEST(Channel, LastWordsOfADeadPeerAreStillRead) {
  auto [one, other] = make_channel();
  send_message(one.get(), message_kind::failure, body_of(error_info(errc::start_failed, "why")));
  one.reset();
  EXPECT_EQ(receive_message(other.get(), wait_mode::poll)->read<error_info>().message(), "why");
  EXPECT_EQ(receive_message(other.get(), wait_mode::poll)->kind, message_kind::closed);
}

TEST(Channel, LastWordsOfAPeerThatWentWithoutReadingAllAreStillRead) {
  auto [one, other] = make_channel();
  send_message(one.get(), message_kind::failure, body_of(error_info(errc::start_failed, "why")));
  send_message(other.get(), message_kind::ready, {});
  one.reset();
  EXPECT_EQ(receive_message(other.get(), wait_mode::block)->read<error_info>().message(), "why");
  EXPECT_EQ(receive_message(other.get(), wait_mode::block)->kind, message_kind::closed);
}

TEST(Channel, DescriptorsTravelAndAreClosedOnExec) {
  const auto [one, other] = make_channel();
  const auto file = make_memfd("test", 12345);
  const std::array sent = {file.get(), file.get()};
  send_message(one.get(), message_kind::welcome, {}, sent);
  const auto received = receive_message(other.get(), wait_mode::block);
  ASSERT_EQ(received->descriptors.size(), 2U);
  EXPECT_EQ(::lseek(received->descriptors[1].get(), 0, SEEK_END), 12345);
  EXPECT_NE(::fcntl(received->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Channel, LargeMessagesTravel) {
  const auto [one, other] = make_channel();
  const std::string large(100000, 'x');
  send_message(one.get(), message_kind::hello, body_of(large));
  EXPECT_EQ(receive_message(other.get(), wait_mode::block)->read<std::string>(), large);
}

TEST(Channel, AnErrorThatIsTooLongForAMessageIsCut) {
  const auto [one, other] = make_channel();
  const error_info why(errc::start_failed, "there is no model " + std::string(1'000'000, 'x'));
  send_message(one.get(), message_kind::failure, body_of(why));
  const auto heard = receive_message(other.get(), wait_mode::block)->read<error_info>();
  EXPECT_EQ(heard.code(), errc::start_failed);
  EXPECT_TRUE(heard.message().starts_with("there is no model xxx"));
  EXPECT_TRUE(heard.message().ends_with("more bytes)"));
}

TEST(Channel, NonsenseIsAnError) {
  const auto [one, other] = make_channel();
  ASSERT_EQ(::write(one.get(), "ab", 2), 2);
  EXPECT_THROW(static_cast<void>(receive_message(other.get(), wait_mode::block)), error);
}

TEST(Channel, ABodyOfAnotherTypeIsAnError) {
  const auto [one, other] = make_channel();
  send_message(one.get(), message_kind::welcome, body_of(std::uint8_t{1}));
  EXPECT_THROW(static_cast<void>(receive_message(other.get(), wait_mode::block)->read<welcome_message>()), error);
}

}  // namespace
}  // namespace muster::detail::channel_test
