// SPDX-License-Identifier: BSL-1.0
// Pools on a loop of the program's: what runs there, when it returns, and what happens when it does not run.
#include <muster/async/std_future.hpp>
#include <muster/pool/pool.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <muster/pool/async.hpp>
#include <muster/queue/event.hpp>

#include "error_code.hpp"
#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::loop_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::code_of;
using test::quiet;
using test::run_for_ever;
using test::run_until;
using testing::Each;
using testing::SizeIs;

int add(int a, int b) { return a + b; }
int add_one(int x) { return x + 1; }
// Long enough that the loop sleeps.
int add_slowly(int a, int b) {
  test::work_for(5ms);
  return a + b;
}

class Loop : public testing::Test {
protected:
  // Restarted, so that it can be run again.
  void run() {
    loop_.run();
    loop_.restart();
  }

  asio::io_context loop_;
  pool pool_{loop_, quiet(2)};
};

TEST_F(Loop, RunReturnsAtOnceWhenNothingIsUnderWay) {
  EXPECT_EQ(pool_.apply(add, 1, 2), 3);
  run();
}

TEST_F(Loop, CallbacksRunThereAndRunWaitsForThem) {
  std::vector<std::thread::id> where;
  pool_.apply_async(add, 1, 2).on_complete([&](int) { where.push_back(std::this_thread::get_id()); },
                                           [](const error_info&) {});
  pool_.apply_async(add_slowly, 1,
                    2)([&](const std::exception_ptr&, int) { where.push_back(std::this_thread::get_id()); });
  auto then = pool_.apply_async(add, 1, 2).then([&](int sum) {
    where.push_back(std::this_thread::get_id());
    return 2 * sum;
  });
  EXPECT_THAT(where, SizeIs(0));
  run();
  EXPECT_THAT(where, SizeIs(3));
  EXPECT_THAT(where, Each(std::this_thread::get_id()));
  EXPECT_EQ(then.get(), 6);
}

TEST_F(Loop, RunWaitsForCallbacksOfWhatIsMadeOfOthers) {
  for (int round = 0; round < 50; ++round) {
    std::vector<future<int>> several;
    for (int each = 0; each < 3; ++each) several.push_back(pool_.apply_async(add, each, 1));
    bool called = false;
    when_all(std::move(several)).on_complete([&](const std::vector<int>&) { called = true; }, [](const error_info&) {});
    run();
    EXPECT_TRUE(called);
  }
}

TEST_F(Loop, OtherHandlersRunWhileTasksAreUnderWay) {
  const event began;
  const event end;
  std::optional<bool> found;
  pool_.apply_async(run_until, began, end)([&](const std::exception_ptr&, bool asked) { found = asked; });
  int turns = 0;
  std::function<void()> turn = [&] {
    if (++turns == 1000) return end.set();
    asio::post(loop_, turn);
  };
  asio::post(loop_, turn);
  run();
  EXPECT_EQ(found, false);
}

TEST_F(Loop, SleepsInTheLoopAndIsWokenByTheWorker) {
  for (int round = 0; round < 20; ++round) {
    std::optional<int> found;
    pool_.apply_async(add_slowly, round, 1)([&](const std::exception_ptr&, int sum) { found = sum; });
    run();
    EXPECT_EQ(found, round + 1);
  }
}

TEST_F(Loop, TimersRunWhileItSleeps) {
  const event began;
  const event end;
  bool ended = false;
  pool_.apply_async(run_until, began, end)([&](const std::exception_ptr&, bool) { ended = true; });
  asio::steady_timer timer(loop_, 5ms);
  timer.async_wait([&](boost::system::error_code) { end.set(); });
  run();
  EXPECT_TRUE(ended);
}

TEST_F(Loop, ManyCoroutinesOnSeveralThreadsAndStrandsLoseNothing) {
  constexpr int coroutines = 200;
  constexpr int calls = 20;
  std::array<int, 4> sums{};  // each only touched on its strand
  for (auto& sum : sums) {
    const auto strand = asio::make_strand(loop_);
    for (int each = 0; each < coroutines / 4; ++each) {
      asio::co_spawn(
          strand,
          [this, &sum]() -> asio::awaitable<void> {
            for (int call = 0; call < calls; ++call) sum += co_await pool_.apply_async(add, 1, 0)(asio::use_awaitable);
          },
          asio::detached);
    }
  }
  std::vector<std::thread> threads;
  for (int each = 0; each < 3; ++each) threads.emplace_back([&] { loop_.run(); });
  for (auto& each : threads) each.join();
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0), coroutines * calls);
}

TEST_F(Loop, MoreCoroutinesThanSlotsEnd) {
  constexpr int coroutines = 3000;
  int sum = 0;
  for (int each = 0; each < coroutines; ++each) {
    asio::co_spawn(
        loop_, [&]() -> asio::awaitable<void> { sum += co_await pool_.apply_async(add, 1, 0)(asio::use_awaitable); },
        asio::detached);
  }
  run();
  EXPECT_EQ(sum, coroutines);
}

TEST_F(Loop, SlowHandlersOfOneBatchRunOnSeveralThreads) {
  const event first;
  const event second;
  const auto meet = [](const event& mine, const event& other) {
    mine.set();
    other.wait();  // for ever, if they ran one after the other
  };
  auto one = pool_.apply_async(add, 1, 2);
  auto two = pool_.apply_async(add, 1, 2);
  one.wait();
  two.wait();
  one([&](const std::exception_ptr&, int) { meet(first, second); });
  two([&](const std::exception_ptr&, int) { meet(second, first); });
  std::vector<std::thread> threads;
  for (int each = 0; each < 2; ++each) threads.emplace_back([&] { loop_.run(); });
  for (auto& each : threads) each.join();
}

// Two end while the loop is busy, so that they are noticed together, and the first handler waits for the second.
TEST_F(Loop, HandlersThatAreDueTogetherMayWaitForEachOther) {
  const event began;
  const event end;
  const event first;
  const event second;
  const auto meet = [](const event& mine, const event& other) {
    mine.set();
    other.wait();
  };
  std::atomic<int> met = 0;
  for (int each = 0; each < 2; ++each) {
    pool_.apply_async(run_until, began, end)(asio::bind_executor(loop_, [&, each](const std::exception_ptr&, bool) {
      each == 0 ? meet(first, second) : meet(second, first);
      ++met;
    }));
  }
  asio::post(loop_, [&] {
    end.set();
    test::work_for(5ms);
  });
  std::vector<std::thread> threads;
  for (int each = 0; each < 2; ++each) threads.emplace_back([&] { loop_.run(); });
  for (auto& each : threads) each.join();
  EXPECT_EQ(met, 2);
}

// ---- nobody runs it

TEST_F(Loop, BlockingCallsNeedNobodyToRunIt) {
  std::vector<int> input(3000);
  std::iota(input.begin(), input.end(), 0);
  EXPECT_EQ(pool_.map(add_one, input).back(), 3000);
  std::vector<future<int>> many;  // more than there are slots
  for (const int each : input) many.push_back(pool_.apply_async(add, each, 1));
  for (std::size_t index = many.size(); index > 0; --index) {
    EXPECT_EQ(many[index - 1].get(), static_cast<int>(index));
  }
  many.clear();
  for (int each = 0; each < 3; ++each) many.push_back(pool_.apply_async(add, each, 1));
  EXPECT_THAT(when_all(std::move(many)).get(), testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(pool_.apply_async(add, pool_.apply_async(add, 1, 2), 3).get(), 6);
  EXPECT_EQ(pool_.apply_async(add, 1, 2).std().get(), 3);
  int sum = 0;
  for (const int each : pool_.imap(add_one, input)) sum += each;
  EXPECT_EQ(sum, 3000 * 3001 / 2);
  pool_.drain();
  run();
}

TEST_F(Loop, WhatHasSomebodyToTellEndsBeforeItIsRun) {
  bool called = false;
  pool_.apply_async(add, 1, 2)([&](const std::exception_ptr&, int) { called = true; });
  const event told;
  asio::thread_pool other(1);
  pool_.apply_async(add, 1, 2)(asio::bind_executor(other, [&](const std::exception_ptr&, int) { told.set(); }));
  told.wait();
  EXPECT_FALSE(called);
  run();
  EXPECT_TRUE(called);
}

TEST_F(Loop, HandlersMayBlockOnCallsOfThePool) {
  int sum = 0;
  pool_.apply_async(add_slowly, 1, 2)([&](const std::exception_ptr&, int) {
    for (const int each : pool_.map(add_one, std::vector(1000, 1))) sum += each;
    std::vector<future<int>> several;
    for (int each = 0; each < 3; ++each) several.push_back(pool_.apply_async(add, each, 1));
    for (const int each : when_all(std::move(several)).get()) sum += each;
    pool_.drain();
  });
  pool_.apply_async(add_slowly, 1, 2)([&](const std::exception_ptr&, int) { ++sum; });
  run();
  EXPECT_EQ(sum, 2007);
}

// The handler waits for what only a drain brings, and the loop is occupied by it.
TEST_F(Loop, TheSupervisorStandsInForALoopThatIsBusy) {
  for (const bool asleep : {false, true}) {
    bool ended = false;
    const event told;
    asio::thread_pool other(1);
    auto waits = pool_.apply_async(asleep ? add_slowly : add, 1, 2);
    asio::post(loop_, [&] {
      std::move(waits)(asio::bind_executor(other, [&](const std::exception_ptr&, int) { told.set(); }));
      asio::post(loop_, [&] {  // the loop polls by now
        asio::post(loop_, [&] {
          told.wait();
          ended = true;
        });
      });
    });
    run();
    EXPECT_TRUE(ended);
  }
}

// ---- ends

TEST_F(Loop, WorkersThatAreKilledAreFailures) {
  const event began;
  std::optional<errc> found;
  pool_.apply_async(run_for_ever, began)([&](const std::exception_ptr& failure) { found = code_of(failure); });
  std::thread killer([&] {
    began.wait();
    for (const auto& each : pool_.workers()) ::kill(each.pid, SIGKILL);
  });
  run();
  killer.join();
  EXPECT_EQ(found, errc::worker_died);
  EXPECT_EQ(pool_.apply(add, 1, 2), 3);
}

TEST_F(Loop, CallsOfKilledWorkersAreAwaitedAgain) {
  int sum = 0;
  int lost = 0;
  asio::co_spawn(
      loop_,
      [&]() -> asio::awaitable<void> {
        for (int call = 0; call < 40; ++call) {
          auto each = call % 4 == 0 ? pool_.apply_async([]() -> int { return ::raise(SIGKILL); })
                                    : pool_.apply_async([]() -> int { return 1; });
          const muster::result<int> how = co_await std::move(each).as_result();
          how.has_value() ? sum += *how : ++lost;
        }
      },
      asio::detached);
  run();
  EXPECT_EQ(sum, 30);
  EXPECT_EQ(lost, 10);
}

// ---- forked children

// How often handlers were called, in this process.
struct forked_handlers {
  void call(const pool& which) {
    which.apply_async(add_slowly, 20, 22)([this](const std::exception_ptr& failure, int sum) {
      EXPECT_EQ(failure, nullptr);
      EXPECT_EQ(sum, 42);
      ++calls;
    });
    which.apply_async(add_slowly, 20, 22)
        .on_complete([this](int sum) { calls += sum == 42 ? 1 : 0; }, [](const error_info&) {});
    asio::co_spawn(
        *loop,
        [this, &which]() -> asio::awaitable<void> {
          calls += co_await which.apply_async(add_slowly, 20, 22)(asio::use_awaitable) == 42 ? 1 : 0;
        },
        asio::detached);
  }

  asio::io_context* loop;
  int calls = 0;
};

TEST_F(Loop, AForkedChildThatGoesOnWithItCallsNoHandlerAndTakesNothing) {
  for (const auto before : {0ms, 1ms, 3ms, 20ms}) {
    forked_handlers handlers{.loop = &loop_};
    handlers.call(pool_);
    loop_.run_for(before);
    const auto calls_before = handlers.calls;
    loop_.notify_fork(asio::io_context::fork_prepare);
    const auto child = test::spawn(1, [&](std::size_t) {
      loop_.notify_fork(asio::io_context::fork_child);
      loop_.run_for(100ms);
      return handlers.calls == calls_before ? 0 : 1;
    });
    loop_.notify_fork(asio::io_context::fork_parent);
    run();
    EXPECT_EQ(handlers.calls, 3);
    EXPECT_EQ(child->wait(0), exit_status::exited(0)) << before.count();
  }
}

TEST_F(Loop, AChildThatAHandlerForksCallsNoFurtherHandler) {
  bool in_child = false;
  int calls = 0;
  asio::co_spawn(
      loop_,
      [&]() -> asio::awaitable<void> {
        co_await pool_.apply_async(add_slowly, 20, 22)(asio::use_awaitable);
        loop_.notify_fork(asio::io_context::fork_prepare);
        if (const auto pid = ::fork(); pid == 0) {
          in_child = true;
          loop_.notify_fork(asio::io_context::fork_child);
          loop_.stop();
        } else {
          loop_.notify_fork(asio::io_context::fork_parent);
          int status = 0;
          EXPECT_EQ(::waitpid(pid, &status, 0), pid);
          EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
        }
      },
      asio::detached);
  for (int each = 0; each < 20; ++each) {
    pool_.apply_async(add_slowly, each, 1)([&](const std::exception_ptr&, int) { calls += in_child ? 1000 : 1; });
  }
  loop_.run();
  loop_.restart();
  if (in_child) {
    loop_.run_for(50ms);
    ::_exit(calls < 1000 ? 0 : 1);
  }
  EXPECT_EQ(calls, 20);
}

TEST_F(Loop, HandlersWhoseExecutorsMayRunInlineAreNotCalledOnItsThread) {
  for (int each = 0; each < 20; ++each) {
    std::atomic<bool> elsewhere = false;
    std::atomic<bool> called = false;
    pool_.apply_async(add, 1, 2)(
        asio::bind_executor(asio::system_executor(), [&, here = std::this_thread::get_id()](std::exception_ptr, int) {
          elsewhere = std::this_thread::get_id() != here;
          called = true;
          called.notify_all();
        }));
    run();
    called.wait(false);
    EXPECT_TRUE(elsewhere);
  }
}

TEST(LoopEnd, PoolThatEndsCancelsWhatIsUnderWay) {
  asio::io_context loop;
  int cancelled = 0;
  const auto count = [&](const std::exception_ptr& failure) {
    cancelled += code_of(failure) == errc::cancelled ? 1 : 0;
  };
  {
    const event began;
    pool short_lived(loop, quiet(1));
    short_lived.apply_async(run_for_ever, began)(count);
    short_lived.apply_async(run_for_ever, began)(asio::bind_executor(loop, count));
    short_lived.apply_async(run_for_ever, began).on_complete([] {}, [&](const error_info&) { ++cancelled; });
    began.wait();
    loop.poll();
    short_lived.terminate();
  }
  loop.restart();
  loop.run();
  EXPECT_EQ(cancelled, 3);
}

TEST(LoopEnd, PoolMayEndInAHandlerOfItsOwn) {
  asio::io_context loop;
  auto held = std::make_unique<pool>(loop, quiet(1));
  bool ended = false;
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> {
        co_await held->apply_async(add, 1, 2)(asio::use_awaitable);
        held.reset();
        ended = true;
      },
      asio::detached);
  loop.run();
  EXPECT_TRUE(ended);
}

TEST(LoopEnd, LoopThatIsNeverRunAndGoesAfterThePoolIsLeftAlone) {
  future<int> left;
  {
    asio::io_context loop;
    pool short_lived(loop, quiet(1));
    short_lived.apply_async(add, 1, 2)([](const std::exception_ptr&, int) {});
    left = short_lived.apply_async(add, 1, 2);
    left.wait();
  }
  EXPECT_EQ(left.get(), 3);
}

// What the loop had found when the pool ended, and not delivered yet, was lost, and run() did not return.
TEST(LoopEnd, WhatTheLoopHasFoundIsDeliveredAfterThePoolsEnd) {
  constexpr int calls = 2000;
  asio::io_context loop;
  auto busy = std::make_optional(asio::make_work_guard(loop));
  std::thread runner([&] { loop.run_for(20s); });
  int delivered = 0;  // the runner's
  {
    pool pool(loop, quiet(1));
    for (int call = 0; call < calls; ++call) {
      pool.apply_async(add, 1, call)(asio::bind_executor(loop, [&](const std::exception_ptr& /*none*/, int /*sum*/) {
        test::work_for(10us);
        ++delivered;
      }));
    }
    pool.apply([] {});  // so all are done
  }
  busy.reset();
  runner.join();
  EXPECT_TRUE(loop.stopped());
  EXPECT_EQ(delivered, calls);
}

TEST(LoopEnd, LoopThatSleepsIsReleasedByThePoolsEnd) {
  asio::io_context loop;
  const event began;
  auto held = std::make_unique<pool>(loop, quiet(1));
  held->apply_async(run_for_ever, began)([](const std::exception_ptr&) {});
  std::thread runner([&] { loop.run(); });
  began.wait();
  held->terminate();
  held.reset();
  runner.join();
}

TEST_F(Loop, WhatAHandlerThrowsComesOutOfRunAndNothingIsLost) {
  int ended = 0;
  for (int each = 0; each < 10; ++each) {
    pool_.apply_async(add, 1, 2)(asio::bind_executor(loop_, [&ended, each](const std::exception_ptr&, int) {
      ++ended;
      if (each % 3 == 0) throw std::runtime_error("of the program");
    }));
  }
  int thrown = 0;
  for (bool more = true; more;) {
    try {
      loop_.run();
      more = false;
    } catch (const std::exception&) {  // several at once are one exception of Asio's
      ++thrown;
    }
  }
  EXPECT_EQ(ended, 10);
  EXPECT_GE(thrown, 1);
}

}  // namespace
}  // namespace muster::loop_test
