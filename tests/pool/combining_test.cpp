// SPDX-License-Identifier: BSL-1.0
// Futures as arguments, when_any, broadcast, and what cancelling combined futures does: with processes and threads.
#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <muster/async/std_future.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "waiting_tasks.hpp"

namespace muster::combining_test {
namespace {

using test::quiet;
using test::run_until;
using test::run_until_asked;
using testing::ElementsAre;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }
int fail() { throw std::out_of_range("this one"); }
std::string joined(const std::string& a, const std::string& b) { return a + b; }
int worker_id() { return this_worker::id(); }

// Its moves in this process are counted down to one that fails.
std::atomic<int> moves_left = 0;
struct move_failed {};
struct hard_to_move {
  int value = 0;

  hard_to_move() = default;
  explicit hard_to_move(int is) : value(is) {}
  hard_to_move(hard_to_move&& other)
      : value(other.value) {  // NOLINT(performance-noexcept-move-constructor): on purpose
    if (moves_left > 0 && --moves_left == 0) throw move_failed();
  }
  hard_to_move(const hard_to_move&) = delete;
  hard_to_move& operator=(const hard_to_move&) = delete;
  hard_to_move& operator=(hard_to_move&&) = delete;
  ~hard_to_move() = default;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};
hard_to_move make_hard(int value) { return hard_to_move(value); }
int value_of(const hard_to_move& what) { return what.value; }

// Calls `what` until no move of it is left to fail. Every one that failed must have been told of.
void fail_every_move(const std::function<int()>& what) {
  for (int move = 1; move < 100; ++move) {
    moves_left = move;
    try {
      EXPECT_EQ(what(), 7);
    } catch (const move_failed&) {
      continue;
    }
    EXPECT_NE(moves_left.exchange(0), 0) << "the failure of move " << move << " was lost";
    return;
  }
  ADD_FAILURE() << "more moves than there can be";
}

struct processes {
  static constexpr bool waits = true;
  static pool make(unsigned workers) { return pool(quiet(workers)); }
};
struct threads {
  static constexpr bool waits = true;
  static thread_pool make(unsigned workers) { return thread_pool({.workers = workers}); }
};
struct serial {
  static constexpr bool waits = false;
  static serial_pool make(unsigned /*workers*/) { return serial_pool(); }
};

template <class Kind>
class Combining : public testing::Test {};
using kinds = testing::Types<processes, threads, serial>;
TYPED_TEST_SUITE(Combining, kinds);

TYPED_TEST(Combining, ACallGetsTheValuesOfFutures) {
  const auto pool = TypeParam::make(2);
  EXPECT_EQ(pool.apply(add, pool.apply_async(add, 1, 2), pool.apply_async(add, 3, 4)), 10);
  EXPECT_EQ(pool.apply(add, pool.apply_async(add, 1, 2), 5), 8);
  EXPECT_EQ(pool.apply(joined, "a", pool.apply_async(joined, "b", std::string("c"))), "abc");
}

TYPED_TEST(Combining, AChainOfAThousand) {
  const auto pool = TypeParam::make(2);
  auto sum = pool.apply_async(add, 0, 0);
  for (int each = 0; each < 1000; ++each) sum = pool.apply_async(add, std::move(sum), 1);
  EXPECT_EQ(sum.get(), 1000);
}

TYPED_TEST(Combining, FuturesMayComeFromOtherPools) {
  const auto pool = TypeParam::make(1);
  const thread_pool other({.workers = 1});
  EXPECT_EQ(pool.apply(add, other.apply_async(add, 1, 2), pool.apply_async(add, 3, 4)), 10);
}

TYPED_TEST(Combining, AFutureThatRefersToNothingIsRefusedBeforeAnyIsUsedUp) {
  const auto pool = TypeParam::make(2);
  const auto with_nothing = [&] {
    std::vector<future<int>> made(2);
    made.front() = pool.apply_async(add, 1, 2);
    return made;
  };
  const auto is_refused = [](const auto& what) {
    try {
      what();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& found) {
      EXPECT_EQ(found.code(), errc::invalid_argument) << found.what();
    }
  };
  is_refused([&] { static_cast<void>(when_any(with_nothing())); });
  is_refused([&] { static_cast<void>(when_all(with_nothing())); });
  is_refused([&] { static_cast<void>(when_all(pool.apply_async(add, 1, 2), future<int>())); });
  is_refused([&] { static_cast<void>(as_completed(with_nothing())); });
  auto argument = pool.apply_async(add, 1, 2);
  is_refused([&] { static_cast<void>(pool.apply_async(add, std::move(argument), future<int>())); });
  EXPECT_EQ(argument.get(), 3);  // NOLINT(bugprone-use-after-move): that is the question
}

// What as_completed gives of `all`, which are one_of_each(first) of four.
void expect_each_once(std::vector<future<int>> all, int first) {
  std::multiset<int> found;
  for (auto& each : as_completed(std::move(all))) found.insert(each.get());
  EXPECT_EQ(found, (std::multiset{first, first + 1, first + 2, first + 3}));
}

// Each pool ends its futures on a thread of its own, so what counts them is told from several at once.
class SeveralPools : public testing::Test {
protected:
  static constexpr int rounds = 100;

  std::vector<future<int>> one_of_each(int which) const {
    std::vector<future<int>> all;
    all.push_back(first_.apply_async(add, which, 0));
    all.push_back(second_.apply_async(add, which, 1));
    all.push_back(threads_.apply_async(add, which, 2));
    all.push_back(other_threads_.apply_async(add, which, 3));
    return all;
  }

  const pool first_{quiet(1)};
  const pool second_{quiet(1)};
  const thread_pool threads_{{.workers = 1}};
  const thread_pool other_threads_{{.workers = 1}};
};

TEST_F(SeveralPools, WhenAllIsReadyInEveryRound) {
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(when_all(one_of_each(round)).get(), std::vector({round, round + 1, round + 2, round + 3}));
  }
}

TEST_F(SeveralPools, WhenAllOfATupleIsReadyInEveryRound) {
  for (int round = 0; round < rounds; ++round) {
    auto all = when_all(threads_.apply_async(add, round, 0), first_.apply_async(add, round, 1),
                        second_.apply_async(joined, "a", "b"));
    ASSERT_EQ(all.get(), std::tuple(round, round + 1, std::string("ab")));
  }
}

TEST_F(SeveralPools, AsCompletedGivesEachOnceInEveryRound) {
  for (int round = 0; round < rounds; ++round) expect_each_once(one_of_each(round), round);
}

TEST_F(SeveralPools, WhenAnyGivesOneOfThemInEveryRound) {
  for (int round = 0; round < rounds; ++round) {
    auto [index, value] = when_any(one_of_each(round)).get();
    ASSERT_EQ(value, round + static_cast<int>(index));
  }
}

TEST_F(SeveralPools, WhenAllOutlivesAPoolWhoseFuturesAreDone) {
  std::optional<pool> short_lived(quiet(1));
  const event began;
  auto waits = first_.apply_async(run_until_asked, began);
  began.wait();
  std::vector<future<int>> both;
  both.push_back(short_lived->apply_async(add, 1, 2));
  both.front().wait();
  both.push_back(std::move(waits));
  auto all = when_all(std::move(both)).then([](const std::vector<int>& values) { return values[0] + values[1]; });
  short_lived.reset();
  all.cancel(cancellation::ask);
  EXPECT_EQ(all.get(), 10);
}

TEST_F(SeveralPools, WhenAllOfWhichOneIsOfNothingMayBeContinued) {
  for (int round = 0; round < rounds; ++round) {
    auto nothing = when_all(std::vector<future<int>>{});
    auto both = when_all(std::move(nothing), when_all(one_of_each(round)), when_all(std::vector<future<int>>{}));
    auto count = std::move(both).then([](const auto& all) { return std::get<1>(all).size(); });
    ASSERT_EQ(count.get(), 4U);
  }
}

// Each kind ends its futures in a way of its own: by the supervisor, on the loop, before the call returns, on a thread.
class SeveralKindsOfPools : public testing::Test {
protected:
  static constexpr int rounds = 100;

  SeveralKindsOfPools() = default;
  SeveralKindsOfPools(const SeveralKindsOfPools&) = delete;
  SeveralKindsOfPools& operator=(const SeveralKindsOfPools&) = delete;
  ~SeveralKindsOfPools() override {
    busy_.reset();
    runner_.join();
  }

  std::vector<future<int>> one_of_each(int which) const {
    std::vector<future<int>> all;
    all.push_back(processes_.apply_async(add, which, 0));
    all.push_back(on_loop_.apply_async(add, which, 1));
    all.push_back(serial_.apply_async(add, which, 2));
    all.push_back(threads_.apply_async(add, which, 3));
    return all;
  }

private:
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy_{loop_.get_executor()};
  const pool processes_{quiet(1)};
  const pool on_loop_{loop_, quiet(1)};
  const serial_pool serial_;
  const thread_pool threads_{{.workers = 1}};
  std::thread runner_{[this] { loop_.run(); }};
};

TEST_F(SeveralKindsOfPools, WhenAllIsReadyInEveryRound) {
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(when_all(one_of_each(round)).get(), std::vector({round, round + 1, round + 2, round + 3}));
  }
}

TEST_F(SeveralKindsOfPools, AsCompletedGivesEachOnceInEveryRound) {
  for (int round = 0; round < rounds; ++round) expect_each_once(one_of_each(round), round);
}

TEST_F(SeveralKindsOfPools, WhenAnyGivesOneOfThemWhicheverIsFirstInTheVector) {
  for (int round = 0; round < rounds; ++round) {
    auto all = one_of_each(round);
    std::rotate(all.begin(), all.begin() + round % 4, all.end());
    auto [index, value] = when_any(std::move(all)).get();
    ASSERT_EQ(value, round + (static_cast<int>(index) + round) % 4);
  }
}

TYPED_TEST(Combining, WhatALoopThatWasLeftHasNotSeenCanBeGoneOverAgain) {
  const auto pool = TypeParam::make(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<future<int>> calls;
    std::vector<future<std::vector<int>>> maps;
    for (int each = 0; each < 4; ++each) {
      calls.push_back(pool.apply_async(add, each, 1));
      maps.push_back(pool.map_async([](int x) { return x; }, std::vector{each}));
    }
    for (auto& each : as_completed(calls)) {
      static_cast<void>(each.get());
      break;
    }
    std::erase_if(calls, [](const auto& each) { return !each.valid(); });
    int seen = 0;
    for (auto& each : as_completed(calls)) seen += each.get() > 0 ? 1 : 0;
    EXPECT_EQ(seen, 3);
    for (auto& each : as_completed(std::move(maps))) {
      EXPECT_EQ(each.get().size(), 1U);
      break;
    }
  }
}

TYPED_TEST(Combining, AFailureOfAnArgumentIsTheCalls) {
  const auto pool = TypeParam::make(2);
  auto sum = pool.apply_async(add, pool.apply_async(fail), 1);
  EXPECT_THROW(sum.get(), std::out_of_range);
  const auto found = pool.apply_async(add, 1, pool.apply_async(fail)).get_result();
  EXPECT_THAT(found.error().describe(), HasSubstr("this one"));
}

TYPED_TEST(Combining, ACallThatWaitsForItsArgumentsIsAcceptedWhenThePoolIsClosed) {
  if constexpr (!TypeParam::waits) {
    GTEST_SKIP() << "nothing waits where tasks run as they are submitted";
  } else {
    auto pool = TypeParam::make(2);
    const event began;
    const event end;
    auto sum = pool.apply_async([](bool asked) { return asked ? 1 : 2; }, pool.apply_async(run_until, began, end));
    pool.close();
    began.wait();
    end.set();
    EXPECT_EQ(sum.get(), 2);
    pool.join();
  }
}

TYPED_TEST(Combining, ACallWhoseArgumentsHaveNotComeEndsWithItsPool) {
  if constexpr (!TypeParam::waits) {
    GTEST_SKIP() << "nothing waits where tasks run as they are submitted";
  } else {
    const auto others = TypeParam::make(1);
    auto pool = TypeParam::make(1);
    const event began;
    const event end;
    const auto to_int = [](bool asked) { return asked ? 1 : 2; };
    auto one = pool.apply_async(to_int, others.apply_async(run_until, began, end));
    auto behind = pool.apply_async(add, std::move(one), 1);
    auto drained = pool.drain_async();
    began.wait();
    pool.terminate();
    EXPECT_EQ(behind.get_result().error(), errc::cancelled);
    drained.get();
    pool.join();
    end.set();
  }
}

TYPED_TEST(Combining, CancellingACallCancelsWhatItWaitsFor) {
  if constexpr (!TypeParam::waits) {
    GTEST_SKIP() << "nothing waits where tasks run as they are submitted";
  } else {
    const auto pool = TypeParam::make(1);
    const event began;
    auto sum = pool.apply_async(add, pool.apply_async(run_until_asked, began), 1);
    began.wait();
    EXPECT_FALSE(sum.cancel());
    const auto found = sum.get_result();  // the argument came all the same, and the call may have run by then
    EXPECT_TRUE(found.has_value() ? *found == 8 : found.error() == errc::cancelled);
  }
}

TYPED_TEST(Combining, CancellingWhatFollowsCancelsATask) {
  if constexpr (!TypeParam::waits) {
    GTEST_SKIP() << "nothing waits where tasks run as they are submitted";
  } else {
    const auto pool = TypeParam::make(1);
    const event began;
    auto next = pool.apply_async(run_until_asked, began).then([](int x) { return x + 1; });
    began.wait();
    EXPECT_FALSE(next.cancel());
    EXPECT_EQ(next.get(), 8);
  }
}

TYPED_TEST(Combining, WhenAnyGivesTheFirstAndCancelsTheOthers) {
  if constexpr (!TypeParam::waits) {
    GTEST_SKIP() << "nothing waits where tasks run as they are submitted";
  } else {
    const auto pool = TypeParam::make(2);
    const event began;
    std::vector<future<int>> race;
    race.push_back(pool.apply_async(run_until_asked, began));  // ends only because it is cancelled
    began.wait();
    race.push_back(pool.apply_async(add, 1, 2));
    const auto first = when_any(std::move(race)).get();
    EXPECT_EQ(first.index, 1U);
    EXPECT_EQ(first.value, 3);
  }
}

TYPED_TEST(Combining, WhenAnyEndsWithTheFirstThatFails) {
  const auto pool = TypeParam::make(1);
  std::vector<future<int>> race;
  race.push_back(pool.apply_async(fail));
  EXPECT_THROW(when_any(std::move(race)).get(), std::out_of_range);
  EXPECT_THROW(static_cast<void>(when_any(std::vector<future<int>>())), error);
}

TYPED_TEST(Combining, WhenAnyOfThousandsHasOneWinner) {
  const auto pool = TypeParam::make(2);
  std::vector<future<int>> race;
  for (int each = 0; each < 2000; ++each) race.push_back(pool.apply_async(add, each, 0));
  const auto first = when_any(std::move(race)).get();
  EXPECT_EQ(first.value, static_cast<int>(first.index));
}

TYPED_TEST(Combining, BroadcastRunsOnceOnEveryWorker) {
  const auto pool = TypeParam::make(3);
  const auto ids = pool.broadcast(worker_id);
  EXPECT_EQ(ids.size(), TypeParam::waits ? 3U : 1U);
  EXPECT_EQ(std::set<int>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(ids.front(), 0);
  pool.broadcast([] {});
  EXPECT_EQ(pool.broadcast_async(add, 2, 3).get().front(), 5);
  EXPECT_THROW(pool.broadcast(fail), std::out_of_range);
}

TYPED_TEST(Combining, EndsWhicheverMoveOfAValueFails) {
  const auto pool = TypeParam::make(2);
  const auto hard = [&](int value = 7) { return pool.apply_async(make_hard, value); };
  const auto some = [&](int count) {
    std::vector<future<hard_to_move>> made;
    for (int each = 0; each < count; ++each) made.push_back(hard());
    return made;
  };
  fail_every_move([&] { return hard().get().value; });
  fail_every_move([&] { return hard().std().get().value; });
  fail_every_move([&] { return hard().then([](hard_to_move made) { return made; }).get().value; });
  fail_every_move([&] { return when_all(some(2)).get().back().value; });
  fail_every_move([&] { return std::get<1>(when_all(hard(1), hard()).get()).value; });
  fail_every_move([&] { return when_any(some(1)).get().value.value; });
  fail_every_move([&] { return pool.apply(value_of, hard()); });
  EXPECT_EQ(hard(8).get().value, 8);
}

TEST(Broadcast, ReachesAWorkerThatTakesThePlaceOfADeadOne) {
  const pool pool(quiet(2));
  auto dead = pool.on(1).apply_async([] { ::raise(SIGKILL); });
  const auto incarnations = pool.broadcast([] { return this_worker::incarnation(); });
  EXPECT_EQ(dead.get_result().error(), errc::worker_died);
  EXPECT_THAT(incarnations, ElementsAre(1, 2));
}

TEST(Broadcast, ReachesContexts) {
  ctx_pool<int> pool([](std::size_t index) { return static_cast<int>(index) * 10; }, {.workers = 2});
  pool.broadcast([](int& context, int more) { context += more; }, 1);
  EXPECT_THAT(pool.broadcast([](int& context) { return context; }), ElementsAre(1, 11));
}

TEST(CombiningPools, ACallWhoseArgumentsHaveNotComeEndsWithABrokenPool) {
  const pool others(quiet(1));
  auto options = quiet(1);
  options.wait_for_start = false;
  options.initializer = fail;
  const event began;
  const event end;
  const pool broken(options);
  try {
    auto sum = broken.apply_async([](bool) { return 1; }, others.apply_async(run_until, began, end));
    EXPECT_EQ(sum.get_result().error(), errc::pool_broken);
    began.wait();
  } catch (const error& refused) {  // it was broken before
    EXPECT_EQ(refused.code(), errc::pool_broken);
  }
  end.set();
}

TEST(CombiningPools, ACallThatWaitsForAPoolThatIsTerminatedIsCancelled) {
  auto doomed = std::make_unique<pool>(quiet(1));
  const pool other(quiet(1));
  const event began;
  auto sum = other.apply_async(add, doomed->apply_async(run_until_asked, began), 1);
  began.wait();
  doomed.reset();
  EXPECT_EQ(sum.get_result().error(), errc::cancelled);
}

}  // namespace
}  // namespace muster::combining_test
