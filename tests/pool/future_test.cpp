// SPDX-License-Identifier: BSL-1.0
#include <muster/async/future.hpp>
#include <muster/async/std_future.hpp>

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::future_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }
int fail_if_odd(int x) { return x % 2 == 0 ? x : throw std::runtime_error("odd"); }
int add_one(int x) { return x + 1; }
int hang(int x) {
  while (!this_task::stop_requested()) ::sched_yield();
  return x;
}

struct throws_when_decoded {
  template <class Archive>
  void save(Archive& archive) const {
    archive(1);
  }
  template <class Archive>
  void load(Archive&) {
    throw std::out_of_range("not this one");
  }
};

class Future : public testing::Test {
protected:
  std::vector<std::string> logged_;
  std::mutex log_guard_;
  pool pool_{{.workers = 2, .log = [this](log_level level, std::string_view text) {
                if (level < log_level::warning) return;
                const std::lock_guard lock(log_guard_);
                logged_.emplace_back(text);
              }}};
};

TEST_F(Future, ADefaultOneRefersToNothing) {
  future<int> none;
  EXPECT_FALSE(none.valid());
  EXPECT_THROW(none.get(), error);
  EXPECT_THROW(none.wait(), error);
}

TEST_F(Future, GetUsesItUp) {
  auto sum = pool_.apply_async(add, 1, 2);
  EXPECT_TRUE(sum.valid());
  EXPECT_EQ(sum.get(), 3);
  EXPECT_FALSE(sum.valid());
}

TEST_F(Future, ThenThrowsWhereNoThreadCanBeHadAndTheFutureStays) {
  auto sum = pool_.apply_async(add, 1, 2);
  const test::refused_calls scope("pthread_create", EAGAIN);
  EXPECT_THROW(static_cast<void>(sum.then([](int x) { return x; })), error);
  EXPECT_THROW(sum.on_complete([](int) {}, [](const error_info&) {}), error);
  ASSERT_TRUE(sum.valid());
  EXPECT_EQ(sum.get(), 3);
}

TEST_F(Future, StdThrowsWhereNoThreadCanBeHadAndTheFutureStays) {
  auto sum = pool_.apply_async(add, 1, 2);
  const test::refused_calls scope("pthread_create", EAGAIN);
  EXPECT_THROW(static_cast<void>(sum.std()), error);
  ASSERT_TRUE(sum.valid());
  EXPECT_EQ(sum.get(), 3);
}

TEST_F(Future, WhenAllThrowsWhereNoThreadCanBeHadAndItsTasksRun) {
  {
    const test::refused_calls scope("pthread_create", EAGAIN);
    std::vector<future<int>> futures;
    for (int each = 0; each < 5; ++each) futures.push_back(pool_.apply_async(add, each, 1));
    EXPECT_THROW(static_cast<void>(when_all(std::move(futures))), error);
    EXPECT_THROW(static_cast<void>(when_all(pool_.apply_async(add, 1, 1), pool_.apply_async([] {}))), error);
  }
  EXPECT_EQ(std::get<0>(when_all(pool_.apply_async(add, 1, 1)).get()), 2) << "threads can be had again";
  EXPECT_TRUE(pool_.drain(60s));
  EXPECT_EQ(pool_.stats().tasks.ended, 8U);
}

// Those of the first pool have been given away already when the second says that it has none.
TEST_F(Future, WhenAllOfTwoPoolsThrowsWhereOnlyTheFirstCanHaveAThread) {
  pool other({.workers = 1, .log = [](log_level, std::string_view) {}});
  {
    const test::refused_calls scope("pthread_create", EAGAIN, -1, 1);
    EXPECT_THROW(static_cast<void>(when_all(pool_.apply_async(add, 1, 1), other.apply_async(add, 1, 1))), error);
  }
  EXPECT_EQ(std::get<0>(when_all(other.apply_async(add, 1, 1), pool_.apply_async(add, 1, 2)).get()), 2);
  EXPECT_TRUE(pool_.drain(60s));
  EXPECT_TRUE(other.drain(60s));
}

TEST_F(Future, ACallWithFuturesAsArgumentsThrowsWhereNoThreadCanBeHadAndIsNotPending) {
  {
    const test::refused_calls scope("pthread_create", EAGAIN);
    auto sum = pool_.apply_async(add, 1, 2);
    EXPECT_THROW(static_cast<void>(pool_.apply_async(add, std::move(sum), 3)), error);
  }
  EXPECT_EQ(pool_.apply_async(add, pool_.apply_async(add, 1, 2), 3).get(), 6);
  EXPECT_TRUE(pool_.drain(60s));
  EXPECT_EQ(pool_.stats().tasks.ended, 3U);
}

TEST_F(Future, OfAPoolOfThreadsThrowsWhereNoThreadCanBeHadAndStays) {
  thread_pool threads({.workers = 2, .log = [](log_level, std::string_view) {}});
  const auto make = [&threads] { return threads.apply_async(add, 1, 2); };
  {
    const test::refused_calls scope("pthread_create", EAGAIN);
    auto sum = make();
    EXPECT_THROW(static_cast<void>(sum.then([](int x) { return x; })), error);
    EXPECT_THROW(sum.on_complete([](int) {}, [](const error_info&) {}), error);
    EXPECT_THROW(static_cast<void>(sum.std()), error);
    ASSERT_TRUE(sum.valid());
    EXPECT_EQ(sum.get(), 3);
    EXPECT_THROW(static_cast<void>(when_all(make(), make())), error);
    EXPECT_THROW(static_cast<void>(threads.apply_async(add, make(), 3)), error);
  }
  EXPECT_EQ(make().then([](int x) { return x; }).get(), 3);
  EXPECT_EQ(threads.apply_async(add, make(), 3).get(), 6);
  EXPECT_TRUE(threads.drain(60s));
}

TEST_F(Future, MovesLeaveNothingBehind) {
  auto one = pool_.apply_async(add, 1, 2);
  auto two = std::move(one);
  EXPECT_FALSE(one.valid());  // NOLINT(bugprone-use-after-move): that is the question
  one = std::move(two);
  EXPECT_EQ(one.get(), 3);
}

TEST_F(Future, WaitingHasADeadline) {
  auto stuck = pool_.apply_async(hang, 5);
  EXPECT_FALSE(stuck.wait_for(2ms));
  EXPECT_FALSE(stuck.ready());
  const bool withdrawn = stuck.cancel();  // if its worker is that slow; else it was asked to stop
  EXPECT_EQ(stuck.get_result().has_value(), !withdrawn);
}

TEST_F(Future, ResultsAreData) {
  EXPECT_EQ(*pool_.apply_async(fail_if_odd, 2).get_result(), 2);
  const auto failed = pool_.apply_async(fail_if_odd, 3).get_result();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "odd");
  EXPECT_EQ(failed.error().type_name(), "std::runtime_error");
  EXPECT_TRUE(pool_.apply_async([] {}).get_result());
}

TEST_F(Future, ADroppedOneLetsItsTaskRun) {
  const test::shared<std::atomic<int>> unused;
  for (int each = 0; each < 3000; ++each) static_cast<void>(pool_.apply_async(add, each, 1));
  pool_.drain();
  EXPECT_EQ(pool_.stats().tasks.ended, 3000U);
}

TEST_F(Future, AQueuedTaskIsWithdrawnByCancel) {
  auto first = pool_.apply_async(hang, 1);
  auto second = pool_.apply_async(hang, 2);
  auto queued = pool_.apply_async(add, 1, 2);
  ASSERT_FALSE(queued.wait_for(1ms));
  EXPECT_TRUE(queued.cancel());
  EXPECT_EQ(queued.get_result().error(), errc::cancelled);
  for (auto* each : {&first, &second}) {
    const bool withdrawn = each->cancel();  // if its worker is that slow
    EXPECT_EQ(each->get_result().has_value(), !withdrawn);
  }
}

TEST_F(Future, ThenMakesAFutureOfWhatComesNext) {
  auto text = pool_.apply_async(add, 2, 3).then([](int sum) { return std::to_string(sum); }).then([](std::string s) {
    return s + "!";
  });
  EXPECT_EQ(text.get(), "5!");
}

TEST_F(Future, ThenOfVoidAndToVoid) {
  int seen = 0;
  pool_.apply_async([] {}).then([&] { seen = 1; }).then([&] { ++seen; }).get();
  EXPECT_EQ(seen, 2);
}

TEST_F(Future, ThenIsSkippedByAFailure) {
  bool called = false;
  auto next = pool_.apply_async(fail_if_odd, 1).then([&](int) {
    called = true;
    return 1;
  });
  EXPECT_THROW(next.get(), std::runtime_error);
  EXPECT_FALSE(called);
}

TEST_F(Future, AnExceptionInThenIsItsOwn) {
  struct local_error {};
  auto next = pool_.apply_async(add, 1, 1).then([](int) -> int { throw local_error(); });
  EXPECT_THROW(next.get(), local_error);
}

// Predecessor's list, 5: callbacks fire exactly once, may throw, and may call the pool.
TEST_F(Future, CallbacksAreCalledOnceEach) {
  std::atomic<int> values = 0;
  std::atomic<int> errors = 0;
  for (int each = 0; each < 400; ++each) {
    pool_.apply_async(fail_if_odd, each).on_complete([&](int) { ++values; }, [&](const error_info&) { ++errors; });
  }
  pool_.map_async(add_one, std::vector<int>(100, 1))
      .on_complete([&](const std::vector<int>& all) { values += static_cast<int>(all.size()); },
                   [&](const error_info&) { ++errors; });
  EXPECT_TRUE(test::eventually([&] { return values == 300 && errors == 200; }));
}

TEST_F(Future, AThrowingCallbackChangesNothingElse) {
  std::promise<int> later;
  pool_.apply_async(add, 1, 1).on_complete([](int) { throw std::logic_error("callback"); }, [](const error_info&) {});
  pool_.apply_async(add, 2, 2).on_complete([&](int sum) { later.set_value(sum); }, [](const error_info&) {});
  EXPECT_EQ(later.get_future().get(), 4);
  EXPECT_EQ(pool_.apply(add, 3, 3), 6);
  EXPECT_TRUE(test::eventually([&] {
    const std::lock_guard lock(log_guard_);
    return logged_.size() == 1 && logged_[0].find("callback") != std::string::npos;
  }));
}

TEST_F(Future, ACallbackMayCallThePool) {
  std::promise<int> done;
  pool_.apply_async(add, 1, 1).on_complete(
      [&](int sum) { done.set_value(pool_.apply(add, sum, 10) + pool_.map(add_one, std::vector{1, 2})[1]); },
      [&](const error_info&) { done.set_value(-1); });
  EXPECT_EQ(done.get_future().get(), 15);
}

TEST_F(Future, CallbacksDoNotRunInsideTheCallThatSetsThem) {
  auto ready = pool_.apply_async(add, 1, 1);
  ready.wait();
  std::promise<std::thread::id> ran;
  std::move(ready).on_complete([&](int) { ran.set_value(std::this_thread::get_id()); }, [](const error_info&) {});
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
}

TEST_F(Future, BecomesAStdFuture) {
  std::future<int> value = pool_.apply_async(add, 1, 2).std();
  EXPECT_EQ(value.get(), 3);
  std::future<int> failed = pool_.apply_async(fail_if_odd, 1).std();
  EXPECT_THROW(failed.get(), std::runtime_error);
  pool_.apply_async([] {}).std().get();
}

TEST_F(Future, WhenAllGathersAVector) {
  std::vector<future<int>> futures;
  for (int each = 0; each < 20; ++each) futures.push_back(pool_.apply_async(add, each, each));
  const auto all = when_all(std::move(futures)).get();
  ASSERT_EQ(all.size(), 20U);
  EXPECT_EQ(all[7], 14);
  EXPECT_TRUE(when_all(std::vector<future<int>>()).get().empty());
}

TEST_F(Future, WhenAllGathersATuple) {
  const auto [sum, text, nothing] =
      when_all(pool_.apply_async(add, 1, 2), pool_.apply_async([] { return std::string("t"); }), pool_.apply_async([] {
      })).get();
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(text, "t");
  EXPECT_EQ(nothing, std::monostate());
}

TEST_F(Future, WhenAllThrowsTheFirstErrorInOrder) {
  std::vector<future<int>> futures;
  for (const int each : {2, 4, 5, 7}) futures.push_back(pool_.apply_async(fail_if_odd, each));
  EXPECT_THROW(when_all(std::move(futures)).get(), std::runtime_error);
}

TEST_F(Future, AsCompletedGivesWhatIsReadyFirst) {
  std::vector<future<int>> futures;
  futures.push_back(pool_.apply_async(hang, 1));
  futures.push_back(pool_.apply_async(add, 1, 1));
  futures.push_back(pool_.apply_async(add, 2, 2));
  std::vector<int> order;
  for (auto& each : as_completed(futures)) {
    order.push_back(each.get());
    if (order.size() == 2) futures.front().cancel();
  }
  EXPECT_EQ(order.back(), 1);
  EXPECT_THAT(order, testing::UnorderedElementsAre(1, 2, 4));
}

TEST_F(Future, AsCompletedOwnsWhatIsMovedIn) {
  std::vector<future<int>> futures;
  for (int each = 0; each < 200; ++each) futures.push_back(pool_.apply_async(add, each, 0));
  int sum = 0;
  for (auto& each : as_completed(std::move(futures))) sum += each.get();
  EXPECT_EQ(sum, 199 * 200 / 2);
}

TEST_F(Future, AnAbandonedAsCompletedDoesNoHarm) {
  {
    std::vector<future<int>> futures;
    for (int each = 0; each < 4; ++each) futures.push_back(pool_.apply_async(hang, each));
    auto range = as_completed(std::move(futures));
    static_cast<void>(range);
  }
  EXPECT_EQ(pool_.size(), 2U);
}

TEST(FutureWithoutPool, OutlivesIt) {
  future<int> done;
  future<std::string> large;
  future<int> cancelled;
  {
    pool short_lived({.workers = 1});
    done = short_lived.apply_async(add, 1, 2);
    large = short_lived.apply_async([] { return std::string(100000, 'x'); });
    large.wait();
    cancelled = short_lived.apply_async([] {
      ::pause();
      return 0;
    });
  }
  EXPECT_EQ(done.get(), 3);
  EXPECT_EQ(large.get().size(), 100000U);
  const auto end = cancelled.get_result();
  ASSERT_FALSE(end);
  EXPECT_TRUE(end.error() == errc::cancelled || end.error() == errc::worker_died) << end.error().describe();
}

TEST(FutureWithoutPool, ThenStillWorks) {
  future<int> done;
  {
    pool short_lived({.workers = 1});
    done = short_lived.apply_async(add, 1, 2);
    done.wait();
  }
  EXPECT_EQ(std::move(done).then([](int x) { return x * 2; }).get(), 6);
}

TEST_F(Future, WhenAllOfNothingMayBeContinued) {
  bool called = false;
  when_all(std::vector<future<int>>()).on_complete([&](const auto& all) { called = all.empty(); }, [](const auto&) {});
  EXPECT_TRUE(called);
}

TEST_F(Future, AResultWhoseDecodingThrowsFailsWhateverWaitsForIt) {
  const auto make = [] { return throws_when_decoded(); };
  EXPECT_THROW(pool_.apply(make), std::out_of_range);
  EXPECT_THROW(pool_.apply_async(make).then([](const throws_when_decoded&) { return 1; }).get(), std::out_of_range);
}

TEST_F(Future, AWaitThatEndedLongAgoEndsAtOnce) {
  auto slow = pool_.apply_async(hang, 1);
  EXPECT_FALSE(slow.wait_for(-std::chrono::hours(1'000'000)));
  EXPECT_FALSE(slow.wait_until(deadline(clock::time_point::min())));
  slow.cancel();
}

}  // namespace
}  // namespace muster::future_test
