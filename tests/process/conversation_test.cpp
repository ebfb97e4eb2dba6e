// SPDX-License-Identifier: BSL-1.0
#include "conversation.hpp"

#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/memfd.hpp>

#include "open_files.hpp"

namespace muster::detail::conversation_test {
namespace {

using namespace std::chrono_literals;

class Conversation : public testing::Test {
protected:
  // As the host: what was asked next.
  descriptor_request hear() { return receive_message(host_.get(), wait_mode::block)->read<descriptor_request>(); }
  void answer(request_number which, bool has_descriptor = false, std::span<const int> descriptors = {}) {
    send_message(host_.get(), message_kind::answer,
                 body_of(descriptor_answer{.number = which, .has_descriptor = has_descriptor, .why = {}}), descriptors);
  }
  std::thread asking(std::uint64_t name, std::uint64_t& answered) {
    return std::thread([this, name, &answered] {
      descriptor_request asked{.name = name};
      const auto answer = talk_.ask(message_kind::fetch, asked, {}, deadline::never());
      answered = answer->read<descriptor_answer>().number == asked.number ? name : 0;
    });
  }

  std::pair<unique_fd, unique_fd> ends_ = make_channel();
  unique_fd& host_ = ends_.first;
  conversation talk_{ends_.second.get()};
};

TEST_F(Conversation, EveryThreadGetsTheAnswerToItsOwnQuestion) {
  constexpr std::size_t count = 8;
  std::array<std::uint64_t, count> answered{};
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < count; ++index) threads.push_back(asking(index + 1, answered[index]));
  std::vector<request_number> asked;
  for (std::size_t index = 0; index < count; ++index) asked.push_back(hear().number);
  for (auto each = asked.rbegin(); each != asked.rend(); ++each) answer(*each);  // the last first
  for (auto& each : threads) each.join();
  for (std::size_t index = 0; index < count; ++index) EXPECT_EQ(answered[index], index + 1);
}

TEST_F(Conversation, WhoWaitsForAWordAndWhoWaitsForAnAnswerReadForEachOther) {
  for (const bool word_first : {true, false}) {
    std::uint64_t answered = 0;
    std::optional<message> word;
    std::thread stands_by([&] { word = talk_.hear_word(deadline::never()); });
    auto asks = asking(7, answered);
    const auto asked = hear().number;
    if (word_first) send_message(host_.get(), message_kind::begin, {});
    answer(asked);
    if (!word_first) send_message(host_.get(), message_kind::begin, {});
    asks.join();
    stands_by.join();
    EXPECT_EQ(answered, 7U);
    EXPECT_EQ(word->kind, message_kind::begin);
  }
}

TEST_F(Conversation, AWordThatComesWhileSomebodyAsksIsKept) {
  std::uint64_t answered = 0;
  auto asks = asking(7, answered);
  const auto asked = hear().number;
  send_message(host_.get(), message_kind::begin, {});
  answer(asked);
  asks.join();
  EXPECT_EQ(talk_.hear_word(deadline::after(0s))->kind, message_kind::begin);
  EXPECT_FALSE(talk_.hear_word(deadline::after(1ms)));
}

TEST_F(Conversation, AnAnswerThatComesTooLateIsDroppedWithItsDescriptor) {
  constexpr const char* label = "conversation-test";
  descriptor_request asked{.name = 1};
  EXPECT_FALSE(talk_.ask(message_kind::fetch, asked, {}, deadline::after(1ms)));
  {
    const auto file = make_memfd(label, 10);
    answer(hear().number, true, std::array{file.get()});
  }
  std::uint64_t answered = 0;
  auto asks = asking(7, answered);
  answer(hear().number);
  asks.join();
  EXPECT_EQ(answered, 7U);
  EXPECT_EQ(test::count_open(label), 0U);
}

TEST_F(Conversation, WhatHasComeIsFoundAlsoWhenTheTimeIsOver) {
  send_message(host_.get(), message_kind::begin, {});
  EXPECT_EQ(talk_.hear_word(deadline::after(0s))->kind, message_kind::begin);
  EXPECT_FALSE(talk_.hear_word(deadline::after(0s)));
}

TEST_F(Conversation, WhatIsTakenBackAtItsDeadlineIsAnsweredAllTheSame) {
  descriptor_request asked{.name = 1};
  std::optional<message> heard;
  std::thread asks([&] { heard = talk_.ask_in_time(message_kind::fetch, asked, deadline::after(0s), 1h); });
  const auto number = hear().number;
  const auto taken_back = receive_message(host_.get(), wait_mode::block);
  EXPECT_EQ(taken_back->kind, message_kind::forget);
  EXPECT_EQ(taken_back->read<descriptor_request>().number, number);
  answer(number);
  asks.join();
  EXPECT_EQ(heard->read<descriptor_answer>().number, number);
}

TEST_F(Conversation, OfAHostThatIsStoppedNobodyWaitsForTheLastWordForEver) {
  descriptor_request asked{.name = 1};
  EXPECT_FALSE(talk_.ask_in_time(message_kind::fetch, asked, deadline::after(0s), 1ms));
  answer(asked.number);
  EXPECT_FALSE(talk_.hear_word(deadline::after(0s))) << "read, and dropped";
  EXPECT_FALSE(receive_message(ends_.second.get(), wait_mode::poll));
}

TEST_F(Conversation, WhoeverWaitsAndWhoeverAsksLaterHearsThatTheHostIsGone) {
  std::optional<message> word;
  std::thread stands_by([&] { word = talk_.hear_word(deadline::never()); });
  descriptor_request asked{.name = 1};
  std::optional<message> heard;
  std::thread asks([&] { heard = talk_.ask(message_kind::fetch, asked, {}, deadline::never()); });
  static_cast<void>(hear());
  host_.reset();
  stands_by.join();
  asks.join();
  EXPECT_EQ(word->kind, message_kind::closed);
  EXPECT_EQ(heard->kind, message_kind::closed);
  EXPECT_THROW(static_cast<void>(talk_.ask(message_kind::fetch, asked, {}, deadline::never())), error);
}

TEST_F(Conversation, NonsenseIsAsGoodAsGone) {
  send_message(host_.get(), message_kind::answer, std::vector<std::byte>(3));
  EXPECT_EQ(talk_.hear_word(deadline::never())->kind, message_kind::closed);
}

TEST_F(Conversation, WritesNothingToAndReadsNothingFromAnotherSocketThatHasGotItsNumber) {
  const auto others = make_channel();
  send_message(others.first.get(), message_kind::begin, {});
  ASSERT_EQ(::dup2(others.second.get(), ends_.second.get()), ends_.second.get());
  EXPECT_THROW(talk_.say(message_kind::leave), error);
  descriptor_request asked{.name = 7};
  EXPECT_THROW(static_cast<void>(talk_.ask(message_kind::fetch, asked, {}, deadline::never())), error);
  EXPECT_EQ(talk_.hear_word(deadline::never())->kind, message_kind::closed);
  EXPECT_FALSE(receive_message(others.first.get(), wait_mode::poll)) << "it has written";
  EXPECT_EQ(receive_message(others.second.get(), wait_mode::poll)->kind, message_kind::begin) << "it has read";
}

}  // namespace
}  // namespace muster::detail::conversation_test
