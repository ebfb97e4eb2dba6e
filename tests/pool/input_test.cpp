// SPDX-License-Identifier: BSL-1.0
// Inputs of streams that come in bursts, that make wait, or that are said not to: over pools of processes, of threads,
// and of neither, in chunks of all kinds.
#include <muster/pool/input.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "refused_calls.hpp"
#include "waiting_tasks.hpp"

namespace muster::input_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

int square(int x) { return x * x; }
int fail_at_three(int x) { return x == 3 ? throw std::out_of_range("three") : x; }
bool set(const event& which) {
  which.set();
  return true;
}

// ---- what a type says of its elements

template <class Xs>
constexpr auto speed = detail::speed_of<std::views::all_t<Xs>>;
using slowed = decltype(slow(std::declval<std::vector<int>&>()));
using computed = decltype(std::declval<std::vector<int>&>() | std::views::transform(square));

static_assert(speed<std::vector<int>&> == input_speed::quick);
static_assert(speed<std::vector<bool>> == input_speed::quick);
static_assert(speed<const std::list<int>&> == input_speed::quick);
static_assert(speed<std::map<int, int>> == input_speed::quick);
static_assert(speed<std::ranges::iota_view<int>> == input_speed::quick);
static_assert(speed<std::ranges::take_view<std::ranges::ref_view<std::list<int>>>> == input_speed::quick);
static_assert(speed<decltype(std::declval<std::map<int, int>&>() | std::views::values)> == input_speed::quick);
static_assert(speed<computed> == input_speed::unknown);
static_assert(speed<std::ranges::take_view<computed>> == input_speed::unknown);
static_assert(speed<std::ranges::istream_view<int>> == input_speed::unknown);
static_assert(speed<decltype(quick(std::declval<computed>()))> == input_speed::quick);
static_assert(speed<slowed> == input_speed::slow);
static_assert(speed<decltype(quick(std::declval<slowed>()))> == input_speed::quick);
static_assert(speed<decltype(std::declval<slowed>() | std::views::transform(square))> == input_speed::unknown);

TEST(Quick, IsTheRangeThatItIsAround) {
  std::list<int> numbers = {1, 2, 3};
  const auto borrowed = quick(numbers);
  numbers.push_back(4);
  EXPECT_EQ(borrowed.size(), 4U);
  EXPECT_THAT(std::vector<int>(borrowed.begin(), borrowed.end()), ElementsAre(1, 2, 3, 4));
  auto kept = quick(std::vector{5, 6});
  EXPECT_EQ(std::accumulate(kept.begin(), kept.end(), 0), 11);
  EXPECT_THAT(serial_pool().map(square, quick(numbers)), ElementsAre(1, 4, 9, 16));
}

// ---- streams

struct processes {
  static pool make() { return pool(test::quiet(2)); }
};
struct threads {
  static thread_pool make() { return thread_pool({.workers = 2}); }
};
struct serial {
  static serial_pool make() { return serial_pool(); }
};

/// How a stream is made. With bound arguments it is one of chunks, in order too.
struct way {
  bool ordered = false;
  bool binds = false;
};

// The function, behind an argument that is bound.
template <auto Function>
auto bound() {
  return muster::bind_front([](const std::string&, auto&& x) { return Function(std::forward<decltype(x)>(x)); },
                            std::string("bound"));
}

template <class Kind>
class Input : public testing::Test {
protected:
  // In order and not, with and without bound arguments, with chunks by time, of one, and of several.
  template <class F>
  void in_all_ways(const F& what, std::size_t window = 20) {
    for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}, std::size_t{7}}) {
      for (const bool ordered : {true, false}) {
        for (const bool binds : {true, false}) {
          what(pool_.with({.chunk = chunk, .window = window}), way{.ordered = ordered, .binds = binds});
        }
      }
    }
  }

  template <auto Function, class Calls, class Xs>
  static auto streamed(const Calls& calls, way how, Xs&& xs) {
    if (how.binds && how.ordered) return calls.imap(bound<Function>(), std::forward<Xs>(xs));
    if (how.binds) return calls.imap_unordered(bound<Function>(), std::forward<Xs>(xs));
    return how.ordered ? calls.imap(Function, std::forward<Xs>(xs))
                       : calls.imap_unordered(Function, std::forward<Xs>(xs));
  }

  decltype(Kind::make()) pool_ = Kind::make();
};
using kinds = testing::Types<processes, threads, serial>;
TYPED_TEST_SUITE(Input, kinds);

template <class Stream>
std::multiset<int> all_of(Stream results) {
  std::multiset<int> found;
  for (const int each : results) found.insert(each);
  return found;
}

constexpr int burst = 10;
const std::multiset<int> squares_of_burst = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81};

// Ten elements come at once, the eleventh when all of them have been worked on: none was taken and kept.
TYPED_TEST(Input, ElementsAreSentThoughTheNextOneBlocks) {
  this->in_all_ways([](const auto& calls, way how) {
    const std::vector<event> begun(burst);
    std::size_t asked = 0;
    const auto bursty = [&]() -> std::optional<event> {
      if (asked < begun.size()) return begun[asked++];
      for (const auto& each : begun) EXPECT_TRUE(each.wait_for(100s));
      return std::nullopt;
    };
    int count = 0;
    for (const bool each : TestFixture::template streamed<set>(calls, how, bursty)) count += each ? 1 : 0;
    EXPECT_EQ(count, burst);
  });
}

// Returns when whatever was sent to the first worker has ended, and whoever waits for it knows: what a worker ends is
// told in order, of tasks that somebody waits for in good time.
template <class Pool>
void settle(const Pool& pool) {
  if constexpr (!std::is_same_v<Pool, serial_pool>) {
    const event may_end;
    std::promise<void> told;
    pool.on(0)
        .apply_async([](const event& when) { when.wait(); }, may_end)
        .on_complete([&] { told.set_value(); }, [](const error_info& why) { FAIL() << why.message(); });
    may_end.set();
    told.get_future().wait();
  }
}

// The consumer sees to it that whatever was sent has ended before it asks for a result.
TYPED_TEST(Input, ResultsThatAreReadyComeBeforeMoreInputIsAskedFor) {
  this->in_all_ways([this](const auto& calls, way how) {
    int asked = 0;
    int consumed = 0;
    int sent_before = 0;
    auto quick_elements = [&]() -> std::optional<int> {
      EXPECT_EQ(consumed, sent_before) << "some are ready";
      return asked < burst ? std::optional(asked++) : std::nullopt;
    };
    auto results = TestFixture::template streamed<square>(calls.on(0), how, quick_elements);
    while (results.next()) {
      ++consumed;
      settle(this->pool_);
      sent_before = asked;
    }
    EXPECT_EQ(consumed, burst);
  });
}

// The eleventh is there only when the results of ten have been seen.
TYPED_TEST(Input, ResultsOfABurstArriveThoughTheNextElementBlocks) {
  this->in_all_ways([](const auto& calls, way how) {
    std::promise<void> seen_all;
    int given = 0;
    auto bursty = [&given, seen = seen_all.get_future().share()]() -> std::optional<int> {
      if (given < burst) return given++;
      seen.wait();
      return std::nullopt;
    };
    auto results = TestFixture::template streamed<square>(calls, how, slow(bursty));
    std::multiset<int> found;
    for (int each = 0; each < burst; ++each) found.insert(results.next().value());
    EXPECT_EQ(found, squares_of_burst);
    seen_all.set_value();
    EXPECT_EQ(results.next(), std::nullopt);
  });
}

// Each element is there only when the result of the one before has been seen.
TYPED_TEST(Input, EachResultOfASlowInputArrivesBeforeTheNextElement) {
  this->in_all_ways([](const auto& calls, way how) {
    std::vector<std::promise<void>> seen(burst);
    const auto one_by_one = std::views::iota(0, burst) | std::views::transform([&](int x) {
                              if (x > 0) seen[static_cast<std::size_t>(x) - 1].get_future().wait();
                              return x;
                            });
    auto results = TestFixture::template streamed<square>(calls, how, slow(one_by_one));
    for (int each = 0; each < burst; ++each) {
      EXPECT_EQ(results.next(), each * each);
      seen[static_cast<std::size_t>(each)].set_value();
    }
    EXPECT_EQ(results.next(), std::nullopt);
  });
}

TYPED_TEST(Input, MarksChangeNoResult) {
  const auto numbers = std::views::iota(0, 300) | std::views::transform([](int x) { return x % 50; });
  std::multiset<int> expected;
  for (const int each : numbers) expected.insert(each * each);
  for (const std::size_t window : {0U, 3U}) {
    this->in_all_ways(
        [&](const auto& calls, way how) {
          EXPECT_EQ(all_of(TestFixture::template streamed<square>(calls, how, numbers)), expected);
          EXPECT_EQ(all_of(TestFixture::template streamed<square>(calls, how, quick(numbers))), expected);
          EXPECT_EQ(all_of(TestFixture::template streamed<square>(calls, how, slow(numbers))), expected);
        },
        window);
  }
}

TYPED_TEST(Input, AGeneratorMayBeMarked) {
  for (const bool is_quick : {true, false}) {
    int given = 0;
    const auto next = [&]() -> std::optional<int> { return given < 4 ? std::optional(given++) : std::nullopt; };
    std::vector<int> found;
    if (is_quick) {
      for (const int each : this->pool_.imap(square, quick(next))) found.push_back(each);
    } else {
      for (const int each : this->pool_.imap(square, slow(next))) found.push_back(each);
    }
    EXPECT_THAT(found, ElementsAre(0, 1, 4, 9));
  }
}

TYPED_TEST(Input, ASlowOneIsTakenOnceAResultIsWantedAndAWindowAhead) {
  this->in_all_ways(
      [](const auto& calls, way how) {
        std::atomic<int> taken = 0;
        auto counted = std::views::iota(0) | std::views::transform([&taken](int x) {
                         ++taken;
                         return x;
                       });
        auto results = TestFixture::template streamed<square>(calls, how, slow(counted));
        EXPECT_EQ(taken, 0);
        for (int consumed = 1; consumed <= 50; ++consumed) {
          ASSERT_TRUE(results.next());
          ASSERT_LE(taken, consumed + 5);
        }
      },
      5);
}

TYPED_TEST(Input, OfASlowOneFailuresComeAtTheirPlaces) {
  this->in_all_ways([](const auto& calls, way how) {
    const auto broken = std::views::iota(0) |
                        std::views::transform([](int x) { return x == 5 ? throw std::domain_error("input") : x; });
    auto results = TestFixture::template streamed<fail_at_three>(calls, how, slow(broken));
    int values = 0;
    for (int each = 0; each < 5; ++each) {
      const auto found = results.next_result();
      ASSERT_TRUE(found);
      values += found->has_value() ? 1 : 0;
      if (*found) continue;
      EXPECT_EQ(found->error().place().element, 3U);
      if (how.ordered) {
        EXPECT_EQ(each, 3);
      }
    }
    EXPECT_EQ(values, 4);
    EXPECT_THROW(results.next(), std::domain_error);
    EXPECT_EQ(results.next(), std::nullopt);
  });
}

TYPED_TEST(Input, ASlowOneMayBeEmpty) {
  this->in_all_ways([](const auto& calls, way how) {
    EXPECT_EQ(TestFixture::template streamed<square>(calls, how, slow(std::vector<int>())).next(), std::nullopt);
    auto unused = TestFixture::template streamed<square>(calls, how, slow(std::vector{1}));
  });
}

TYPED_TEST(Input, ASlowOneServesAllKindsOfTasks) {
  int count = 0;
  for ([[maybe_unused]] const auto& each : this->pool_.imap([](int) {}, slow(std::vector{1, 2, 3}))) ++count;
  EXPECT_EQ(count, 3);
  const std::vector<std::pair<int, int>> pairs = {{1, 2}, {3, 4}};
  std::vector<int> sums;
  for (const int each : this->pool_.istarmap([](int a, int b) { return a + b; }, slow(pairs))) sums.push_back(each);
  EXPECT_THAT(sums, ElementsAre(3, 7));
}

// Only a thread can be in the input while another is in the destructor.
template <class Kind>
class SlowInput : public Input<Kind> {};
using kinds_with_threads = testing::Types<processes, threads>;
TYPED_TEST_SUITE(SlowInput, kinds_with_threads);

TYPED_TEST(SlowInput, ADestroyedStreamWaitsForTheElementThatItHasAskedFor) {
  this->in_all_ways([](const auto& calls, way how) {
    std::promise<void> asked;
    std::promise<void> may_go_on;
    bool left = false;
    int given = 0;
    auto blocked = [&]() -> std::optional<int> {
      if (given < 3) return given++;
      asked.set_value();
      may_go_on.get_future().wait();
      left = true;
      return 3;
    };
    std::optional results(TestFixture::template streamed<square>(calls, how, slow(blocked)));
    EXPECT_TRUE(results->next());
    asked.get_future().wait();
    std::thread other([&] { may_go_on.set_value(); });
    results.reset();
    EXPECT_TRUE(left);
    other.join();
  });
}

TYPED_TEST(SlowInput, ADestroyedStreamAsksForNoMore) {
  this->in_all_ways(
      [](const auto& calls, way how) {
        std::atomic<int> taken = 0;
        auto counted = std::views::iota(0) | std::views::transform([&taken](int x) {
                         ++taken;
                         return x;
                       });
        {
          auto results = TestFixture::template streamed<square>(calls, how, slow(counted));
          EXPECT_TRUE(results.next());
        }
        EXPECT_LE(taken, 3);
      },
      2);
}

TYPED_TEST(SlowInput, WithoutAThreadItIsAnError) {
  auto results = this->pool_.imap(square, slow(std::vector{1}));
  const test::refused_calls scope("pthread_create", EAGAIN);
  EXPECT_THROW(results.next(), error);
  EXPECT_EQ(results.next(), std::nullopt);
}

TYPED_TEST(SlowInput, IntoAPoolThatIsClosedIsAnErrorAtItsPlace) {
  std::promise<void> closed;
  int given = 0;
  auto gap = [&]() -> std::optional<int> {
    if (given == 1) closed.get_future().wait();
    return given++;
  };
  auto results = this->pool_.imap(square, slow(gap));
  EXPECT_EQ(results.next(), 0);
  this->pool_.close();
  closed.set_value();
  EXPECT_THROW(results.next(), error);
  EXPECT_EQ(results.next(), std::nullopt);
}

// Whose only thread is the consumer's.
TEST(SlowInputOfATask, MayGoToItsOwnPool) {
  const thread_pool pool({.workers = 1});
  for (const bool ordered : {true, false}) {
    const auto found = pool.apply([&] {
      const auto numbers = slow(std::views::iota(0, burst));
      return ordered ? all_of(pool.imap(square, numbers)) : all_of(pool.imap_unordered(square, numbers));
    });
    EXPECT_EQ(found, squares_of_burst);
  }
}

// ---- chunks

// How many tasks a stream of so many elements took.
template <class Xs>
std::uint64_t tasks_for(const pool& where, bool ordered, Xs&& xs) {
  const auto before = where.stats().tasks.accepted;
  const auto calls = where.with({.chunk = 7});
  static_cast<void>(ordered ? all_of(calls.imap(square, xs)) : all_of(calls.imap_unordered(square, xs)));
  return where.stats().tasks.accepted - before;
}

TEST(QuickInput, IsGatheredIntoChunksAndAnyOtherIsNot) {
  const pool where(test::quiet(2));
  const std::list<int> kept(70, 1);
  const auto numbers = std::views::iota(0, 70) | std::views::transform([](int x) { return x; });
  for (const bool ordered : {true, false}) {
    EXPECT_EQ(tasks_for(where, ordered, kept), 10U);
    EXPECT_EQ(tasks_for(where, ordered, quick(numbers)), 10U);
    EXPECT_EQ(tasks_for(where, ordered, numbers), 70U);
    EXPECT_EQ(tasks_for(where, ordered, slow(numbers)), 70U);
  }
}

}  // namespace
}  // namespace muster::input_test
