// SPDX-License-Identifier: BSL-1.0
// Futures as asynchronous operations: with each kind of token, on each kind of executor, and cancelled in each way.
#include <muster/pool/async.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <muster/async/when_all.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "error_code.hpp"
#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::async_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::code_of;
using test::quiet;
using test::run_for_ever;
using test::run_until;
using test::run_until_asked;
using testing::ElementsAre;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }
std::string fail(const std::string& why) { throw std::out_of_range(why); }

// Runs the loop on so many threads until it is destroyed.
class running {
public:
  explicit running(asio::io_context& loop, unsigned threads = 1) : work_(loop.get_executor()) {
    for (unsigned each = 0; each < threads; ++each) threads_.emplace_back([&loop] { loop.run(); });
  }
  running(const running&) = delete;
  running& operator=(const running&) = delete;
  ~running() {
    work_.reset();
    for (auto& each : threads_) each.join();
  }

private:
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
};

enum class kind { on_its_own, on_the_loop };

pool make_pool(kind which, asio::io_context& loop, unsigned workers) {
  if (which == kind::on_the_loop) return pool(loop, quiet(workers));
  return pool(quiet(workers));
}

// Over both kinds of pool: those that have the program's loop take part, and others.
class Async : public testing::TestWithParam<kind> {
protected:
  [[nodiscard]] pool make(unsigned workers) { return make_pool(GetParam(), loop_, workers); }

  asio::io_context loop_;
  pool pool_ = make(2);
};

std::string name_of(const testing::TestParamInfo<kind>& which) {
  return which.param == kind::on_the_loop ? "OnTheLoop" : "OnItsOwn";
}

INSTANTIATE_TEST_SUITE_P(Pools, Async, testing::Values(kind::on_its_own, kind::on_the_loop), name_of);

TEST_P(Async, CallbackGetsTheValueOnItsExecutorAndNotInTheCall) {
  std::optional<int> found;
  std::thread::id where;
  pool_.apply_async(add, 1, 2)(asio::bind_executor(loop_, [&](const std::exception_ptr& failure, int sum) {
    EXPECT_EQ(failure, nullptr);
    found = sum;
    where = std::this_thread::get_id();
  }));
  EXPECT_FALSE(found);
  loop_.run();  // the wait is work
  EXPECT_EQ(found, 3);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_P(Async, CallbackOfWhatIsDoneAlreadyIsNotCalledInTheCall) {
  auto done = pool_.apply_async(add, 1, 2);
  done.wait();
  bool called = false;
  done(asio::bind_executor(loop_, [&](const std::exception_ptr&, int) { called = true; }));
  EXPECT_FALSE(called);
  EXPECT_FALSE(done.valid());
  loop_.run();
  EXPECT_TRUE(called);
}

TEST(AsyncCallback, WithoutAnExecutorItIsCalledOnThePoolsThread) {
  const event called;
  std::thread::id where;
  std::thread::id other;
  const event both;
  const pool pool_(quiet(2));
  pool_.apply_async(add, 1, 2)([&](const std::exception_ptr&, int) {
    where = std::this_thread::get_id();
    called.set();
  });
  pool_.apply_async(add, 1, 2).on_complete(
      [&](int) {
        other = std::this_thread::get_id();
        both.set();
      },
      [](const error_info&) {});
  called.wait();
  both.wait();
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_EQ(where, other);
}

TEST_P(Async, FailureIsTheExceptionThatGetWouldThrow) {
  std::string found;
  pool_.apply_async(fail, "too far")(asio::bind_executor(loop_, [&](const std::exception_ptr& failure, std::string) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::out_of_range& thrown) {
      found = thrown.what();
    }
  }));
  loop_.run();
  EXPECT_THAT(found, HasSubstr("too far"));
}

TEST_P(Async, HandlersMayBeMoveOnlyAndMayOnlyBeCalledOnce) {
  struct handler {
    using executor_type = asio::io_context::executor_type;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }
    void operator()(const std::exception_ptr& /*none*/, int sum) && { *found = sum + *room; }

    executor_type executor;
    std::unique_ptr<int> room;
    int* found;
  };
  int found = 0;
  pool_.apply_async(add, 1, 2)(handler{loop_.get_executor(), std::make_unique<int>(10), &found});
  loop_.run();
  EXPECT_EQ(found, 13);
}

TEST_P(Async, TypeErasedHandlerIsCalledOnItsExecutor) {
  std::optional<int> found;
  std::thread::id where;
  pool_.apply_async(add, 1, 2)(asio::any_completion_handler<void(std::exception_ptr, int)>(
      asio::bind_executor(loop_, [&](const std::exception_ptr&, int sum) {
        found = sum;
        where = std::this_thread::get_id();
      })));
  loop_.run();
  EXPECT_EQ(found, 3);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_P(Async, UseFutureGivesAStdFuture) {
  const running scope(loop_);
  EXPECT_EQ(pool_.apply_async(add, 1, 2)(asio::use_future).get(), 3);
  EXPECT_THROW(pool_.apply_async(fail, "x")(asio::use_future).get(), std::out_of_range);
  pool_.apply_async([] {})(asio::use_future).get();
}

TEST_P(Async, CoroutineAwaitsValuesFailuresAndNothing) {
  asio::co_spawn(
      loop_,
      [&]() -> asio::awaitable<void> {
        EXPECT_EQ(co_await pool_.apply_async(add, 1, 2)(asio::use_awaitable), 3);
        co_await pool_.apply_async([] {})(asio::use_awaitable);
        EXPECT_THROW(co_await pool_.apply_async(fail, "x")(asio::use_awaitable), std::out_of_range);
        const auto [failure, text] = co_await pool_.apply_async(fail, "x")(asio::as_tuple(asio::use_awaitable));
        EXPECT_NE(failure, nullptr);
        EXPECT_EQ(text, "");
        const auto all = co_await pool_.map_async([](int x) { return x + 1; }, std::vector(3, 1))(asio::use_awaitable);
        EXPECT_EQ(all, std::vector(3, 2));
      },
      [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  loop_.run();
}

TEST_P(Async, ResultCanBeAwaitedBare) {
  asio::co_spawn(
      loop_,
      [&]() -> asio::awaitable<void> {
        const muster::result<int> sum = co_await pool_.apply_async(add, 1, 2).as_result();
        EXPECT_EQ(sum.value(), 3);
        const muster::result<std::string> failed = co_await pool_.apply_async(fail, "x").as_result();
        EXPECT_FALSE(failed.has_value());
        EXPECT_THAT(failed.error().describe(), HasSubstr("x"));
        const muster::result<void> nothing = co_await pool_.apply_async([] {}).as_result();
        EXPECT_TRUE(nothing.has_value());
      },
      [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  loop_.run();
}

TEST_P(Async, ResultTakesAnyToken) {
  {
    const running scope(loop_);
    EXPECT_EQ(pool_.apply_async(add, 1, 2).as_result(asio::use_future).get().value(), 3);
  }
  loop_.restart();
  std::optional<int> found;
  pool_.apply_async(add, 1, 2).as_result(
      asio::bind_executor(loop_, [&](const muster::result<int>& sum) { found = sum.value(); }));
  loop_.run();
  EXPECT_EQ(found, 3);
}

TEST_P(Async, WhatIsMadeInThisProcessIsAwaitedToo) {
  std::vector<future<int>> several;
  for (int each = 0; each < 3; ++each) several.push_back(pool_.apply_async(add, each, 1));
  const thread_pool threads({.workers = 1});
  asio::co_spawn(
      loop_,
      [&]() -> asio::awaitable<void> {
        EXPECT_EQ(co_await pool_.apply_async(add, 1, 2).then([](int sum) { return 2 * sum; })(asio::use_awaitable), 6);
        const auto sums = co_await when_all(std::move(several))(asio::use_awaitable);
        EXPECT_THAT(sums, ElementsAre(1, 2, 3));
        EXPECT_EQ(co_await threads.apply_async(add, 1, 2)(asio::use_awaitable), 3);
        co_await when_all(std::vector<future<int>>())(asio::use_awaitable);
      },
      [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  loop_.run();
}

TEST_P(Async, ManyCoroutinesOnSeveralThreadsAndAStrandLoseNothing) {
  constexpr int coroutines = 100;
  constexpr int calls = 20;
  const auto strand = asio::make_strand(loop_);
  int sum = 0;  // only touched on the strand
  for (int each = 0; each < coroutines; ++each) {
    asio::co_spawn(
        strand,
        [&]() -> asio::awaitable<void> {
          for (int call = 0; call < calls; ++call) sum += co_await pool_.apply_async(add, 1, 0)(asio::use_awaitable);
        },
        asio::detached);
  }
  std::vector<std::thread> threads;
  for (int each = 0; each < 3; ++each) threads.emplace_back([&] { loop_.run(); });
  for (auto& each : threads) each.join();
  EXPECT_EQ(sum, coroutines * calls);
}

// An allocator that counts.
template <class T>
struct counting_allocator {
  using value_type = T;
  explicit counting_allocator(std::atomic<int>& count) : counted(&count) {}
  template <class U>
  counting_allocator(const counting_allocator<U>& other) : counted(other.counted) {}  // NOLINT: as allocators do
  T* allocate(std::size_t count) {
    ++*counted;
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* memory, std::size_t count) { std::allocator<T>().deallocate(memory, count); }
  friend bool operator==(const counting_allocator&, const counting_allocator&) = default;
  std::atomic<int>* counted;
};

TEST_P(Async, CompletionIsAllocatedByTheHandlersAllocator) {
  std::atomic<int> count = 0;
  asio::io_context other;  // what ends on the pool's own loop is allocated nowhere
  pool_.apply_async(add, 1, 2)(asio::bind_executor(
      other, asio::bind_allocator(counting_allocator<void>(count), [](const std::exception_ptr&, int) {})));
  other.run();
  EXPECT_GT(count, 0);
}

TEST_P(Async, WhenThePoolGoesAwayWaitsEndWithCancelled) {
  const event began;
  std::optional<errc> found;
  {
    pool short_lived = make(1);
    short_lived.apply_async(run_for_ever, began)(
        asio::bind_executor(loop_, [&](const std::exception_ptr& failure) { found = code_of(failure); }));
    began.wait();
    short_lived.terminate();
  }
  loop_.run();
  EXPECT_EQ(found, errc::cancelled);
}

TEST_P(Async, FutureThatOutlivesItsPoolIsStillAwaited) {
  future<int> left;
  {
    const pool short_lived = make(1);
    left = short_lived.apply_async(add, 1, 2);
    left.wait();
  }
  const auto here = std::this_thread::get_id();
  const event called;
  left([here, called](const std::exception_ptr& failure, int) {  // which may be at it when this returns
    EXPECT_EQ(failure, nullptr);
    EXPECT_NE(std::this_thread::get_id(), here);
    called.set();
  });
  called.wait();
}

TEST_P(Async, UsedUpFutureIsRefusedWithTheReason) {
  future<int> none;
  EXPECT_THROW(none(asio::use_future), error);
  EXPECT_THROW(static_cast<void>(none.as_result(asio::use_future)), error);
}

// ---- cancelling

class AsyncCancel : public Async {
protected:
  // Waits for `what`, emits `type` once it has begun, and returns how it ended.
  template <class R>
  result<R> cancelled(future<R> what, const event& began, asio::cancellation_type type) {
    std::optional<result<R>> found;
    asio::cancellation_signal signal;
    what.as_result(asio::bind_cancellation_slot(
        signal.slot(), asio::bind_executor(loop_, [&](result<R> how) { found = std::move(how); })));
    began.wait();
    asio::post(loop_, [&] { signal.emit(type); });
    loop_.run();
    loop_.restart();
    EXPECT_FALSE(signal.slot().has_handler());
    return std::move(*found);
  }

  const event began_;
  const event set_ = [] {
    const event made;
    made.set();
    return made;
  }();
};

INSTANTIATE_TEST_SUITE_P(Pools, AsyncCancel, testing::Values(kind::on_its_own, kind::on_the_loop), name_of);

TEST_P(AsyncCancel, WhatNobodyHasBegunIsWithdrawnByAnyType) {
  const pool busy = make(1);
  const event end;
  auto first = busy.apply_async(run_until, began_, end);
  began_.wait();
  for (const auto type :
       {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
    EXPECT_EQ(cancelled(busy.apply_async(add, 1, 2), set_, type).error(), errc::cancelled);
  }
  end.set();
  EXPECT_FALSE(first.get());
  EXPECT_EQ(busy.stats().workers.cancelled, 0U);
}

TEST_P(AsyncCancel, TotalLeavesWhatHasBegunAlone) {
  const event end;
  std::optional<bool> found;
  asio::cancellation_signal signal;
  pool_.apply_async(run_until, began_, end)(asio::bind_cancellation_slot(
      signal.slot(), asio::bind_executor(loop_, [&](const std::exception_ptr&, bool value) { found = value; })));
  began_.wait();
  asio::post(loop_, [&] {
    signal.emit(asio::cancellation_type::total);
    end.set();
  });
  loop_.run();
  EXPECT_EQ(found, false);
}

TEST_P(AsyncCancel, PartialAsksWhatHasBegunToStop) {
  EXPECT_EQ(cancelled(pool_.apply_async(run_until_asked, began_), began_, asio::cancellation_type::partial).value(), 7);
}

TEST_P(AsyncCancel, TerminalKillsTheWorkerOfWhatHasBegun) {
  const auto found = cancelled(pool_.apply_async(run_for_ever, began_), began_, asio::cancellation_type::terminal);
  EXPECT_EQ(found.error(), errc::cancelled);
  EXPECT_EQ(pool_.stats().workers.cancelled, 1U);
  EXPECT_EQ(pool_.apply(add, 1, 2), 3);
}

TEST_P(AsyncCancel, MapIsGivenUpByTerminal) {
  auto all = pool_.map_async(run_until_asked, std::vector<event>{began_, began_});
  const auto found = cancelled(std::move(all), began_, asio::cancellation_type::terminal);
  EXPECT_EQ(found.error(), errc::cancelled);
}

TEST_P(AsyncCancel, LateSignalsDoNothingToLaterTasks) {
  asio::cancellation_signal signal;
  int ended = 0;
  for (int round = 0; round < 300; ++round) {
    pool_.apply_async(add, round, 1)(asio::bind_cancellation_slot(
        signal.slot(), asio::bind_executor(loop_, [&](const std::exception_ptr&, int) { ++ended; })));
    if (round % 3 == 0) signal.emit(asio::cancellation_type::terminal);
    auto other = pool_.apply_async(add, round, 2);  // may get the record of the one before
    EXPECT_EQ(other.get(), round + 2);
    loop_.run();
    loop_.restart();
    signal.emit(asio::cancellation_type::terminal);
  }
  EXPECT_EQ(ended, 300);
}

TEST_P(AsyncCancel, FirstOfTwoThatAreAwaitedTogetherEndsTheOther) {
  using namespace asio::experimental::awaitable_operators;
  asio::co_spawn(
      loop_,
      [&]() -> asio::awaitable<void> {
        auto both = co_await (pool_.apply_async(run_for_ever, began_)(asio::use_awaitable) ||
                              pool_.apply_async(add, 1, 2)(asio::use_awaitable));
        EXPECT_EQ(std::get<1>(both), 3);
      },
      [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  loop_.run();
  EXPECT_EQ(pool_.apply(add, 1, 2), 3);
}

}  // namespace
}  // namespace muster::async_test
