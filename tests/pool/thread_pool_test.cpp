// SPDX-License-Identifier: BSL-1.0
// What pools of threads do beyond what all pools do: conformance_test.cpp.
#include <muster/pool/thread_pool.hpp>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/as_completed.hpp>
#include <muster/async/when_all.hpp>
#include <muster/async/when_any.hpp>
#include <muster/pool/ctx_thread_pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/this_pool.hpp>

#include "error_code.hpp"
#include "processes.hpp"

namespace muster::thread_pool_test {
namespace {

using namespace std::chrono_literals;
using test::code_of;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct not_transportable {
  int* where = nullptr;
};
struct local_error {
  int code = 0;
};

TEST(ThreadPool, CallablesMayCaptureAndNothingNeedBeTransportable) {
  const thread_pool pool({.workers = 2});
  int counted = 0;
  const auto found =
      pool.apply([&counted](not_transportable x) { return not_transportable{.where = x.where + (++counted - 1)}; },
                 not_transportable{.where = &counted});
  EXPECT_EQ(found.where, &counted);
  EXPECT_EQ(counted, 1);
  // Predecessor's test of lambdas and locals.
  const std::vector<double> y(10, 1);
  std::vector<std::vector<double>> xs;
  for (int i = 0; i < 5; ++i) xs.emplace_back(10, i);
  EXPECT_THAT(
      pool.map([y](const std::vector<double>& x) { return std::inner_product(x.begin(), x.end(), y.begin(), 10.0); },
               xs),
      ElementsAre(10, 20, 30, 40, 50));
}

TEST(ThreadPool, WhatCanOnlyBeMovedIsMoved) {
  const thread_pool pool({.workers = 1});
  auto box = std::make_unique<int>(5);
  auto callable = [kept = std::make_unique<int>(2)](std::unique_ptr<int> x) {
    *x *= *kept;
    return x;
  };
  EXPECT_EQ(*pool.apply(std::move(callable), std::move(box)), 10);
  std::vector<std::unique_ptr<int>> boxes;
  boxes.push_back(std::make_unique<int>(1));
  boxes.push_back(std::make_unique<int>(2));
  EXPECT_THAT(pool.map([kept = std::make_unique<int>(3)](const std::unique_ptr<int>& x) { return *x * *kept; },
                       boxes | std::views::transform([](auto& each) { return std::move(each); })),
              ElementsAre(3, 6));
}

TEST(ThreadPool, ReferencesArePassedByStdRef) {
  const thread_pool pool({.workers = 1});
  int mine = 1;
  pool.apply([](int& x) { x = 7; }, std::ref(mine));
  EXPECT_EQ(mine, 7);
}

TEST(ThreadPool, ExceptionsOfAnyTypeArriveAsThrown) {
  const thread_pool pool({.workers = 1});
  try {
    pool.apply([] { throw local_error{.code = 5}; });
    FAIL();
  } catch (const local_error& caught) {
    EXPECT_EQ(caught.code, 5);
  }
  EXPECT_THROW(pool.map([](int) -> int { throw local_error(); }, {1, 2}), local_error);
  EXPECT_EQ(pool.apply_async([] { throw local_error(); }).get_result().error(), errc::remote_exception);
}

TEST(ThreadPool, TasksKnowTheirThread) {
  const thread_pool pool({.workers = 2, .name = "crew"});
  EXPECT_EQ(this_worker::id(), -1);
  EXPECT_EQ(pool.on(1).apply([] { return this_worker::id(); }), 1);
  EXPECT_EQ(pool.apply([] { return this_worker::pool_name(); }), "crew");
  EXPECT_EQ(pool.apply([] { return this_worker::incarnation(); }), 1U);
  EXPECT_NE(pool.apply([] { return std::this_thread::get_id(); }), std::this_thread::get_id());
  EXPECT_FALSE(pool.apply([] { return this_task::stop_requested(); }));
}

TEST(ThreadPool, ArgumentsAndCapturesAreGoneWhenTheTaskIsDone) {
  const thread_pool pool({.workers = 1});
  auto kept = std::make_shared<int>(1);
  auto done = pool.apply_async([kept](const std::shared_ptr<int>& other) { return *kept + *other; }, kept);
  done.wait();
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(done.get(), 2);
}

// ---- tasks that wait for tasks

TEST(ThreadPool, ATaskThatWaitsForAnotherRunsItInPlace) {
  const thread_pool pool({.workers = 1});
  EXPECT_EQ(pool.apply([&pool] {
    auto one = pool.apply_async([] { return this_worker::id(); });
    return one.get() + pool.apply([&pool] { return pool.apply([] { return 41; }); });
  }),
            41);
}

TEST(ThreadPool, MapsAndStreamsInATaskDoNotLockUpOneThread) {
  const thread_pool pool({.workers = 1});
  EXPECT_EQ(pool.apply([&pool] {
    const auto square = [](int x) { return x * x; };
    int sum = 0;
    for (const int each : pool.map(square, {1, 2, 3})) sum += each;
    for (const int each : pool.imap(square, std::views::iota(0, 20))) sum += each;
    for (const int each : pool.imap_unordered(square, std::views::iota(0, 20))) sum += each;
    for (const int each : pool.on(0).map(square, {1})) sum += each;
    return sum;
  }),
            14 + 2 * 2470 + 1);
}

TEST(ThreadPool, CombinedFuturesInATaskDoNotLockUpOneThread) {
  const thread_pool pool({.workers = 1});
  const auto add = [](int a, int b) { return a + b; };
  const auto post = [&](int x) { return pool.apply_async(add, x, 1); };
  const auto several = [&] {
    std::vector<future<int>> made;
    for (int each = 0; each < 3; ++each) made.push_back(post(each));
    return made;
  };
  EXPECT_THAT(pool.apply([&] { return when_all(several()).get(); }), ElementsAre(1, 2, 3));
  EXPECT_EQ(pool.apply([&] { return when_all(post(1), post(2)).get(); }), std::tuple(2, 3));
  EXPECT_EQ(pool.apply([&] { return when_any(several()).get().index; }), 0U);
  EXPECT_EQ(pool.apply([&] { return post(1).then([](int x) { return x * 10; }).get(); }), 20);
  EXPECT_EQ(pool.apply([&] { return pool.apply_async(add, post(1), post(2)).get(); }), 5);
  EXPECT_EQ(pool.apply([&] { return when_all(pool.apply_async(add, post(1), post(2)), post(3)).get(); }),
            std::tuple(5, 4));
  EXPECT_THAT(pool.apply([&] { return pool.broadcast(add, 1, 2); }), ElementsAre(3));
  EXPECT_EQ(pool.apply([&] {
    auto made = several();
    int sum = 0;
    for (auto& each : as_completed(made)) sum += each.get();
    return sum;
  }),
            6);
}

TEST(ThreadPool, ACallForTheThreadThatWaitsForItsCallerIsNotRunAndSaysWhy) {
  const thread_pool pool({.workers = 2, .name = "ring"});
  bool was_run = false;
  std::string said;
  const auto back = [&] {
    const auto how = pool.on(0).apply_async([&was_run] { was_run = true; }).get_result();
    said = how ? "" : how.error().message();
    return how ? errc() : how.error().code();
  };
  EXPECT_EQ(pool.on(0).apply([&] { return pool.on(1).apply(back); }), errc::invalid_argument);
  EXPECT_THAT(said, AllOf(HasSubstr("thread 1 of 'ring'"), HasSubstr("Name no thread")));
  pool.on(0).apply([] {});  // whatever it was given before is behind it
  EXPECT_FALSE(was_run);
}

TEST(ThreadPool, ATaskThatSomebodyElseHasBegunMayNotWaitForTheThreadThatWaitsForIt) {
  const thread_pool pool({.workers = 2});
  EXPECT_EQ(pool.on(0).apply([&] {
    std::latch begun(1);
    auto elsewhere = pool.apply_async([&] {
      begun.count_down();
      return code_of([&] { pool.on(0).apply([] {}); });
    });
    begun.wait();
    return elsewhere.get();
  }),
            errc::invalid_argument);
}

TEST(ThreadPool, OfThreeThreadsThatWaitInACircleOnlyTheLastIsRefused) {
  const thread_pool pool({.workers = 3});
  const auto last = [&] { return code_of([&] { pool.on(0).apply([] {}); }); };
  EXPECT_EQ(pool.on(0).apply([&] { return pool.on(1).apply([&] { return pool.on(2).apply(last); }); }),
            errc::invalid_argument);
}

TEST(ThreadPool, OfTwoTasksThatBroadcastToOneAnotherOneIsRefusedAndTheOtherGoesOn) {
  const thread_pool pool({.workers = 2});
  std::latch both(2);
  const auto broadcast = [&] {
    both.arrive_and_wait();
    return code_of([&] { pool.broadcast([] {}); });
  };
  auto one = pool.on(0).apply_async(broadcast);
  auto other = pool.on(1).apply_async(broadcast);
  EXPECT_THAT((std::vector{one.get(), other.get()}), testing::UnorderedElementsAre(errc(), errc::invalid_argument));
}

TEST(ThreadPool, AnElementMayNotWaitForTheThreadThatWaitsForItsMap) {
  const thread_pool pool({.workers = 2});
  EXPECT_THAT(pool.on(0).apply([&] {
    std::latch both(2);
    const auto call_back = [&](int) {
      both.arrive_and_wait();
      return this_worker::id() == 0 ? errc() : code_of([&] { pool.on(0).apply([] {}); });
    };
    return pool.with({.chunk = 1}).map(call_back, {0, 1});
  }),
              testing::UnorderedElementsAre(errc(), errc::invalid_argument));
}

TEST(ThreadPool, AMapForTheThreadThatWaitsForItsCallerIsNotRun) {
  const thread_pool pool({.workers = 2});
  int runs = 0;
  const auto back = [&] { return code_of([&] { pool.on(0).map([&runs](int) { ++runs; }, {1, 2}); }); };
  EXPECT_EQ(pool.on(0).apply([&] { return pool.on(1).apply(back); }), errc::invalid_argument);
  pool.on(0).apply([] {});
  EXPECT_EQ(runs, 0);
}

TEST(ThreadPool, ATaskMayWaitForAThreadThatWaitsForAThird) {
  const thread_pool pool({.workers = 3});
  EXPECT_EQ(pool.on(0).apply([&] { return pool.on(1).apply([&] { return pool.on(2).apply([] { return 7; }); }); }), 7);
}

TEST(ThreadPool, ATaskMaySubmitToItsClosedPool) {
  thread_pool pool({.workers = 1});
  std::promise<void> closed;
  auto outer = pool.apply_async([&pool, wait = closed.get_future()]() mutable {
    wait.wait();
    return pool.apply([] { return 5; });
  });
  pool.close();
  closed.set_value();
  EXPECT_EQ(outer.get(), 5);
  pool.join();
}

TEST(ThreadPool, AFullPoolLetsItsOwnTasksSubmit) {
  const thread_pool pool({.workers = 1, .max_pending = 1});
  EXPECT_EQ(pool.apply([&pool] { return pool.apply([] { return 5; }); }), 5);
}

TEST(ThreadPool, OtherTasksGetTheirTurnBetweenTheChunksOfAMap) {
  const thread_pool pool({.workers = 1});
  std::atomic<bool> posted = false;
  std::atomic<bool> go_on = false;
  auto whole = pool.with({.chunk = 1})
                   .map_async(
                       [&](int x) {
                         while (x == 0 ? !posted : !go_on) ::sched_yield();
                         return x;
                       },
                       std::views::iota(0, 3));
  auto between = pool.apply_async([&go_on] { go_on = true; });  // would never begin if the map kept the thread
  posted = true;
  between.get();
  EXPECT_THAT(whole.get(), ElementsAre(0, 1, 2));
}

// Callables may refer to what is gone when the map has returned.
TEST(ThreadPool, AMapThatFailsAndAStreamThatIsDestroyedWaitForElementsThatRun) {
  const thread_pool pool({.workers = 2});
  std::atomic<int> running = 0;
  const auto fail_beside_another = [&running](int x) {
    ++running;
    while (x == 0 && running < 2) ::sched_yield();
    if (x == 0) throw local_error();
    while (!this_task::stop_requested()) ::sched_yield();
    test::work_for(5ms);
    --running;
    return x;
  };
  EXPECT_THROW(pool.with({.chunk = 1}).map(fail_beside_another, {0, 1}), local_error);
  EXPECT_EQ(running, 1);
  for (const bool ordered : {true, false}) {
    running = 0;
    const std::vector<int> input = {0, 1};
    auto results = ordered ? pool.imap(fail_beside_another, input) : pool.imap_unordered(fail_beside_another, input);
    EXPECT_THROW(results.next(), error);
    {
      const auto destroyed = std::move(results);
    }
    EXPECT_EQ(running, 1);
  }
}

// ---- the end

TEST(ThreadPool, TerminateAsksWhatRunsToStopAndCancelsTheRest) {
  thread_pool pool({.workers = 1});
  std::promise<void> begun;
  auto running = pool.apply_async([&begun] {
    begun.set_value();
    while (!this_task::stop_requested()) ::sched_yield();
    return 5;
  });
  begun.get_future().wait();
  auto waiting = pool.apply_async([] { return 6; });
  auto whole = pool.map_async([](int x) { return x; }, std::views::iota(0, 100));
  auto there = pool.on(0).apply_async([] { return 7; });
  pool.terminate();
  pool.join();
  EXPECT_EQ(running.get(), 5);
  EXPECT_EQ(waiting.get_result().error(), errc::cancelled);
  EXPECT_EQ(whole.get_result().error(), errc::cancelled);
  EXPECT_EQ(there.get_result().error(), errc::cancelled);
}

TEST(ThreadPool, TerminateEndsAMapThatAllThreadsWorkOn) {
  thread_pool pool({.workers = 1});
  std::promise<void> begun;
  std::atomic<int> runs = 0;
  auto whole = pool.with({.chunk = 2})
                   .map_async(
                       [&](int x) {
                         if (runs++ == 0) begun.set_value();
                         while (!this_task::stop_requested()) ::sched_yield();
                         return x;
                       },
                       std::views::iota(0, 4));
  begun.get_future().wait();
  pool.terminate();
  pool.join();
  EXPECT_EQ(whole.get_result().error(), errc::cancelled);
  EXPECT_EQ(runs, 1);
}

// Who is asked to stop may end before cancel() has gone on.
TEST(ThreadPool, AMapThatIsCancelledHasNoResultsHoweverSoonItsThreadsStop) {
  const thread_pool pool({.workers = 1});
  using callback = std::stop_callback<std::function<void()>>;
  std::optional<callback> asked;
  std::promise<void> begun;
  std::atomic<bool> stopping = false;
  future<std::vector<std::string>> whole;
  const auto note_and_wait_for_the_end = [&] {
    stopping = true;
    while (!whole.ready()) ::sched_yield();
  };
  whole = pool.with({.chunk = 3})
              .map_async(
                  [&](int x) {
                    asked.emplace(this_task::stop_token(), note_and_wait_for_the_end);
                    begun.set_value();
                    while (!stopping) ::sched_yield();
                    return std::to_string(x);
                  },
                  std::views::iota(0, 3));
  begun.get_future().wait();
  EXPECT_TRUE(whole.cancel());
  EXPECT_EQ(whole.get_result().error(), errc::cancelled);
}

TEST(ThreadPool, TheDestructorWaitsForTasksThatRun) {
  std::atomic<bool> ended = false;
  {
    const thread_pool pool({.workers = 1, .destructor_grace = 1ms});
    std::promise<void> begun;
    static_cast<void>(pool.apply_async([&] {
      begun.set_value();
      while (!this_task::stop_requested()) ::sched_yield();
      ended = true;
    }));
    begun.get_future().wait();
  }
  EXPECT_TRUE(ended);
}

TEST(ThreadPool, ACallbackMayWaitForATaskThatWaitsForAnotherCallback) {
  const thread_pool pool({.workers = 2});
  const auto task = [&] { return pool.apply_async([] { return 2; }).then([](int x) { return x + 1; }).get(); };
  auto outer = pool.apply_async([] { return 1; }).then([&](int x) {
    const auto sums = pool.map([&](int each) { return each + task(); }, {1, 2});
    return x + pool.apply_async(task).get() + sums[1];
  });
  EXPECT_EQ(outer.get(), 1 + 3 + 5);
}

TEST(ThreadPool, ACallbackMayDestroyAPoolWhoseTaskWaitsForAnotherCallback) {
  auto pool = std::make_unique<thread_pool>(thread_pool_options{.workers = 2});
  std::promise<int> found;
  std::promise<void> began;
  pool->apply_async([] {}).on_complete(
      [&] {
        auto task = pool->apply_async([&] {
          began.set_value();
          return pool->apply_async([] { return 2; }).then([](int x) { return x + 1; }).get();
        });
        began.get_future().wait();
        pool->close();
        pool->drain();
        found.set_value(task.get());
      },
      [](const error_info&) {});
  EXPECT_EQ(found.get_future().get(), 3);
}

// Its copies, but not its moves, are counted down to one that throws.
struct hard_to_copy {
  std::atomic<int>* left;
  std::atomic<int>* calls;

  hard_to_copy(std::atomic<int>& copies, std::atomic<int>& count) : left(&copies), calls(&count) {}
  hard_to_copy(const hard_to_copy& other) : left(other.left), calls(other.calls) {
    if (--*left == 0) throw std::runtime_error("no room for a copy");
  }
  hard_to_copy(hard_to_copy&&) noexcept = default;
  hard_to_copy& operator=(const hard_to_copy&) = delete;
  hard_to_copy& operator=(hard_to_copy&&) = delete;
  ~hard_to_copy() = default;

  int operator()(int x) const {
    ++*calls;
    return x;
  }
};

TEST(ThreadPool, AMapWhoseCallableCannotBeCopiedForEachThreadHasNotBegun) {
  for (const int copies : {1, 2}) {
    thread_pool pool({.workers = 2});
    std::atomic<int> left = copies;
    std::atomic<int> calls = 0;
    EXPECT_THROW(pool.map(hard_to_copy(left, calls), std::vector{1, 2, 3, 4}), std::runtime_error);
    EXPECT_EQ(pool.stats().pending, 0U);
    pool.drain();
    EXPECT_EQ(calls, 0);
  }
}

TEST(ThreadPool, AMapThatWaitsInATaskForACopyThatCannotBeMadeFails) {
  const thread_pool pool({.workers = 1});
  std::atomic<int> left = 2;  // the first is for the thread that it waits on
  std::atomic<int> calls = 0;
  auto how = pool.apply_async([&] { return pool.map(hard_to_copy(left, calls), std::vector{1, 2}).size(); });
  EXPECT_THROW(static_cast<void>(how.get()), std::exception);
}

TEST(ThreadPool, AFinalizerThatCallsItsPoolIsRefusedAndThePoolEnds) {
  errc of_this_pool{};
  errc of_the_pool{};
  const thread_pool* self = nullptr;
  {
    const thread_pool pool({.workers = 1, .finalizer = [&] {
                              of_this_pool = code_of([] { static_cast<void>(this_pool::apply_async([] {})); });
                              of_the_pool = code_of([&] { static_cast<void>(self->apply_async([] {})); });
                            }});
    self = &pool;
  }
  EXPECT_EQ(of_this_pool, errc::invalid_argument);
  EXPECT_EQ(of_the_pool, errc::pool_closed);
}

TEST(ThreadPool, AnInitializerIsToldThatItRunsInNoTask) {
  errc found{};
  const thread_pool pool({.workers = 1, .initializer = [&] {
                            found = code_of([] { static_cast<void>(this_pool::apply_async([] {})); });
                          }});
  EXPECT_EQ(found, errc::invalid_argument);
}

TEST(ThreadPool, InitializersAndFinalizersRunInEachThread) {
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  {
    const thread_pool pool({.workers = 3, .initializer = [&] { ++begun; }, .finalizer = [&] { ++ended; }});
    EXPECT_EQ(begun, 3);
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 3);
}

TEST(ThreadPool, AFailingInitializerIsThrownByTheConstructor) {
  try {
    const thread_pool pool(
        {.workers = 2, .name = "poor", .initializer = [] { throw std::runtime_error("no licence"); }});
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::start_failed);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr("'poor'"), HasSubstr("no licence")));
  }
}

TEST(ThreadPool, AbsurdThreadCountsAreRefused) {
  try {
    const thread_pool pool({.workers = 100000});
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::invalid_argument);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr("100000"), HasSubstr("1000,")));
  }
}

TEST(ThreadPool, NoWorkersMeansAsManyAsThereAreProcessors) { EXPECT_GE(thread_pool().size(), 1U); }

TEST(ThreadPool, InAForkedChildTheDestructorDoesNothing) {
  auto pool = std::make_unique<thread_pool>(thread_pool_options{.workers = 1});
  EXPECT_EQ(pool->apply([] { return 1; }), 1);
  const auto child = ::fork();
  if (child == 0) {
    pool.reset();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pool->apply([] { return 2; }), 2);
}

// Many producers, few threads, and every kind of end: for the thread sanitizer above all.
TEST(ThreadPool, NothingIsLostBetweenManyThreads) {
  std::atomic<int> ran = 0;
  std::atomic<int> withdrawn = 0;
  {
    thread_pool pool({.workers = 3});
    std::vector<std::thread> producers;
    for (std::size_t seed = 0; seed < 4; ++seed) {
      producers.emplace_back([&, seed] {
        for (std::size_t round = 0; round < 1000; ++round) {
          auto made = round % 3 == 0 ? pool.on(seed % 3).apply_async([&] { ++ran; }) : pool.apply_async([&] { ++ran; });
          if (round % 7 == 0 && made.cancel()) ++withdrawn;
          if (round % 5 == 0) made.wait();
        }
      });
    }
    for (auto& each : producers) each.join();
    pool.drain();
    EXPECT_EQ(pool.stats().pending, 0U);
  }
  EXPECT_EQ(ran + withdrawn, 4000);
}

TEST(ThreadPool, SleepingThreadsAreWokenForEveryTask) {
  const thread_pool pool({.workers = 2});
  for (int round = 0; round < 200; ++round) {
    auto one = pool.on(0).apply_async([] { return 1; });
    auto two = pool.on(1).apply_async([] { return 2; });
    if (round % 20 == 0) test::work_for(1ms);  // long enough that they sleep
    ASSERT_EQ(pool.apply([] { return 3; }) + one.get() + two.get(), 6);
  }
}

// ---- with contexts

class counter {
public:
  explicit counter(int start) : value_(start) {}
  counter(const counter&) = delete;
  counter& operator=(const counter&) = delete;
  int next() { return value_++; }

private:
  int value_;
};

TEST(CtxThreadPool, EachThreadHasItsOwn) {
  const ctx_thread_pool<std::string> pool({"zero", "one"});
  EXPECT_EQ(pool.size(), 2U);
  EXPECT_EQ(pool.on(0).apply([](std::string& context) { return context; }), "zero");
  EXPECT_EQ(pool.on(1).apply([](std::string& context) { return context += "!"; }), "one!");
  EXPECT_EQ(pool.on(1).apply([](const std::string& context) { return context; }), "one!");
}

TEST(CtxThreadPool, GivenContextsNeedOnlyBeMovable) {
  std::vector<std::unique_ptr<int>> contexts;
  contexts.push_back(std::make_unique<int>(5));
  const ctx_thread_pool<std::unique_ptr<int>> pool(std::move(contexts));
  EXPECT_EQ(pool.apply([](std::unique_ptr<int>& context) { return *context; }), 5);
}

TEST(CtxThreadPool, AFactoryMakesThemInTheThread) {
  int base = 100;
  const ctx_thread_pool<counter> pool([base](std::size_t worker) { return counter(base + static_cast<int>(worker)); },
                                      {.workers = 2});
  EXPECT_EQ(pool.on(1).apply(fn<&counter::next>), 101);
  EXPECT_EQ(pool.on(1).apply([](counter& context) { return context.next(); }), 102);
  const ctx_thread_pool<std::thread::id> ids([] { return std::this_thread::get_id(); }, {.workers = 1});
  EXPECT_TRUE(ids.apply([](std::thread::id& made) { return made == std::this_thread::get_id(); }));
}

// Predecessor's tests of its thread pool with contexts.
TEST(CtxThreadPool, FourContextsForTwoThreadsAreRefusedWithBothNumbers) {
  try {
    const ctx_thread_pool<int> pool({0, 1, 2, 3}, {.workers = 2});
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::invalid_argument);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr("4 contexts"), HasSubstr("2 workers")));
  }
}

TEST(CtxThreadPool, TwoPoolsDoNotMixTheirContexts) {
  const ctx_thread_pool<int> low({0, 1});
  const ctx_thread_pool<int> high({2, 3});
  const auto context_of = [](int& context, int) { return context; };
  auto ours = low.map_async(context_of, std::views::iota(0, 50000));
  auto theirs = high.map_async(context_of, std::views::iota(0, 50000));
  EXPECT_THAT(ours.get(), Each(testing::AnyOf(0, 1)));
  EXPECT_THAT(theirs.get(), Each(testing::AnyOf(2, 3)));
}

TEST(CtxThreadPool, TenElementsSeeOnlyTheContextsThatWereGiven) {
  const ctx_thread_pool<int> pool({0, 1});
  const auto found = pool.map([](int& context, int x) { return std::pair(context, 2 * x); }, std::views::iota(0, 10));
  for (int x = 0; x < 10; ++x) {
    EXPECT_EQ(found[static_cast<std::size_t>(x)].second, 2 * x);
    EXPECT_THAT(found[static_cast<std::size_t>(x)].first, testing::AnyOf(0, 1));
  }
}

TEST(CtxThreadPool, ContextsAreDestroyedInTheirThreads) {
  struct note {
    std::atomic<int>* wrong = nullptr;
    std::thread::id made = std::this_thread::get_id();
    explicit note(std::atomic<int>& count) : wrong(&count) {}
    note(const note&) = delete;
    note& operator=(const note&) = delete;
    ~note() { *wrong += made == std::this_thread::get_id() ? 1 : 100; }
  };
  std::atomic<int> destroyed = 0;
  {
    const ctx_thread_pool<note> pool([&] { return note(destroyed); }, {.workers = 2});
  }
  EXPECT_EQ(destroyed, 2);
}

TEST(CtxThreadPool, AFailingFactoryIsThrownByTheConstructor) {
  try {
    const ctx_thread_pool<int> pool([]() -> int { throw std::runtime_error("no model there"); }, {.workers = 2});
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::start_failed);
    EXPECT_THAT(caught.what(), HasSubstr("no model there"));
  }
}

// ---- without workers

TEST(SerialPool, RunsWhereItIsSubmitted) {
  const serial_pool pool;
  const auto self = std::this_thread::get_id();
  auto done = pool.apply_async([] { return std::this_thread::get_id(); });
  EXPECT_TRUE(done.ready());
  EXPECT_EQ(done.get(), self);
  EXPECT_TRUE(pool.map_async([](int x) { return x; }, std::vector{1, 2}).ready());
  EXPECT_EQ(pool.apply([] { return this_worker::id(); }), 0);
  EXPECT_EQ(this_worker::id(), -1);
  EXPECT_EQ(pool.apply([&pool] { return pool.apply([] { return this_worker::id(); }); }), 0);
}

TEST(SerialPool, StreamsWorkOutEachElementWhenItIsWanted) {
  const serial_pool pool;
  int computed = 0;
  auto results = pool.imap([&computed](int x) { return ++computed + x; }, std::views::iota(0));
  EXPECT_EQ(computed, 0);
  for (int consumed = 1; consumed <= 3; ++consumed) {
    static_cast<void>(results.next());
    EXPECT_EQ(computed, consumed);
  }
}

TEST(SerialPool, ACallThatWaitsForAFutureMayBeMadeInsideOfAnother) {
  const thread_pool other({.workers = 1});
  const serial_pool pool;
  std::latch go(1);
  auto outer = pool.apply_async(
      [&](int a) {
        return a + pool.apply_async([](int b) { return b + 1; }, other.apply_async([] { return 2; })).get();
      },
      other.apply_async([&] {
        go.wait();
        return 1;
      }));
  go.count_down();
  EXPECT_EQ(outer.get(), 1 + 3);
}

}  // namespace
}  // namespace muster::thread_pool_test
