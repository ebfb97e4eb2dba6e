// SPDX-License-Identifier: BSL-1.0
#include "log_relay.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "refused_calls.hpp"

namespace muster::log_relay_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A sink that keeps what it is told, and can be made to wait.
class notes {
public:
  [[nodiscard]] log_sink sink() {
    return [this](log_level, std::string_view message) {
      ++calls_;
      calls_.notify_all();
      held_.wait(true);
      thread_ = std::this_thread::get_id();
      lines_.emplace_back(message);
    };
  }
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    held_.notify_all();
  }
  void wait_for_first_call() const { calls_.wait(0); }
  [[nodiscard]] int calls() const { return calls_; }
  // To be read when the relay has ended.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  [[nodiscard]] std::thread::id thread() const { return thread_; }

private:
  std::atomic<bool> held_ = false;
  std::atomic<int> calls_ = 0;
  std::thread::id thread_;
  std::vector<std::string> lines_;
};

struct LogRelay : testing::Test {
  notes told_;
  detail::log_relay relay_{told_.sink()};
};

TEST_F(LogRelay, BringsMessagesInOrderOnAThreadOfItsOwn) {
  relay_.say(log_level::warning, "one");
  relay_.say(log_level::info, "two");
  relay_.end();
  EXPECT_THAT(told_.lines(), ElementsAre("one", "two"));
  EXPECT_NE(told_.thread(), std::this_thread::get_id());
}

TEST_F(LogRelay, WhoLogsDoesNotWaitForASinkThatWaits) {
  told_.hold();
  relay_.say(log_level::error, "one");
  told_.wait_for_first_call();
  relay_.say(log_level::error, "two");
  EXPECT_EQ(told_.calls(), 1);
  told_.release();
  relay_.end();
  EXPECT_THAT(told_.lines(), ElementsAre("one", "two"));
}

TEST_F(LogRelay, SaysHowManyMessagesWereDroppedWhileTheSinkWaited) {
  constexpr std::size_t too_many = 7;
  told_.hold();
  relay_.say(log_level::error, "first");
  told_.wait_for_first_call();
  for (std::size_t count = 0; count < detail::log_relay::most_waiting + too_many; ++count) {
    relay_.say(log_level::error, "more");
  }
  told_.release();
  relay_.end();
  ASSERT_EQ(told_.lines().size(), 1 + detail::log_relay::most_waiting + 1);
  EXPECT_THAT(told_.lines().back(), HasSubstr("7 messages were dropped"));
}

TEST_F(LogRelay, WithoutAThreadTheSinkIsCalledByWhoLogs) {
  const test::refused_calls scope("pthread_create", EAGAIN, 1);
  relay_.say(log_level::error, "one");
  EXPECT_THAT(told_.lines(), ElementsAre("one"));
  EXPECT_EQ(told_.thread(), std::this_thread::get_id());
  relay_.say(log_level::error, "two");
  relay_.end();
  EXPECT_THAT(told_.lines(), ElementsAre("one", "two"));
  EXPECT_NE(told_.thread(), std::this_thread::get_id());
}

TEST_F(LogRelay, OnceItHasEndedItCallsNobody) {
  relay_.end();
  relay_.say(log_level::error, "late");
  relay_.end();
  EXPECT_EQ(told_.calls(), 0);
}

}  // namespace
}  // namespace muster::log_relay_test
