// SPDX-License-Identifier: BSL-1.0
#pragma once

// One contract for all that call functions: pools of all kinds, and members of RPC groups. A program that includes this
// instantiates it, with types that make a caller: `make(options)` returns what has `apply` and `apply_async`, its
// options have `workers` and `log`.

#include <sched.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/as_completed.hpp>
#include <muster/async/future.hpp>
#include <muster/async/std_future.hpp>
#include <muster/async/when_all.hpp>
#include <muster/async/when_any.hpp>
#include <muster/base/log.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/queue/event.hpp>
#include <muster/serialize/callable.hpp>

#include "processes.hpp"

namespace muster::test {

// The context of the pools that have them.
struct scratch {
  int uses = 0;
};

// A function for both kinds of pools: behind the context, where there is one.
template <auto Function>
struct fn_of {
  template <class... Args>
    requires std::is_invocable_v<decltype(Function), Args...>
  decltype(auto) operator()(Args&&... args) const {
    return Function(std::forward<Args>(args)...);
  }
  template <class... Args>
    requires std::is_invocable_v<decltype(Function), Args...>
  decltype(auto) operator()(scratch& context, Args&&... args) const {
    ++context.uses;
    return Function(std::forward<Args>(args)...);
  }
};
template <auto Function>
inline constexpr fn_of<Function> call{};

inline int add(int a, int b) { return a + b; }
inline void nothing() {}
inline std::string shout(const std::string& text) { return text + "!"; }
inline std::unique_ptr<int> boxed(int x) { return std::make_unique<int>(x); }
inline int unboxed(std::unique_ptr<int> box) { return *box; }
inline int fail_at_three(int x) { return x == 3 ? throw std::out_of_range("three") : x; }
inline int hang(int x) {
  while (!this_task::stop_requested()) ::sched_yield();
  return x;
}
inline int tell_and_hang(const event& began) {
  began.set();
  return hang(1);
}

template <class Which>
class CallConformance : public testing::Test {};
TYPED_TEST_SUITE_P(CallConformance);

TYPED_TEST_P(CallConformance, ResultsOfAllKindsComeBack) {
  const auto pool = TypeParam::make();
  EXPECT_EQ(pool.apply(call<add>, 2, 3), 5);
  pool.apply(call<nothing>);
  EXPECT_EQ(pool.apply(call<shout>, "text"), "text!");
  EXPECT_EQ(*pool.apply(call<boxed>, 7), 7);
  EXPECT_EQ(pool.apply(call<unboxed>, std::make_unique<int>(8)), 8);
  EXPECT_EQ(pool.apply_async(call<add>, 2, 3).get(), 5);
  EXPECT_EQ(pool.apply(muster::bind_front(call<add>, 40), 2), 42);
}

TYPED_TEST_P(CallConformance, ArgumentsAreCopiesUnlessMoved) {
  const auto pool = TypeParam::make();
  const std::string mine(1000, 'x');
  EXPECT_EQ(pool.apply(call<shout>, mine).size(), 1001U);
  EXPECT_EQ(mine.size(), 1000U);
}

TYPED_TEST_P(CallConformance, ExceptionsKeepTheirType) {
  const auto pool = TypeParam::make();
  try {
    pool.apply(call<fail_at_three>, 3);
    FAIL();
  } catch (const std::out_of_range& caught) {
    EXPECT_THAT(caught.what(), testing::HasSubstr("three"));
  }
  const auto end = pool.apply_async(call<fail_at_three>, 3).get_result();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message(), "three");
  EXPECT_EQ(end.error().type_name(), "std::out_of_range");
}

TYPED_TEST_P(CallConformance, FuturesAreUsedOnceAndTellHowTheyStand) {
  const auto pool = TypeParam::make();
  auto sum = pool.apply_async(call<add>, 1, 2);
  EXPECT_TRUE(sum.valid());
  EXPECT_TRUE(sum.wait_for(std::chrono::seconds(60)));
  EXPECT_TRUE(sum.ready());
  EXPECT_EQ(sum.get(), 3);
  EXPECT_FALSE(sum.valid());
  EXPECT_THROW(sum.get(), error);
  static_cast<void>(pool.apply_async(call<add>, 1, 2));  // nobody wants it
}

TYPED_TEST_P(CallConformance, ThenGoesOnAndFailuresSkipIt) {
  const auto pool = TypeParam::make();
  EXPECT_EQ(pool.apply_async(call<add>, 2, 3).then([](int sum) { return std::to_string(sum); }).get(), "5");
  bool called = false;
  auto skipped = pool.apply_async(call<fail_at_three>, 3).then([&](int) { called = true; });
  EXPECT_THROW(skipped.get(), std::out_of_range);
  EXPECT_FALSE(called);
}

TYPED_TEST_P(CallConformance, CallbacksAreCalledOnceEachAndNeverInside) {
  const auto pool = TypeParam::make();
  std::atomic<int> values = 0;
  std::atomic<int> errors = 0;
  std::atomic<bool> inside = false;
  const auto self = std::this_thread::get_id();
  for (int each = 0; each < 200; ++each) {
    pool.apply_async(call<fail_at_three>, each % 4)
        .on_complete(
            [&, self](int) {
              if (std::this_thread::get_id() == self) inside = true;
              ++values;
            },
            [&](const error_info&) { ++errors; });
  }
  EXPECT_TRUE(test::eventually([&] { return values == 150 && errors == 50; }));
  EXPECT_FALSE(inside);
}

TYPED_TEST_P(CallConformance, GoesOnWithoutALog) {
  const auto pool = TypeParam::make({.log = {}});
  std::promise<void> told;
  pool.apply_async(call<add>, 1, 1)
      .on_complete(
          [&](int) {
            told.set_value();
            throw std::logic_error("callback");
          },
          [](const error_info&) {});
  told.get_future().wait();
  EXPECT_EQ(pool.apply(call<add>, 1, 1), 2);
}

TYPED_TEST_P(CallConformance, CallbacksMayThrowAndMayCall) {
  std::atomic<int> logged = 0;
  const auto pool = TypeParam::make({.log = [&](log_level level, std::string_view text) {
    if (level >= log_level::warning && text.find("callback") != std::string_view::npos) ++logged;
  }});
  std::promise<int> later;
  pool.apply_async(call<add>, 1, 1)
      .on_complete([](int) { throw std::logic_error("callback"); }, [](const error_info&) {});
  pool.apply_async(call<add>, 1, 1)
      .on_complete([&](int sum) { later.set_value(pool.apply(call<add>, sum, 10)); }, [](const error_info&) {});
  EXPECT_EQ(later.get_future().get(), 12);
  EXPECT_TRUE(test::eventually([&] { return logged == 1; }));
}

TYPED_TEST_P(CallConformance, CallbacksMayWaitForWhatOtherCallbacksMake) {
  const auto pool = TypeParam::make();
  std::promise<int> later;
  const auto add_one = [](int sum) { return sum + 1; };
  const auto wait_for_others = [&](int sum) {
    sum += pool.apply_async(call<add>, 1, 1).then(add_one).then(add_one).get();
    sum += std::get<1>(when_all(pool.apply_async(call<add>, 1, 1), pool.apply_async(call<add>, 2, 1)).get());
    sum += pool.apply_async(call<add>, 2, 2).std().get();
    sum += pool.apply_async(call<add>, pool.apply_async(call<add>, 2, 2), 1).get();
    std::vector<future<int>> several;
    for (int each = 0; each < 3; ++each) several.push_back(pool.apply_async(call<add>, each, 0).then(add_one));
    for (auto& each : as_completed(several)) sum += each.get();
    return sum + pool.apply_async(call<add>, 1, 1)
                     .then([&](int one) {
                       return pool.apply_async(call<add>, one, 1).then(add_one).get();  // and these, too
                     })
                     .get();
  };
  pool.apply_async(call<add>, 0, 0)
      .on_complete([&](int sum) { later.set_value(wait_for_others(sum)); }, [](const error_info&) {});
  EXPECT_EQ(later.get_future().get(), 4 + 3 + 4 + 5 + 6 + 4);
}

TYPED_TEST_P(CallConformance, CallbacksRunOneAfterTheOtherWhateverTheyWaitFor) {
  const auto pool = TypeParam::make();
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  const auto alone = [&] {
    if (inside.fetch_add(1) != 0) ++overlaps;
    ::sched_yield();
    inside.fetch_sub(1);
  };
  std::vector<future<int>> ends;
  for (int each = 0; each < 20; ++each) {
    ends.push_back(pool.apply_async(call<add>, each, 1).then([&](int sum) {
      alone();
      const int next = pool.apply_async(call<add>, sum, 1)
                           .then([&](int got) {
                             alone();
                             return got;
                           })
                           .get();
      alone();
      return next;
    }));
  }
  int total = 0;
  for (auto& each : ends) total += each.get();
  EXPECT_EQ(total, 190 + 40);
  EXPECT_EQ(overlaps, 0);
}

TYPED_TEST_P(CallConformance, FuturesAreGathered) {
  const auto pool = TypeParam::make();
  std::vector<future<int>> futures;
  for (int each = 0; each < 20; ++each) futures.push_back(pool.apply_async(call<add>, each, each));
  EXPECT_EQ(when_all(std::move(futures)).get()[7], 14);
  const auto [sum, text] = when_all(pool.apply_async(call<add>, 1, 2), pool.apply_async(call<shout>, "a")).get();
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(text, "a!");
  std::vector<future<int>> some;
  for (int each = 0; each < 20; ++each) some.push_back(pool.apply_async(call<add>, each, 0));
  int total = 0;
  for (auto& each : as_completed(some)) total += each.get();
  EXPECT_EQ(total, 190);
  EXPECT_EQ(pool.apply_async(call<add>, 1, 2).std().get(), 3);
}

TYPED_TEST_P(CallConformance, WhenAnyGivesTheFirstAndAsksTheOthersToStop) {
  const auto pool = TypeParam::make();
  std::vector<future<int>> race;
  for (int each = 0; each < 20; ++each) race.push_back(pool.apply_async(call<add>, each, 0));
  const auto first = when_any(std::move(race)).get();
  EXPECT_EQ(first.value, static_cast<int>(first.index));
  race.clear();
  race.push_back(pool.apply_async(call<fail_at_three>, 3));
  EXPECT_THROW(when_any(std::move(race)).get(), std::out_of_range);
  if constexpr (!TypeParam::is_serial) {
    const event began;
    race.clear();
    race.push_back(pool.apply_async(call<tell_and_hang>, began));
    began.wait();
    race.push_back(pool.apply_async(call<add>, 2, 2));
    EXPECT_EQ(when_any(std::move(race)).get().value, 4);
  }
}

TYPED_TEST_P(CallConformance, WhatHasNotBegunIsWithdrawnByCancelAndWhatRunsIsAskedToStop) {
  if constexpr (TypeParam::is_serial) {
    GTEST_SKIP() << "nothing is ever under way";
  } else {
    const auto pool = TypeParam::make({.workers = 1});
    auto first = pool.apply_async(call<hang>, 1);
    auto second = pool.apply_async(call<hang>, 2);
    ASSERT_FALSE(second.wait_for(std::chrono::milliseconds(1)));
    EXPECT_TRUE(second.cancel());
    EXPECT_EQ(second.get_result().error(), errc::cancelled);
    const bool withdrawn = first.cancel();  // if its worker is that slow
    EXPECT_EQ(first.get_result().has_value(), !withdrawn);
  }
}

TYPED_TEST_P(CallConformance, ManyThreadsMaySubmit) {
  const auto pool = TypeParam::make();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (int round = 0; round < 200; ++round) {
        if (pool.apply(call<add>, seed, round) != seed + round) ++wrong;
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST_P(CallConformance, ValuesThatCanOnlyBeMovedAreArguments) {
  const auto pool = TypeParam::make();
  const auto mine = std::make_unique<int>(8);
  EXPECT_EQ(pool.apply(call<unboxed>, mine), 8);
  EXPECT_EQ(*mine, 8);
  EXPECT_EQ(pool.apply(call<unboxed>, pool.apply_async(call<boxed>, 9)), 9);
}

TYPED_TEST_P(CallConformance, WhatWaitsForAFutureFailsAsThatDoes) {
  const auto pool = TypeParam::make();
  auto sum = pool.apply_async(call<add>, pool.apply_async(call<fail_at_three>, 3), 1);
  EXPECT_THROW(sum.get(), std::out_of_range);
}

REGISTER_TYPED_TEST_SUITE_P(CallConformance, ResultsOfAllKindsComeBack, ArgumentsAreCopiesUnlessMoved,
                            ExceptionsKeepTheirType, FuturesAreUsedOnceAndTellHowTheyStand, ThenGoesOnAndFailuresSkipIt,
                            CallbacksAreCalledOnceEachAndNeverInside, GoesOnWithoutALog, CallbacksMayThrowAndMayCall,
                            CallbacksMayWaitForWhatOtherCallbacksMake, CallbacksRunOneAfterTheOtherWhateverTheyWaitFor,
                            FuturesAreGathered, WhenAnyGivesTheFirstAndAsksTheOthersToStop,
                            WhatHasNotBegunIsWithdrawnByCancelAndWhatRunsIsAskedToStop, ManyThreadsMaySubmit,
                            ValuesThatCanOnlyBeMovedAreArguments, WhatWaitsForAFutureFailsAsThatDoes);

}  // namespace muster::test
