// SPDX-License-Identifier: BSL-1.0
// Streams whose results are awaited, over all kinds of pool, and with each kind of source.
#include <muster/pool/async.hpp>

#include <chrono>
#include <future>
#include <numeric>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <muster/pool/pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::async_stream_test {
namespace {

namespace asio = boost::asio;
using test::quiet;
using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

int add_one(int x) { return x + 1; }
int refuse_three(int x) {
  if (x == 3) throw std::out_of_range("three");
  return x;
}
int wait_for(const event& what) {
  what.wait();
  return 7;
}

template <class F>
void run_on(asio::io_context& loop, F what) {
  asio::co_spawn(loop, what, [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  loop.run();
  loop.restart();
}

template <class Stream>
std::vector<int> all_of(asio::io_context& loop, Stream from) {
  std::vector<int> found;
  run_on(loop, [&]() -> asio::awaitable<void> {
    while (auto each = co_await from.async_next(asio::use_awaitable)) found.push_back(*each);
  });
  return found;
}

std::vector<int> up_to(int count) {
  std::vector<int> made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), 1);
  return made;
}

enum class kind { on_its_own, on_the_loop };

class AsyncStream : public testing::TestWithParam<kind> {
protected:
  [[nodiscard]] pool make(unsigned workers) {
    if (GetParam() == kind::on_the_loop) return pool(loop_, quiet(workers));
    return pool(quiet(workers));
  }

  asio::io_context loop_;
  pool pool_ = make(2);
};

INSTANTIATE_TEST_SUITE_P(Pools, AsyncStream, testing::Values(kind::on_its_own, kind::on_the_loop),
                         [](const testing::TestParamInfo<kind>& which) {
                           return which.param == kind::on_the_loop ? "OnTheLoop" : "OnItsOwn";
                         });

TEST_P(AsyncStream, GivesAllInOrderInChunksAndOneByOne) {
  const auto input = std::views::iota(0, 1000);
  EXPECT_EQ(all_of(loop_, pool_.imap(add_one, input)), up_to(1000));
  EXPECT_EQ(all_of(loop_, pool_.with({.chunk = 1}).imap(add_one, input)), up_to(1000));
  EXPECT_EQ(all_of(loop_, pool_.with({.window = 7}).imap(add_one, input)), up_to(1000));
  EXPECT_EQ(all_of(loop_, pool_.imap(add_one, std::vector<int>())), std::vector<int>());
}

TEST_P(AsyncStream, GivesAllAsTheyAreReady) {
  const auto input = std::views::iota(0, 1000);
  EXPECT_THAT(all_of(loop_, pool_.imap_unordered(add_one, input)), UnorderedElementsAreArray(up_to(1000)));
}

TEST_P(AsyncStream, OfThreadsAndInPlace) {
  const auto input = std::views::iota(0, 1000);
  const thread_pool threads({.workers = 2});
  EXPECT_EQ(all_of(loop_, threads.imap(add_one, input)), up_to(1000));
  EXPECT_THAT(all_of(loop_, threads.imap_unordered(add_one, input)), UnorderedElementsAreArray(up_to(1000)));
  const serial_pool serial;
  EXPECT_EQ(all_of(loop_, serial.imap(add_one, input)), up_to(1000));
}

TEST_P(AsyncStream, FailingElementIsThrownAtItsPlaceAndTheStreamGoesOn) {
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}}) {
    auto from = pool_.with({.chunk = chunk}).imap(refuse_three, up_to(5));
    std::vector<int> found;
    run_on(loop_, [&]() -> asio::awaitable<void> {
      for (int call = 0; call < 5; ++call) {
        std::optional<int> each = -1;
        try {
          each = co_await from.async_next(asio::use_awaitable);
        } catch (const std::out_of_range&) {
          each = 0;
        }
        found.push_back(each.value_or(-1));
      }
      EXPECT_EQ(co_await from.async_next(asio::use_awaitable), std::nullopt);
      EXPECT_EQ(co_await from.async_next(asio::use_awaitable), std::nullopt);
    });
    EXPECT_THAT(found, ElementsAre(1, 2, 0, 4, 5));
  }
}

TEST_P(AsyncStream, ResultsCanBeAwaitedBare) {
  auto from = pool_.imap(refuse_three, up_to(4)).as_results();
  int values = 0;
  int failures = 0;
  run_on(loop_, [&]() -> asio::awaitable<void> {
    while (auto each = co_await from.async_next()) ++(each->has_value() ? values : failures);
  });
  EXPECT_EQ(values, 3);
  EXPECT_EQ(failures, 1);
}

TEST_P(AsyncStream, ExceptionOfTheInputComesAtItsPlaceOnce) {
  auto input = std::views::iota(1, 10) | std::views::transform([](int x) {
                 if (x == 4) throw std::runtime_error("no more");
                 return x;
               });
  auto from = pool_.with({.chunk = 1}).imap(add_one, input);
  int values = 0;
  run_on(loop_, [&]() -> asio::awaitable<void> {
    for (int call = 0; call < 3; ++call) values += (co_await from.async_next(asio::use_awaitable)).value();
    EXPECT_THROW(co_await from.async_next(asio::use_awaitable), std::runtime_error);
    EXPECT_EQ(co_await from.async_next(asio::use_awaitable), std::nullopt);
  });
  EXPECT_EQ(values, 2 + 3 + 4);
}

TEST_P(AsyncStream, CancelledWaitEndsAtOnceAndLeavesTheElement) {
  for (const auto type :
       {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
    for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}}) {
      const event end;
      auto from = pool_.with({.chunk = chunk}).imap(wait_for, std::vector{end});
      asio::cancellation_signal signal;
      std::optional<std::error_code> found;
      from.async_next_result(asio::bind_cancellation_slot(
          signal.slot(),
          asio::bind_executor(loop_, [&](std::optional<result<int>> each) { found = each->error().code(); })));
      asio::post(loop_, [&] { signal.emit(type); });
      loop_.run();
      loop_.restart();
      EXPECT_EQ(found, errc::cancelled);
      EXPECT_FALSE(signal.slot().has_handler());
      end.set();
      EXPECT_THAT(all_of(loop_, std::move(from)), ElementsAre(7));
    }
  }
}

TEST_P(AsyncStream, MayBeDestroyedWhileItIsAwaited) {
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}}) {
    const event end;
    std::optional<int> found;
    pool_.with({.chunk = chunk})
        .imap(wait_for, std::vector{end})
        .async_next(
            asio::bind_executor(loop_, [&](const std::exception_ptr&, std::optional<int> each) { found = each; }));
    end.set();
    loop_.run();
    loop_.restart();
    EXPECT_EQ(found, 7);
  }
}

// In order and not, with chunks by time and of one, over processes and threads.
class AwaitedInput : public AsyncStream {
protected:
  template <class F>
  void in_all_ways(const F& what) {
    const thread_pool threads({.workers = 2});
    for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}}) {
      for (const bool ordered : {true, false}) {
        what(pool_.with({.chunk = chunk}), ordered);
        what(threads.with({.chunk = chunk}), ordered);
      }
    }
  }
  template <class Calls, class Xs>
  static stream<int> streamed(const Calls& calls, bool ordered, Xs&& xs) {
    return ordered ? calls.imap(add_one, std::forward<Xs>(xs)) : calls.imap_unordered(add_one, std::forward<Xs>(xs));
  }
};
INSTANTIATE_TEST_SUITE_P(Pools, AwaitedInput, testing::Values(kind::on_its_own, kind::on_the_loop),
                         [](const testing::TestParamInfo<kind>& which) {
                           return which.param == kind::on_the_loop ? "OnTheLoop" : "OnItsOwn";
                         });

TEST_P(AwaitedInput, ThatMakesWaitGivesAll) {
  in_all_ways([this](const auto& calls, bool ordered) {
    const auto input = std::views::iota(0, 20) | std::views::transform([](int x) {
                         test::work_for(std::chrono::microseconds(x % 4 * 150));
                         return x;
                       });
    EXPECT_THAT(all_of(loop_, streamed(calls, ordered, input)), UnorderedElementsAreArray(up_to(20)));
    EXPECT_THAT(all_of(loop_, streamed(calls, ordered, slow(input))), UnorderedElementsAreArray(up_to(20)));
  });
}

// The input goes on only when the loop does.
TEST_P(AwaitedInput, ThatIsSlowDoesNotHoldUpTheLoop) {
  in_all_ways([this](const auto& calls, bool ordered) {
    std::promise<void> released;
    int given = 0;
    auto blocked = [&given, go_on = released.get_future().share()]() -> std::optional<int> {
      go_on.wait();
      return given < 10 ? std::optional(given++) : std::nullopt;
    };
    asio::post(loop_, [&] { asio::post(loop_, [&] { released.set_value(); }); });
    EXPECT_THAT(all_of(loop_, streamed(calls, ordered, slow(blocked))), UnorderedElementsAreArray(up_to(10)));
  });
}

TEST_P(AwaitedInput, ThatBlocksMayBeCancelledAndLeavesItsElement) {
  in_all_ways([this](const auto& calls, bool ordered) {
    std::promise<void> released;
    int given = 0;
    auto blocked = [&given, go_on = released.get_future().share()]() -> std::optional<int> {
      go_on.wait();
      return given < 1 ? std::optional(given++) : std::nullopt;
    };
    auto from = streamed(calls, ordered, slow(blocked));
    asio::cancellation_signal signal;
    std::optional<std::error_code> found;
    from.async_next_result(asio::bind_cancellation_slot(
        signal.slot(),
        asio::bind_executor(loop_, [&](std::optional<result<int>> each) { found = each->error().code(); })));
    signal.emit(asio::cancellation_type::total);
    loop_.run();
    loop_.restart();
    EXPECT_EQ(found, errc::cancelled);
    released.set_value();
    EXPECT_THAT(all_of(loop_, std::move(from)), ElementsAre(1));
  });
}

TEST_P(AwaitedInput, ThatBlocksMayBeAwaitedByAStreamThatIsDestroyed) {
  in_all_ways([this](const auto& calls, bool ordered) {
    std::promise<void> released;
    int given = 0;
    auto blocked = [&given, go_on = released.get_future().share()]() -> std::optional<int> {
      go_on.wait();
      return given < 1 ? std::optional(given++) : std::nullopt;
    };
    std::optional<int> found;
    streamed(calls, ordered, slow(blocked))
        .async_next(
            asio::bind_executor(loop_, [&](const std::exception_ptr&, std::optional<int> each) { found = each; }));
    released.set_value();
    loop_.run();
    loop_.restart();
    EXPECT_EQ(found, 1);
  });
}

// Whoever waits sees to it that whatever was sent has ended before he asks for a result: what a worker ends is told in
// order, of tasks that somebody waits for in good time.
TEST(AwaitedStream, DoesNotAskItsInputWhileAResultIsReady) {
  const pool processes(quiet(2));
  const thread_pool threads({.workers = 2});
  asio::io_context loop;
  const auto check = [&loop](const auto& calls, bool ordered) {
    int asked = 0;
    int consumed = 0;
    int sent_before = 0;
    const auto next = [&]() -> std::optional<int> {
      EXPECT_EQ(consumed, sent_before) << "some are ready";
      return asked < 10 ? std::optional(asked++) : std::nullopt;
    };
    auto from = ordered ? calls.imap(add_one, next) : calls.imap_unordered(add_one, next);
    run_on(loop, [&]() -> asio::awaitable<void> {
      while (co_await from.async_next(asio::use_awaitable)) {
        ++consumed;
        const event may_end;
        asio::post(loop, [&] { may_end.set(); });
        co_await calls.apply_async(wait_for, may_end)(asio::use_awaitable);
        sent_before = asked;
      }
    });
    EXPECT_EQ(consumed, 10);
  };
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}}) {
    for (const bool ordered : {true, false}) {
      check(processes.with({.chunk = chunk}).on(0), ordered);
      check(threads.with({.chunk = chunk}).on(0), ordered);
    }
  }
}

TEST_P(AsyncStream, SynchronousAndAwaitedTakeTurns) {
  auto from = pool_.imap(add_one, up_to(100));
  int sum = 0;
  run_on(loop_, [&]() -> asio::awaitable<void> {
    for (int call = 0; call < 50; ++call) {
      sum += (co_await from.async_next(asio::use_awaitable)).value();
      sum += from.next().value();
    }
  });
  EXPECT_EQ(sum, 5150);
}

TEST_P(AsyncStream, SeveralAtOnceOnSeveralThreads) {
  constexpr int streams = 8;
  std::atomic<int> sum = 0;
  std::vector<stream<int>> all;
  for (int each = 0; each < streams; ++each) all.push_back(pool_.imap(add_one, up_to(300)));
  for (auto& from : all) {
    asio::co_spawn(
        loop_,
        [&]() -> asio::awaitable<void> {
          while (auto each = co_await from.async_next(asio::use_awaitable)) sum += *each;
        },
        [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  }
  std::vector<std::thread> threads;
  for (int each = 0; each < 3; ++each) threads.emplace_back([&] { loop_.run(); });
  for (auto& each : threads) each.join();
  EXPECT_EQ(sum, streams * (300 * 301 / 2 + 300));
}

TEST_P(AsyncStream, PoolThatEndsEndsTheWait) {
  const event began;
  std::optional<std::error_code> found;
  std::optional<stream<void>> from;
  {
    pool short_lived = make(1);
    from = short_lived.with({.chunk = 1}).imap(test::run_for_ever, std::vector{began});
    from->async_next_result(
        asio::bind_executor(loop_, [&](std::optional<result<std::monostate>> each) { found = each->error().code(); }));
    began.wait();
    short_lived.terminate();
  }
  loop_.run();
  EXPECT_EQ(found, errc::cancelled);
}

}  // namespace
}  // namespace muster::async_stream_test
