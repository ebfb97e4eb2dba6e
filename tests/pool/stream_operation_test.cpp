// SPDX-License-Identifier: BSL-1.0
// The asynchronous wait for a stream's next result, over a source that does what the test says.
#include <muster/pool/detail/stream_operation.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include <muster/pool/async.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/thread_pool.hpp>

namespace muster::detail::stream_operation_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// What the source is told and asked.
struct script {
  std::deque<std::optional<std::chrono::nanoseconds>> patience;  // of the next looks; nothing behind them
  std::function<void()> when_asked = [] {};                      // for an element
  bool ready = false;
  std::function<void()> then;
  int asked = 0;
};

class scripted_source final : public stream_source<int> {
public:
  scripted_source(script& what, std::shared_ptr<future_home> home) : script_(what), home_(std::move(home)) {}

  std::optional<result<int>> next() override { return 7; }
  std::optional<std::chrono::nanoseconds> when_ready(std::function<void()> then) override {
    script_.then = std::move(then);
    if (script_.ready) script_.then();
    if (script_.patience.empty()) return std::nullopt;
    const auto patience = script_.patience.front();
    script_.patience.pop_front();
    return patience;
  }
  void pull_one() override {
    ++script_.asked;
    script_.when_asked();
  }
  [[nodiscard]] std::shared_ptr<future_home> home() const override { return home_; }

private:
  script& script_;
  const std::shared_ptr<future_home> home_;
};

class StreamOperation : public testing::Test {
protected:
  void begin() {
    from_->async_next_result(asio::bind_cancellation_slot(
        signal_.slot(), asio::bind_executor(loop_, [this](std::optional<result<int>> found) {
          ++calls_;
          if (found->has_value()) {
            value_ = **found;
          } else {
            failure_ = found->error().code();
          }
        })));
  }
  void cancel() { signal_.emit(asio::cancellation_type::total); }
  // Until there is nothing to be done.
  void run() {
    loop_.run();
    loop_.restart();
  }

  std::optional<thread_pool> pool_{std::in_place, thread_pool_options{.workers = 1}};
  script script_;
  asio::io_context loop_;
  asio::cancellation_signal signal_;
  std::optional<stream<int>> from_{
      std::make_unique<scripted_source>(script_, future_access::home_of(pool_->apply_async([] {})))};
  int calls_ = 0;
  int value_ = 0;
  std::optional<std::error_code> failure_;
};

TEST_F(StreamOperation, AResultThatComesInTimeIsHandedOutAndTheInputIsNotAsked) {
  script_.patience = {100h};
  begin();
  loop_.poll();
  EXPECT_EQ(calls_, 0);
  script_.then();
  run();
  EXPECT_EQ(value_, 7);
  EXPECT_EQ(script_.asked, 0);
}

TEST_F(StreamOperation, TheInputIsAskedInTheCallWhereItIsWantedAtOnce) {
  script_.patience = {0ns, 0ns};
  begin();
  EXPECT_EQ(script_.asked, 2);
  script_.then();
  run();
  EXPECT_EQ(value_, 7);
}

TEST_F(StreamOperation, TheInputIsAskedWhereTheHandlerRunsWhenPatienceIsOver) {
  script_.patience = {1ms, 1ms};
  script_.when_asked = [this, here = std::this_thread::get_id()] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    script_.ready = script_.asked == 2;
  };
  begin();
  EXPECT_EQ(script_.asked, 0);
  run();
  EXPECT_EQ(script_.asked, 2);
  EXPECT_EQ(value_, 7);
  EXPECT_EQ(calls_, 1);
}

TEST_F(StreamOperation, WithoutAnExecutorTheInputIsAskedOnTheCallbackThread) {
  script_.patience = {1ms};
  std::thread::id asked;
  script_.when_asked = [&] {
    asked = std::this_thread::get_id();
    script_.ready = true;
  };
  std::promise<std::thread::id> called;
  from_->async_next_result([&](const std::optional<result<int>>&) { called.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(called.get_future().get(), asked);
  EXPECT_NE(asked, std::this_thread::get_id());
}

TEST_F(StreamOperation, AnExecutorOfAnyTypeWillDo) {
  script_.patience = {1ms};
  script_.when_asked = [this] { script_.ready = true; };
  from_->async_next_result(asio::bind_executor(asio::any_completion_executor(loop_.get_executor()),
                                               [this](const std::optional<result<int>>&) { ++calls_; }));
  run();
  EXPECT_EQ(calls_, 1);
}

TEST_F(StreamOperation, CancelledWhileItWaitsItEndsAtOnce) {
  script_.patience = {100h};
  begin();
  cancel();
  run();
  EXPECT_EQ(failure_, errc::cancelled);
  script_.then();  // too late
  run();
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(script_.asked, 0);
}

TEST_F(StreamOperation, CancelledWhileTheInputIsAskedItEndsBehindThat) {
  for (const auto patience : {0ns, 1'000'000ns}) {  // in the call, and later
    script_ = script();
    script_.patience = {patience, 0ns};
    calls_ = 0;
    failure_.reset();
    script_.when_asked = [this] {
      cancel();
      loop_.poll();
      EXPECT_EQ(calls_, 0) << "the source belongs to whoever asks";
    };
    begin();
    run();
    EXPECT_EQ(calls_, 1);
    EXPECT_EQ(failure_, errc::cancelled);
    EXPECT_EQ(script_.asked, 1) << "and no more";
  }
}

TEST_F(StreamOperation, AResultThatComesWhileTheInputIsAskedIsHandedOutBehindThat) {
  script_.patience = {1ms, 0ns};
  script_.when_asked = [this] {
    script_.then();
    loop_.poll();
    EXPECT_EQ(calls_, 0);
  };
  begin();
  run();
  EXPECT_EQ(value_, 7);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(script_.asked, 1);
}

TEST_F(StreamOperation, TheStreamMayBeDestroyedWhileItWaits) {
  script_.patience = {100h};
  begin();
  from_.reset();
  std::exchange(script_.then, nullptr)();
  run();
  EXPECT_EQ(value_, 7);
}

TEST_F(StreamOperation, TheStreamMayBeDestroyedWhileTheInputIsAsked) {
  script_.patience = {1ms};
  script_.when_asked = [this] {
    from_.reset();
    script_.ready = true;
  };
  begin();
  run();
  EXPECT_EQ(value_, 7);
}

TEST_F(StreamOperation, WhenThePoolIsGoneItWaitsForTheResultAlone) {
  script_.patience = {1ms};
  pool_.reset();
  begin();
  script_.then();
  run();
  EXPECT_EQ(value_, 7);
  EXPECT_EQ(script_.asked, 0);
}

}  // namespace
}  // namespace muster::detail::stream_operation_test
