// SPDX-License-Identifier: BSL-1.0
// One contract for all pools: processes or threads or neither, with contexts or without.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <ranges>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/std_future.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/ctx_thread_pool.hpp>
#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "call_conformance.hpp"
#include "processes.hpp"

namespace muster::conformance_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

using test::add;
using test::boxed;
using test::call;
using test::fail_at_three;
using test::hang;
using test::nothing;
using test::scratch;
using test::shout;
using test::tell_and_hang;
using test::unboxed;

void discard(log_level, std::string_view) {}

// It changes with each call.
struct counter {
  int count = 0;

  int operator()(int x) { return ++count * 10 + x; }
  int operator()(scratch& /*context*/, int x) { return (*this)(x); }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(count);
  }
};

// ---- what the pools run

int square(int x) { return x * x; }
int who(int) { return this_worker::id(); }
void nothing_of(int) {}
std::string shouted_twice(const std::string& first, const std::string& then) { return first + then + "!"; }
std::string shouted(int number, const std::string& text) { return text + std::to_string(number); }
int unboxed_sum(std::unique_ptr<int> box, int more) { return *box + more; }
std::unique_ptr<int> doubled(std::unique_ptr<int> box) {
  *box *= 2;
  return box;
}
// It cannot be copied, as is that of a class with such a part, though the compiler says of a container that it can.
struct parcel {
  std::vector<std::unique_ptr<int>> boxes;
  std::string label;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(boxes, label);
  }
};
std::string opened(parcel given) { return given.label + std::to_string(*given.boxes.at(0)); }
parcel relabelled(parcel given) {
  given.label += "!";
  return given;
}
std::size_t count_of(std::vector<std::unique_ptr<int>> boxes) { return boxes.size(); }
int with_bound(const std::unique_ptr<int>& bound, std::unique_ptr<int> box) { return *bound + *box; }
int wait_for_it(const event& end) {
  end.wait();
  return 1;
}
int nested_sum(int x) {
  auto one = this_pool::apply_async(add, x, 1);
  return this_pool::apply(add, x, 2) + one.get();
}
int nested_thrice(int depth) { return depth == 0 ? 1 : 1 + this_pool::apply(nested_thrice, depth - 1); }
int many_nested(int count) {
  std::vector<future<int>> all;
  for (int each = 0; each < count; ++each) all.push_back(this_pool::apply_async(add, each, 1));
  int sum = 0;
  for (auto& each : all) sum += each.get();
  return sum;
}
double sum_of(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double sum_of_both(const std::vector<double>& x, const std::vector<double>& y) { return sum_of(x) + sum_of(y); }
int my_id() { return this_worker::id(); }
struct table {
  std::array<int, 1000> values;
};
int look_up(const shared_object<table>& in, int x) { return in->values[static_cast<std::size_t>(x)]; }
void die(int) { ::raise(SIGKILL); }
int die_at_three(int x) { return x == 3 ? ::raise(SIGKILL) : x; }
int die_first(int x) { return this_worker::incarnation() == 1 ? ::raise(SIGKILL) : x; }

// ---- the pools

struct bounds {
  unsigned workers = 2;
  std::size_t max_pending = 0;
  overflow_policy overflow = overflow_policy::block;
  std::chrono::nanoseconds overflow_wait = std::chrono::nanoseconds::max();
  log_sink log = discard;
};

pool_options for_processes(const bounds& how) {
  return {.workers = how.workers,
          .max_pending = how.max_pending,
          .overflow = how.overflow,
          .overflow_wait = how.overflow_wait,
          .quarantine_after = 0,
          .destructor_grace = 1ms,
          .log = how.log};
}
thread_pool_options for_threads(const bounds& how) {
  return {.workers = how.workers,
          .max_pending = how.max_pending,
          .overflow = how.overflow,
          .overflow_wait = how.overflow_wait,
          .destructor_grace = 1ms,
          .log = how.log};
}

struct with_pool {
  static constexpr bool has_processes = true;
  static constexpr bool is_serial = false;
  static pool make(const bounds& how = {}) { return pool(for_processes(how)); }
};
struct with_p2p_pool : with_pool {
  static p2p_pool make(const bounds& how = {}) { return p2p_pool(for_processes(how)); }
};
struct with_ctx_pool : with_pool {
  static ctx_pool<scratch> make(const bounds& how = {}) {
    return ctx_pool<scratch>([] { return scratch(); }, for_processes(how));
  }
};
struct with_thread_pool {
  static constexpr bool has_processes = false;
  static constexpr bool is_serial = false;
  static thread_pool make(const bounds& how = {}) { return thread_pool(for_threads(how)); }
};
struct with_ctx_thread_pool : with_thread_pool {
  static ctx_thread_pool<scratch> make(const bounds& how = {}) {
    return ctx_thread_pool<scratch>([] { return scratch(); }, for_threads(how));
  }
};
struct with_serial_pool : with_thread_pool {
  static constexpr bool is_serial = true;
  static serial_pool make(const bounds& how = {}) { return serial_pool(for_threads(how)); }
};

template <class Which>
class Conformance : public testing::Test {};
using kinds =
    testing::Types<with_pool, with_p2p_pool, with_ctx_pool, with_thread_pool, with_ctx_thread_pool, with_serial_pool>;
class kind_names {
public:
  template <class Which>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's
    if (std::is_same_v<Which, with_pool>) return "pool";
    if (std::is_same_v<Which, with_p2p_pool>) return "p2p_pool";
    if (std::is_same_v<Which, with_ctx_pool>) return "ctx_pool";
    if (std::is_same_v<Which, with_thread_pool>) return "thread_pool";
    if (std::is_same_v<Which, with_ctx_thread_pool>) return "ctx_thread_pool";
    return "serial_pool";
  }
};
TYPED_TEST_SUITE(Conformance, kinds, kind_names);

template <class Call>
std::string what_is_thrown(errc expected, Call call) {
  try {
    call();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), expected) << caught.what();
    return caught.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// ---- results

TYPED_TEST(Conformance, MapsKeepTheOrder) {
  const auto pool = TypeParam::make();
  for (const std::size_t chunk : {0U, 1U, 7U, 5000U}) {
    const auto found = pool.with({.chunk = chunk}).map(call<square>, std::views::iota(0, 1000));
    ASSERT_EQ(found.size(), 1000U);
    for (int x = 0; x < 1000; ++x) ASSERT_EQ(found[static_cast<std::size_t>(x)], x * x);
  }
  EXPECT_THAT(pool.map(call<square>, {1, 2, 3}), ElementsAre(1, 4, 9));
  EXPECT_THAT(pool.map_async(call<square>, std::vector{1, 2, 3}).get(), ElementsAre(1, 4, 9));
  EXPECT_THAT(pool.map(call<shout>, std::vector<std::string>{"a", "b"}), ElementsAre("a!", "b!"));
  pool.map(call<nothing_of>, std::vector<int>(100));
}

std::vector<std::unique_ptr<int>> boxes_of(int count) {
  std::vector<std::unique_ptr<int>> all;
  for (int each = 0; each < count; ++each) all.push_back(std::make_unique<int>(each));
  return all;
}
std::vector<std::pair<std::unique_ptr<int>, int>> box_pairs() {
  std::vector<std::pair<std::unique_ptr<int>, int>> all;
  for (int each = 0; each < 3; ++each) all.emplace_back(std::make_unique<int>(each), 10);
  return all;
}
std::vector<parcel> parcels() {
  std::vector<parcel> all(3);
  for (auto& each : all) each = {.boxes = boxes_of(1), .label = "of "};
  return all;
}
auto box_maker() {
  return [next = 0]() mutable -> std::optional<std::unique_ptr<int>> {
    return next == 4 ? std::nullopt : std::optional(std::make_unique<int>(next++));
  };
}
template <class T>
auto moved_range(std::vector<T>& from) {
  return std::ranges::subrange(std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}
template <class Stream>
auto all_of(Stream stream) {
  std::vector<typename Stream::value_type> all;
  while (auto next = stream.next()) all.push_back(std::move(*next));
  return all;
}
template <class Stream>
auto sorted(Stream stream) {
  auto all = all_of(std::move(stream));
  std::ranges::sort(all);
  return all;
}
const auto to_box = std::views::transform([](int x) { return std::make_unique<int>(x); });

TYPED_TEST(Conformance, CallsTakeValuesThatCanOnlyBeMoved) {
  const auto pool = TypeParam::make();
  const auto mine = std::make_unique<int>(8);
  EXPECT_EQ(pool.apply(call<unboxed>, mine), 8);
  EXPECT_EQ(*mine, 8);
  EXPECT_EQ(pool.apply(call<unboxed>, pool.apply_async(call<boxed>, 9)), 9);
  EXPECT_THAT(pool.broadcast(call<unboxed>, mine), Each(8));
  EXPECT_THAT(pool.broadcast(call<unboxed>, std::make_unique<int>(7)), Each(7));
  EXPECT_EQ(pool.on(0).apply(call<opened>, std::move(parcels().front())), "of 0");
}

TYPED_TEST(Conformance, MapsTakeElementsThatCanOnlyBeMoved) {
  const auto pool = TypeParam::make();
  const auto mine = boxes_of(4);
  EXPECT_THAT(pool.map(call<unboxed>, mine), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pool.map_async(call<unboxed>, mine).get(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pool.on(0).map(call<unboxed>, mine), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pool.with({.chunk = 3}).map(call<unboxed>, mine), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(*mine[3], 3) << "elements that were lent are the caller's still";
  EXPECT_THAT(pool.map(call<unboxed>, boxes_of(4)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pool.map_async(call<unboxed>, boxes_of(4)).get(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pool.map(call<unboxed>, std::views::iota(0, 4) | to_box), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pool.map(call<unboxed>, boxes_of(4) | std::views::drop(2)), ElementsAre(2, 3));
  auto given = boxes_of(4);
  EXPECT_THAT(pool.map(call<unboxed>, moved_range(given)), ElementsAre(0, 1, 2, 3));
  std::map<int, std::unique_ptr<int>> table;
  for (int each = 0; each < 3; ++each) table.emplace(each, std::make_unique<int>(10));
  EXPECT_THAT(pool.starmap(call<unboxed_sum>, table | std::views::transform([](const auto& each) {
                                                return std::pair(std::make_unique<int>(*each.second), each.first);
                                              })),
              ElementsAre(10, 11, 12));
  const auto pairs = box_pairs();
  EXPECT_THAT(pool.starmap(call<unboxed_sum>, pairs), ElementsAre(10, 11, 12));
  EXPECT_THAT(pool.starmap_async(call<unboxed_sum>, box_pairs()).get(), ElementsAre(10, 11, 12));
  EXPECT_THAT(pool.map(call<opened>, parcels()), Each("of 0"));
  std::vector<std::vector<std::unique_ptr<int>>> nested(2);
  nested[1] = boxes_of(3);
  EXPECT_THAT(pool.map(call<count_of>, nested), ElementsAre(0, 3));
  EXPECT_THAT(pool.map(call<count_of>, std::move(nested)), ElementsAre(0, 3));
}

TYPED_TEST(Conformance, MapsGiveResultsThatCanOnlyBeMoved) {
  const auto pool = TypeParam::make();
  const auto found = pool.map(call<doubled>, boxes_of(3));
  EXPECT_THAT(found, ElementsAre(testing::Pointee(0), testing::Pointee(2), testing::Pointee(4)));
  auto later = pool.map_async(call<relabelled>, parcels()).get();
  EXPECT_EQ(later.at(2).label, "of !");
  auto collected = pool.with({}).collect_errors().map(call<doubled>, boxes_of(3));
  EXPECT_EQ(*collected.at(2).value(), 4);
  EXPECT_EQ(pool.with({}).collect_errors().map_async(call<relabelled>, parcels()).get().at(1).value().label, "of !");
}

TYPED_TEST(Conformance, StreamsTakeElementsThatCanOnlyBeMoved) {
  const auto pool = TypeParam::make();
  const auto mine = boxes_of(4);
  for (const std::size_t chunk : {0U, 1U, 3U}) {
    const auto calls = pool.with({.chunk = chunk});
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, mine)), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(sorted(calls.imap_unordered(call<unboxed>, mine)), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(*mine[3], 3) << "elements that were lent are the caller's still";
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, boxes_of(4))), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(sorted(calls.imap_unordered(call<unboxed>, boxes_of(4))), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, box_maker())), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(sorted(calls.imap_unordered(call<unboxed>, box_maker())), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, std::views::iota(0, 4) | to_box)), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, quick(std::views::iota(0, 4) | to_box))), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, quick(boxes_of(4)))), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, slow(box_maker()))), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, slow(mine))), ElementsAre(0, 1, 2, 3));
    auto given = boxes_of(4);
    EXPECT_THAT(sorted(calls.imap_unordered(call<unboxed>, moved_range(given))), ElementsAre(0, 1, 2, 3));
    const auto odd = std::views::filter([](const auto& box) { return *box % 2 == 1; });
    EXPECT_THAT(all_of(calls.imap(call<unboxed>, mine | odd)), ElementsAre(1, 3));
    EXPECT_THAT(sorted(calls.imap_unordered(call<unboxed>, mine | odd)), ElementsAre(1, 3));
    EXPECT_THAT(sorted(calls.imap_unordered(call<unboxed>, quick(mine | odd))), ElementsAre(1, 3));
    const auto pairs = box_pairs();
    EXPECT_THAT(all_of(calls.istarmap(call<unboxed_sum>, pairs)), ElementsAre(10, 11, 12));
    EXPECT_THAT(all_of(calls.istarmap(call<unboxed_sum>, box_pairs())), ElementsAre(10, 11, 12));
    EXPECT_THAT(all_of(calls.imap(call<opened>, parcels())), Each("of 0"));
    EXPECT_THAT(all_of(calls.on(0).imap_unordered(call<opened>, parcels())), Each("of 0"));
    EXPECT_THAT(sorted(calls.imap_unordered(call<count_of>, std::vector<std::vector<std::unique_ptr<int>>>(2))),
                ElementsAre(0, 0));
  }
}

TYPED_TEST(Conformance, StreamsAndFeedsGiveResultsThatCanOnlyBeMoved) {
  const auto pool = TypeParam::make();
  EXPECT_EQ(*all_of(pool.imap(call<doubled>, boxes_of(3))).at(2), 4);
  EXPECT_EQ(*all_of(pool.imap_unordered(call<doubled>, std::views::iota(2, 3) | to_box)).at(0), 4);
  EXPECT_EQ(all_of(pool.imap(call<relabelled>, parcels())).at(2).label, "of !");
  EXPECT_EQ(all_of(pool.imap(call<relabelled>, parcels()).as_results()).at(2).value().label, "of !");
  auto boxes = pool.template feed<std::unique_ptr<int>>(call<doubled>);
  auto labelled = pool.template feed<parcel>(call<relabelled>);
  EXPECT_TRUE(boxes.push(std::make_unique<int>(4)));
  EXPECT_TRUE(labelled.push(std::move(parcels().front())));
  EXPECT_EQ(**boxes.next(), 8);
  EXPECT_EQ(labelled.next()->label, "of !");
}

TYPED_TEST(Conformance, MapsStreamsAndFeedsTakeBoundValuesThatCanOnlyBeMoved) {
  const auto pool = TypeParam::make();
  const auto plus_ten = [] { return muster::bind_front(call<with_bound>, std::make_unique<int>(10)); };
  EXPECT_THAT(pool.map(plus_ten(), boxes_of(3)), ElementsAre(10, 11, 12));
  EXPECT_THAT(pool.map_async(plus_ten(), boxes_of(3)).get(), ElementsAre(10, 11, 12));
  EXPECT_THAT(all_of(pool.imap(plus_ten(), boxes_of(3))), ElementsAre(10, 11, 12));
  EXPECT_THAT(sorted(pool.imap_unordered(plus_ten(), boxes_of(3))), ElementsAre(10, 11, 12));
  EXPECT_THAT(all_of(pool.imap(plus_ten(), slow(box_maker()))), ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(pool.apply(plus_ten(), std::make_unique<int>(5)), 15);
  EXPECT_THAT(pool.broadcast(plus_ten(), std::make_unique<int>(5)), Each(15));
  auto feed = pool.template feed<std::unique_ptr<int>>(plus_ten());
  EXPECT_TRUE(feed.push(std::make_unique<int>(4)));
  EXPECT_EQ(*feed.next(), 14);
}

TYPED_TEST(Conformance, StarmapsUnpack) {
  const auto pool = TypeParam::make();
  const std::vector<std::pair<int, int>> pairs = {{1, 2}, {3, 4}};
  EXPECT_THAT(pool.starmap(call<add>, pairs), ElementsAre(3, 7));
  EXPECT_THAT(pool.starmap_async(call<add>, pairs).get(), ElementsAre(3, 7));
  std::vector<int> streamed;
  for (const int each : pool.istarmap(call<add>, pairs)) streamed.push_back(each);
  EXPECT_THAT(streamed, ElementsAre(3, 7));
}

TYPED_TEST(Conformance, EmptyInputsGiveNothing) {
  auto pool = TypeParam::make();
  const std::vector<int> none;
  EXPECT_TRUE(pool.map(call<square>, none).empty());
  EXPECT_TRUE(pool.map_async(call<square>, none).get().empty());
  EXPECT_TRUE(pool.collect_errors().map(call<square>, none).empty());
  EXPECT_TRUE(pool.starmap(call<add>, std::vector<std::pair<int, int>>()).empty());
  EXPECT_EQ(pool.imap(call<square>, none).next(), std::nullopt);
  EXPECT_EQ(pool.imap_unordered(call<square>, none).next(), std::nullopt);
  pool.map(call<nothing_of>, none);
  pool.close();
  pool.join();
}

TYPED_TEST(Conformance, TheFirstFailureOfAMapIsThrown) {
  const auto pool = TypeParam::make();
  EXPECT_THROW(pool.map(call<fail_at_three>, std::views::iota(0, 1000)), std::out_of_range);
  EXPECT_THROW(pool.map_async(call<fail_at_three>, std::views::iota(0, 1000)).get(), std::out_of_range);
}

TYPED_TEST(Conformance, CollectedErrorsTakeTheirElementsPlace) {
  const auto pool = TypeParam::make();
  const auto found = pool.with({.label = "some"}).collect_errors().map(call<fail_at_three>, std::views::iota(0, 100));
  ASSERT_EQ(found.size(), 100U);
  for (int x = 0; x < 100; ++x) {
    const auto& each = found[static_cast<std::size_t>(x)];
    ASSERT_EQ(each.has_value(), x != 3);
    if (each) {
      EXPECT_EQ(*each, x);
    }
  }
  EXPECT_EQ(found[3].error().message(), "three");
  EXPECT_EQ(found[3].error().place().element, 3U);
  EXPECT_EQ(found[3].error().place().label, "some");
  const auto voids = pool.collect_errors().map(call<nothing_of>, {1, 2});
  EXPECT_TRUE(voids[0].has_value() && voids[1].has_value());
}

// Predecessor's test of lambdas and locals: x_i = i * ones(10), and ones(10) beside it.
TYPED_TEST(Conformance, LambdasWithLocalsAreThoseWithBoundValues) {
  const auto pool = TypeParam::make();
  std::vector<std::vector<double>> xs;
  std::vector<std::pair<std::vector<double>, std::vector<double>>> pairs;
  for (int i = 0; i < 5; ++i) {
    xs.emplace_back(10, i);
    pairs.emplace_back(xs.back(), xs.back());
  }
  const std::vector<double> y(10, 1);
  EXPECT_THAT(pool.map(muster::bind_front(call<sum_of_both>, y), xs), ElementsAre(10, 20, 30, 40, 50));
  EXPECT_THAT(pool.starmap(call<sum_of_both>, pairs), ElementsAre(0, 20, 40, 60, 80));
}

// ---- streams

// Its iterators have no default constructor, and are moved only.
TYPED_TEST(Conformance, StreamsTakeAnyInputRange) {
  const auto pool = TypeParam::make();
  std::istringstream lines("1 2 3");
  std::vector<int> found;
  for (const int each : pool.imap(call<square>, std::views::istream<int>(lines))) found.push_back(each);
  EXPECT_THAT(found, ElementsAre(1, 4, 9));
}

TYPED_TEST(Conformance, StreamsKeepTheOrderOrYieldEverythingOnce) {
  const auto pool = TypeParam::make();
  int expected = 0;
  for (const int each : pool.imap(call<square>, std::views::iota(0, 500))) {
    ASSERT_EQ(each, expected * expected);
    ++expected;
  }
  EXPECT_EQ(expected, 500);
  std::vector<int> all;
  for (const int each : pool.imap_unordered(call<square>, std::views::iota(0, 500))) all.push_back(each);
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 500U);
  for (int x = 0; x < 500; ++x) ASSERT_EQ(all[static_cast<std::size_t>(x)], x * x);
}

TYPED_TEST(Conformance, EndlessInputIsTakenAWindowAhead) {
  const auto pool = TypeParam::make();
  int taken = 0;
  auto counted = std::views::iota(0) | std::views::transform([&taken](int x) {
                   ++taken;
                   return x;
                 });
  auto ordered = pool.with({.window = 5}).imap(call<square>, counted);
  EXPECT_EQ(taken, 0);
  for (int consumed = 1; consumed <= 100; ++consumed) {
    ASSERT_EQ(*ordered.next(), (consumed - 1) * (consumed - 1));
    ASSERT_LE(taken, consumed + 5);
  }
  taken = 0;
  auto unordered = pool.with({.window = 5}).imap_unordered(call<square>, counted);
  for (int consumed = 1; consumed <= 100; ++consumed) {
    ASSERT_TRUE(unordered.next());
    ASSERT_LE(taken, consumed + 5);
  }
}

TYPED_TEST(Conformance, StreamsAreWaitedForAsLongAsOneLikes) {
  const auto pool = TypeParam::make();
  for (const std::size_t chunk : {0U, 1U}) {
    auto squares = pool.with({.chunk = chunk}).imap(call<square>, std::views::iota(0, 3));
    for (int x = 0; x < 3; ++x) {
      EXPECT_TRUE(squares.wait_for(60s));
      EXPECT_TRUE(squares.wait_for(0s)) << "it is there";
      EXPECT_EQ(squares.next(), x * x);
    }
    EXPECT_TRUE(squares.wait_for(60s)) << "the end";
    EXPECT_EQ(squares.next(), std::nullopt);
    auto all = pool.with({.chunk = chunk}).imap_unordered(call<square>, std::views::iota(0, 3)).as_results();
    int count = 0;
    while (all.wait_for(60s) && all.next()) ++count;
    EXPECT_EQ(count, 3);
  }
  int made = 0;
  const auto generate = [&made]() -> std::optional<int> { return made < 3 ? std::optional(made++) : std::nullopt; };
  auto generated = pool.imap(call<square>, generate);
  for (int x = 0; x < 3; ++x) {
    EXPECT_TRUE(generated.wait_for(60s)) << "of an input that may make wait";
    EXPECT_EQ(generated.next(), x * x);
  }
  EXPECT_TRUE(generated.wait_for(60s)) << "the end";
  EXPECT_EQ(generated.next(), std::nullopt);
  made = 0;
  auto looked_at = pool.imap_unordered(call<square>, generate);
  while (!looked_at.wait_for(0s)) std::this_thread::yield();
  EXPECT_TRUE(looked_at.next()) << "although nobody waited";
  if constexpr (!TypeParam::is_serial) {
    const event end;
    auto late = pool.imap(call<wait_for_it>, std::vector{end});
    EXPECT_FALSE(late.wait_for(1ms));
    EXPECT_FALSE(late.wait_for(1ms));
    end.set();
    EXPECT_TRUE(late.wait_for(60s));
    EXPECT_EQ(late.next(), 1);
  }
}

TYPED_TEST(Conformance, AFailingElementOfAStreamThrowsAtItsPlace) {
  const auto pool = TypeParam::make();
  auto results = pool.imap(call<fail_at_three>, std::views::iota(0, 5));
  for (int x = 0; x < 3; ++x) EXPECT_EQ(*results.next(), x);
  EXPECT_THROW(results.next(), std::out_of_range);
  EXPECT_EQ(*results.next(), 4);
  EXPECT_EQ(results.next(), std::nullopt);
  int failures = 0;
  for (auto& each : pool.imap_unordered(call<fail_at_three>, std::views::iota(0, 50)).as_results()) {
    if (each) continue;
    ++failures;
    EXPECT_EQ(each.error().place().element, 3U);
  }
  EXPECT_EQ(failures, 1);
}

TYPED_TEST(Conformance, AnErrorOfTheInputIsThrownAtItsPlaceOnce) {
  const auto pool = TypeParam::make();
  const auto input =
      std::views::iota(0) | std::views::transform([](int x) { return x == 2 ? throw std::logic_error("input") : x; });
  auto results = pool.imap(call<square>, input);
  EXPECT_EQ(*results.next(), 0);
  EXPECT_EQ(*results.next(), 1);
  EXPECT_THROW(results.next(), std::logic_error);
  EXPECT_EQ(results.next(), std::nullopt);
}

TYPED_TEST(Conformance, EachElementFindsTheCallableAsItWasGiven) {
  const auto pool = TypeParam::make();
  const std::vector numbers{1, 2, 3, 4};
  const auto expected = ElementsAre(11, 12, 13, 14);
  EXPECT_THAT(pool.map(counter(), numbers), expected);
  EXPECT_THAT(pool.starmap(counter(), std::vector{std::tuple(1), std::tuple(2), std::tuple(3), std::tuple(4)}),
              expected);
  for (const std::size_t chunk : {1U, 4U}) {
    EXPECT_THAT(pool.with({.chunk = chunk}).map(counter(), numbers), expected);
    std::vector<int> results;
    for (const int each : pool.with({.chunk = chunk}).imap(counter(), numbers)) results.push_back(each);
    EXPECT_THAT(results, expected);
  }
  auto feed = pool.template feed<int>(counter());
  for (const int each : numbers) {
    EXPECT_TRUE(feed.push(each));
    EXPECT_EQ(feed.next(), 10 + each);
  }
}

TYPED_TEST(Conformance, ANullTextSaysWhichArgumentOrElementItIs) {
  const auto pool = TypeParam::make();
  const char* const nothing = nullptr;
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.apply(call<shouted_twice>, "a", nothing); }),
              HasSubstr("argument 2 is a null const char*"));
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.broadcast(call<shout>, nothing); }),
              HasSubstr("argument 1 is a null const char*"));
  EXPECT_THAT(what_is_thrown(errc::invalid_argument,
                             [&] {
                               auto number = pool.apply_async(call<square>, 2);
                               pool.apply(call<shouted>, std::move(number), nothing);
                             }),
              HasSubstr("argument 2 is a null const char*"));
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.map(call<shout>, std::vector{"a", "b", nothing}); }),
              HasSubstr("element 2 is a null const char*"));
  EXPECT_THAT(what_is_thrown(errc::invalid_argument,
                             [&] {
                               for (const auto& each : pool.imap(call<shout>, std::vector{nothing})) discard({}, each);
                             }),
              HasSubstr("is a null const char*"));
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { static_cast<void>(bind_front(call<shout>, nothing)); }),
              HasSubstr("bound argument 1 is a null const char*"));
  EXPECT_EQ(pool.apply(call<shout>, "still there"), "still there!");
}

template <class Pool>
void expect_null_callables_refused(const Pool& pool) {
  int (*const nowhere)(int) = nullptr;
  const auto said = HasSubstr("the callable is a null pointer");
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.apply(nowhere, 1); }), said);
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.broadcast(nowhere, 1); }), said);
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.map(nowhere, std::vector{1}); }), said);
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.imap(nowhere, std::vector{1}).next(); }), said);
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { static_cast<void>(bind_front(nowhere, 1)); }), said);
  EXPECT_EQ(pool.apply(square, 2), 4);
}

TEST(NullCallable, IsRefusedByTheCallerAndNotCalled) {
  expect_null_callables_refused(with_pool::make());
  expect_null_callables_refused(with_thread_pool::make());
  expect_null_callables_refused(with_serial_pool::make());
}

TYPED_TEST(Conformance, WhatIsPushedIntoAFeedComesOutInOrder) {
  const auto pool = TypeParam::make();
  auto results = pool.template feed<int>(call<fail_at_three>);
  for (int each = 0; each < 3; ++each) {
    EXPECT_TRUE(results.push(each));
    ASSERT_EQ(results.next(), each);
  }
  results.push(3);
  EXPECT_THROW(results.next(), std::out_of_range);
  std::thread source([&] {
    for (int each = 4; each < 100; ++each) results.push(each);
    results.close();
  });
  int expected = 4;
  for (const int each : results) ASSERT_EQ(each, expected++);
  EXPECT_EQ(expected, 100);
  source.join();
}

// ---- futures

TYPED_TEST(Conformance, ACallbackMayDrainThePoolWhileACallWaitsForAnotherCallback) {
  auto pool = TypeParam::make();
  std::promise<void> began;
  std::promise<void> submitted;
  std::promise<void> drained;
  pool.apply_async(call<nothing>)
      .on_complete(
          [&] {
            began.set_value();
            submitted.get_future().wait();
            pool.drain();
            drained.set_value();
          },
          [](const error_info&) {});
  began.get_future().wait();
  auto late = pool.apply_async(call<add>, pool.apply_async(call<add>, 1, 1).then([](int sum) { return sum + 1; }), 1);
  submitted.set_value();
  drained.get_future().wait();
  EXPECT_EQ(late.get(), 4);
}

TYPED_TEST(Conformance, ACallbackMayConsumeAFeedThatAnotherOneFills) {
  const auto pool = TypeParam::make();
  auto fed = pool.template feed<int>(call<square>);
  std::promise<void> began;
  std::promise<int> found;
  pool.apply_async(call<nothing>)
      .on_complete(
          [&] {
            began.set_value();
            found.set_value(fed.next().value_or(0));
          },
          [](const error_info&) {});
  began.get_future().wait();
  pool.apply_async(call<nothing>).on_complete([&] { fed.push(3); }, [](const error_info&) {});
  EXPECT_EQ(found.get_future().get(), 9);
}

// ---- tasks that call their pool

TYPED_TEST(Conformance, TasksMayCallTheirOwnPoolAlsoWithOneWorker) {
  const auto pool = TypeParam::make({.workers = 1});
  EXPECT_EQ(pool.apply(call<nested_sum>, 10), 23);
  EXPECT_EQ(pool.apply(call<nested_thrice>, 3), 4);
  EXPECT_THAT(pool.map(call<nested_sum>, {1, 2}), ElementsAre(5, 7));
}

// ---- one worker

TYPED_TEST(Conformance, OnNamesTheWorker) {
  const auto pool = TypeParam::make();
  for (std::size_t worker = 0; worker < pool.size(); ++worker) {
    const auto index = static_cast<int>(worker);
    for (int round = 0; round < 10; ++round) ASSERT_EQ(pool.on(worker).apply(call<who>, round), index);
    EXPECT_THAT(pool.on(worker).map(call<who>, std::views::iota(0, 100)), Each(index));
    EXPECT_THAT(pool.with({.chunk = 2}).on(worker).map(call<who>, std::views::iota(0, 10)), Each(index));
    for (const int each : pool.on(worker).imap(call<who>, std::views::iota(0, 50))) ASSERT_EQ(each, index);
    for (const int each : pool.on(worker).imap_unordered(call<who>, std::views::iota(0, 50))) ASSERT_EQ(each, index);
    EXPECT_EQ(*pool.on(worker).collect_errors().map(call<who>, {1})[0], index);
  }
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { static_cast<void>(pool.on(9)); }),
              AllOf(HasSubstr("on(9)"), HasSubstr(std::to_string(pool.size()) + " workers")));
}

TYPED_TEST(Conformance, BroadcastsRunOnceOnEveryWorker) {
  const auto pool = TypeParam::make({.workers = 3});
  std::vector<int> everybody(pool.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  for (int round = 0; round < 10; ++round) ASSERT_EQ(pool.broadcast(call<my_id>), everybody);
  EXPECT_EQ(pool.broadcast_async(call<add>, 2, 3).get(), std::vector<int>(pool.size(), 5));
  pool.broadcast(call<nothing>);
  EXPECT_THROW(pool.broadcast(call<fail_at_three>, 3), std::out_of_range);
}

TYPED_TEST(Conformance, WorkersAreThereOnceThePoolHasStarted) {
  auto pool = TypeParam::make();
  pool.started().get();
  pool.started().get();
  const auto workers = pool.workers();
  ASSERT_EQ(workers.size(), pool.size());
  for (std::size_t index = 0; index < workers.size(); ++index) {
    EXPECT_EQ(workers[index].index, index);
    EXPECT_EQ(workers[index].incarnation, 1U);
    EXPECT_EQ(workers[index].pid == ::getpid(), !TypeParam::has_processes);
    EXPECT_EQ(pool.on(index).apply(call<my_id>), static_cast<int>(index));
  }
  pool.close();
  pool.join();
  for (const auto& each : pool.workers()) EXPECT_EQ(each.state, worker_lifecycle::state::absent);
}

TYPED_TEST(Conformance, WhatIsSharedIsReadByAllTasks) {
  const auto pool = TypeParam::make();
  table squares{};
  for (std::size_t each = 0; each < 1000; ++each) squares.values[each] = static_cast<int>(each * each);
  const auto shared = pool.share(squares);
  EXPECT_EQ(pool.apply(call<look_up>, shared, 31), 961);
  const auto found = pool.map(muster::bind_front(call<look_up>, shared), std::views::iota(0, 1000));
  for (int x = 0; x < 1000; ++x) ASSERT_EQ(found[static_cast<std::size_t>(x)], x * x);
}

TYPED_TEST(Conformance, PoolsOfProcessesGrowAndShrink) {
  if constexpr (!TypeParam::has_processes) {
    GTEST_SKIP() << "a pool of threads has the size that it was made with: docs/architecture.md, The pools";
  } else {
    auto pool = TypeParam::make();
    pool.resize(3);
    EXPECT_EQ(pool.size(), 3U);
    EXPECT_THAT(pool.broadcast(call<my_id>), ElementsAre(0, 1, 2));
    pool.resize_async(1).get();
    EXPECT_THAT(pool.broadcast(call<my_id>), ElementsAre(0));
    EXPECT_EQ(pool.map(call<square>, std::views::iota(0, 100)).size(), 100U);
  }
}

// ---- bounds, statistics, many callers

TYPED_TEST(Conformance, StatisticsCountTasks) {
  auto pool = TypeParam::make();
  EXPECT_EQ(pool.size(), TypeParam::is_serial ? 1U : 2U);
  for (int round = 0; round < 10; ++round) pool.apply(call<add>, 1, round);
  pool.drain();
  const auto found = pool.stats();
  EXPECT_EQ(found.pending, 0U);
  if constexpr (TypeParam::has_processes) {
    EXPECT_EQ(found.tasks.accepted, 10U);
    EXPECT_EQ(found.tasks.ended, 10U);
  } else {
    EXPECT_EQ(found.accepted, 10U);
    EXPECT_EQ(found.ended, 10U);
  }
}

TYPED_TEST(Conformance, OneTaskTooManyIsTreatedAsThePolicySays) {
  if constexpr (TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 1, .overflow = overflow_policy::throw_error});
    for (int round = 0; round < 10; ++round) EXPECT_EQ(pool.apply(call<add>, 1, round), round + 1);
  } else {
    const auto fill = [](const auto& pool) {
      std::vector<future<int>> both;
      for (int each = 0; each < 2; ++each) both.push_back(pool.apply_async(call<hang>, each));
      return both;
    };
    const auto empty = [](auto& both) {
      for (auto& each : both) each.cancel();
      for (auto& each : both) each.wait();
    };
    {
      const auto pool = TypeParam::make({.max_pending = 2, .overflow = overflow_policy::throw_error});
      auto both = fill(pool);
      EXPECT_THAT(what_is_thrown(errc::overflow, [&] { static_cast<void>(pool.apply_async(call<add>, 1, 1)); }),
                  HasSubstr("2 pending"));
      empty(both);
      EXPECT_EQ(pool.apply(call<add>, 1, 1), 2);
    }
    {
      const auto pool = TypeParam::make({.max_pending = 2, .overflow = overflow_policy::fail_task});
      auto both = fill(pool);
      EXPECT_EQ(pool.apply_async(call<add>, 1, 1).get_result().error(), errc::overflow);
      empty(both);
    }
    {
      const auto pool = TypeParam::make({.max_pending = 2, .overflow_wait = 1ms});
      auto both = fill(pool);
      what_is_thrown(errc::overflow, [&] { static_cast<void>(pool.apply_async(call<add>, 1, 1)); });
      empty(both);
    }
    const auto pool = TypeParam::make({.max_pending = 2});
    for (int round = 0; round < 500; ++round) static_cast<void>(pool.apply_async(call<add>, 1, round));
    auto both = fill(pool);
    std::thread later([&] { empty(both); });
    EXPECT_EQ(pool.apply(call<add>, 1, 1), 2);
    later.join();
  }
}

TYPED_TEST(Conformance, ElementsThatRunAreAskedToStopWhenTheirMapIsCancelled) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make();
    const event began;
    auto map = pool.on(1).map_async(call<tell_and_hang>, std::vector{began});
    began.wait();
    EXPECT_FALSE(map.cancel() && map.get_result().has_value());
    EXPECT_EQ(pool.on(1).apply(call<add>, 1, 1), 2) << "its worker is free again";
  }
}

TYPED_TEST(Conformance, AMapCountsAsOneCallAgainstMaxPending) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 2, .overflow = overflow_policy::throw_error});
    auto hangs = pool.on(0).apply_async(call<hang>, 1);
    auto map = pool.on(1).map_async(call<square>, std::views::iota(0, 10'000));
    EXPECT_EQ(map.get().size(), 10'000U);
    EXPECT_EQ(pool.on(1).apply(call<add>, 1, 1), 2) << "whoever has seen the end finds room";
    auto more = pool.on(1).map_async(call<hang>, std::vector{1});
    what_is_thrown(errc::overflow, [&] { static_cast<void>(pool.on(1).apply_async(call<add>, 1, 1)); });
    what_is_thrown(errc::overflow, [&] { static_cast<void>(pool.on(1).map_async(call<square>, std::vector{1, 2})); });
    more.cancel();
    more.wait();
    EXPECT_EQ(pool.on(1).map(call<square>, std::vector{1, 2}).size(), 2U);
    hangs.cancel();
    hangs.wait();
  }
}

TYPED_TEST(Conformance, AStarmapCountsAsOneCallAgainstMaxPending) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 2, .overflow = overflow_policy::throw_error});
    auto hangs = pool.on(0).apply_async(call<hang>, 1);
    const std::vector<std::pair<int, int>> pairs(10'000, {1, 2});
    EXPECT_EQ(pool.on(1).starmap(call<add>, pairs).size(), 10'000U);
    auto more = pool.on(1).apply_async(call<hang>, 1);
    what_is_thrown(errc::overflow, [&] { static_cast<void>(pool.on(1).starmap_async(call<add>, pairs)); });
    for (auto* each : {&more, &hangs}) {
      each->cancel();
      each->wait();
    }
    EXPECT_EQ(pool.starmap(call<add>, pairs).size(), 10'000U);
  }
}

TYPED_TEST(Conformance, ABroadcastCountsAsOneCallForEachWorkerAgainstMaxPending) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 3, .overflow = overflow_policy::throw_error});
    auto one = pool.apply_async(call<hang>, 1);
    auto both = pool.broadcast_async(call<hang>, 2);
    EXPECT_THAT(what_is_thrown(errc::overflow, [&] { static_cast<void>(pool.apply_async(call<add>, 1, 1)); }),
                HasSubstr("3 pending"));
    one.cancel();
    one.wait();
    auto in_its_place = pool.apply_async(call<add>, 1, 1);
    both.cancel();
    both.wait();
    EXPECT_EQ(in_its_place.get(), 2);
    EXPECT_THAT(pool.broadcast(call<add>, 1, 1), ElementsAre(2, 2));
  }
}

TYPED_TEST(Conformance, ABroadcastThatFindsNoRoomForAllWorkersLeavesThoseThatHaveIt) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 3, .overflow = overflow_policy::throw_error});
    auto one = pool.on(0).apply_async(call<hang>, 1);
    auto other = pool.on(1).apply_async(call<hang>, 2);
    what_is_thrown(errc::overflow, [&] { static_cast<void>(pool.broadcast_async(call<add>, 1, 1)); });
    EXPECT_EQ(pool.stats().pending, 3U) << "that of the first worker";
    for (auto* each : {&one, &other}) {
      each->cancel();
      each->wait();
    }
    EXPECT_TRUE(test::eventually([&] { return pool.stats().pending == 0; }));
    EXPECT_THAT(pool.broadcast(call<add>, 1, 1), ElementsAre(2, 2));
  }
}

// max_pending is one, so that a call for which it is enough is the one that makes them.
TYPED_TEST(Conformance, WhatTasksCallDoesNotCountAgainstMaxPending) {
  for (const auto policy : {overflow_policy::throw_error, overflow_policy::fail_task, overflow_policy::block}) {
    for (const unsigned workers : {1U, 2U}) {
      const auto pool =
          TypeParam::make({.workers = workers, .max_pending = 1, .overflow = policy, .overflow_wait = 60s});
      EXPECT_EQ(pool.apply(call<nested_sum>, 10), 23);
      EXPECT_EQ(pool.apply(call<nested_thrice>, 3), 4);
      EXPECT_EQ(pool.apply(call<many_nested>, 100), 4950 + 100);
      EXPECT_THAT(pool.map(call<nested_sum>, {1, 2}), ElementsAre(5, 7));
    }
  }
}

TYPED_TEST(Conformance, AMapThatFindsNoRoomFailsWhereThePolicySaysSo) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 1, .overflow = overflow_policy::fail_task});
    auto hangs = pool.on(0).apply_async(call<hang>, 1);
    EXPECT_EQ(pool.on(1).map_async(call<square>, std::vector{1, 2}).get_result().error(), errc::overflow);
    for (const auto& each : pool.on(1).collect_errors().map(call<square>, std::vector{1, 2})) {
      ASSERT_FALSE(each);
      EXPECT_EQ(each.error(), errc::overflow);
    }
    hangs.cancel();
    hangs.wait();
    EXPECT_EQ(pool.on(1).map(call<square>, std::vector{1, 2}).size(), 2U);
  }
}

TYPED_TEST(Conformance, AMapWaitsForRoomAsLongAsThePolicySays) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 1});
    auto hangs = pool.on(0).apply_async(call<hang>, 1);
    std::atomic<bool> makes_room = false;
    std::thread later([&] {
      makes_room = true;
      hangs.cancel();
      hangs.wait();
    });
    EXPECT_THAT(pool.on(1).map(call<square>, std::vector{1, 2}), ElementsAre(1, 4));
    EXPECT_TRUE(makes_room);
    later.join();
    const auto impatient = TypeParam::make({.max_pending = 1, .overflow_wait = 1ms});
    auto more = impatient.on(0).apply_async(call<hang>, 1);
    what_is_thrown(errc::overflow, [&] { static_cast<void>(impatient.on(1).map(call<square>, std::vector{1, 2})); });
    more.cancel();
    more.wait();
  }
}

TYPED_TEST(Conformance, StreamsAndCallsThatWaitForFuturesDoNotCountAgainstMaxPending) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.max_pending = 1, .overflow = overflow_policy::throw_error});
    auto hangs = pool.on(0).apply_async(call<hang>, 1);
    int count = 0;
    for ([[maybe_unused]] const int each : pool.on(1).imap(call<square>, std::views::iota(0, 100))) ++count;
    for ([[maybe_unused]] const int each : pool.on(1).imap_unordered(call<square>, std::views::iota(0, 100))) ++count;
    for ([[maybe_unused]] const int each : pool.on(1).imap(call<square>, slow(std::views::iota(0, 100)))) ++count;
    const std::vector<std::pair<int, int>> pairs(100, {1, 2});
    for (const int each : pool.on(1).istarmap(call<add>, pairs)) count += each == 3 ? 1 : 0;
    auto pushed = pool.on(1).template feed<int>(call<square>);
    for (int each = 0; each < 100; ++each) {
      pushed.push(each);
      count += pushed.next() == each * each ? 1 : 0;
    }
    EXPECT_EQ(count, 500);
    hangs.cancel();
    hangs.wait();
    auto sum = pool.on(1).apply_async(call<add>, pool.on(1).apply_async(call<add>, 1, 2), 3);
    EXPECT_EQ(sum.get(), 6);
  }
}

TYPED_TEST(Conformance, TimeoutsAreHonouredOrRefused) {
  const auto pool = TypeParam::make();
  if constexpr (TypeParam::has_processes) {
    EXPECT_EQ(pool.with({.timeout = 20ms}).apply_async(call<hang>, 1).get_result().error(), errc::timed_out);
  } else {
    EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { static_cast<void>(pool.with({.timeout = 20ms})); }),
                AllOf(HasSubstr("timeout"), HasSubstr("stop_requested")));
    for (const auto& refused : {task_options{.deadline = 1s}, task_options{.retry_on = retry::exceptions()},
                                task_options{.priority = priority::high}}) {
      EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { static_cast<void>(pool.with(refused)); }),
                  HasSubstr("pool of processes"));
    }
  }
  EXPECT_EQ(pool.with({.retries = 3}).apply(call<add>, 1, 1), 2);
}

// ---- the end

TYPED_TEST(Conformance, CloseLetsEverythingFinishAndRefusesWhatComesAfter) {
  auto pool = TypeParam::make();
  std::vector<future<int>> futures;
  for (int each = 0; each < 300; ++each) futures.push_back(pool.apply_async(call<add>, each, 1));
  auto whole = pool.map_async(call<square>, std::views::iota(0, 1000));
  pool.close();
  pool.close();
  const auto closed = [](auto refused) {
    EXPECT_THAT(what_is_thrown(errc::pool_closed, refused), HasSubstr("closed"));
  };
  closed([&] { pool.apply(call<add>, 1, 1); });
  closed([&] { pool.map(call<square>, {1, 2}); });
  closed([&] { static_cast<void>(pool.imap(call<square>, std::vector{1}).next()); });
  pool.join();
  for (int each = 0; each < 300; ++each) EXPECT_EQ(futures[static_cast<std::size_t>(each)].get(), each + 1);
  EXPECT_EQ(whole.get().size(), 1000U);
}

TYPED_TEST(Conformance, DrainWaitsForEverything) {
  auto pool = TypeParam::make();
  std::vector<future<int>> futures;
  for (int each = 0; each < 300; ++each) futures.push_back(pool.apply_async(call<add>, each, 1));
  EXPECT_TRUE(pool.drain(60s));
  for (auto& each : futures) EXPECT_TRUE(each.ready());
}

TYPED_TEST(Conformance, DrainingIsAwaitedToo) {
  auto pool = TypeParam::make();
  std::vector<future<int>> futures;
  for (int each = 0; each < 300; ++each) futures.push_back(pool.apply_async(call<add>, each, 1));
  auto drained = pool.drain_async();
  what_is_thrown(errc::pool_closed, [&] { pool.apply(call<add>, 1, 1); });
  auto counted = drained.then(
      [&] { return std::count_if(futures.begin(), futures.end(), [](const auto& each) { return each.ready(); }); });
  EXPECT_EQ(counted.get(), 300);
  pool.drain_async().get();
}

TYPED_TEST(Conformance, DrainingEndsWithTerminate) {
  auto pool = TypeParam::make();
  if constexpr (TypeParam::is_serial) {
    pool.terminate();
    pool.drain_async().get();
  } else {
    const event began;
    auto stuck = pool.apply_async(call<tell_and_hang>, began);
    began.wait();
    auto drained = pool.drain_async();
    auto again = pool.drain_async();
    EXPECT_FALSE(drained.wait_for(1ms));
    pool.terminate();
    drained.get();
    again.get();
    EXPECT_TRUE(stuck.ready());
  }
}

TYPED_TEST(Conformance, JoinWantsAPoolThatIsClosed) {
  auto pool = TypeParam::make();
  EXPECT_THAT(what_is_thrown(errc::invalid_argument, [&] { pool.join(); }), HasSubstr("close()"));
  pool.close();
  EXPECT_TRUE(pool.join_for(60s));
}

TYPED_TEST(Conformance, TerminateEndsEverything) {
  if constexpr (TypeParam::is_serial) {
    auto pool = TypeParam::make();
    pool.terminate();
    pool.join();
    what_is_thrown(errc::pool_closed, [&] { pool.apply(call<add>, 1, 1); });
  } else {
    auto pool = TypeParam::make();
    std::vector<future<int>> futures;
    for (int each = 0; each < 500; ++each) futures.push_back(pool.apply_async(call<hang>, each));
    auto whole = pool.map_async(call<hang>, std::views::iota(0, 10));
    EXPECT_FALSE(pool.drain(1ms));
    EXPECT_FALSE(pool.join_for(1ms));
    pool.terminate();
    pool.join();
    std::size_t values = 0;
    for (auto& each : futures) {
      const auto end = each.get_result();
      if (end) {
        ++values;  // it heeded the call to stop
      } else {
        EXPECT_TRUE(end.error() == errc::cancelled || end.error() == errc::worker_died) << end.error().describe();
      }
    }
    EXPECT_LE(values, 2U);
    EXPECT_FALSE(whole.get_result());
  }
}

TYPED_TEST(Conformance, TheDestructorEndsWhatIsUnderWayAndFuturesOutliveIt) {
  std::vector<future<int>> futures;
  {
    const auto pool = TypeParam::make();
    const int tasks = TypeParam::is_serial ? 0 : 50;
    for (int each = 0; each < tasks; ++each) futures.push_back(pool.apply_async(call<hang>, each));
    futures.push_back(pool.apply_async(call<add>, 1, 1));
  }
  for (auto& each : futures) {
    EXPECT_TRUE(each.ready());
    static_cast<void>(each.get_result());
  }
}

// ---- deaths, where there are processes

TYPED_TEST(Conformance, ADeathCostsOneTaskOrOneElement) {
  if constexpr (!TypeParam::has_processes) {
    GTEST_SKIP() << "a thread does not die alone";
  } else {
    const auto pool = TypeParam::make();
    try {
      pool.apply(call<die>, 1);
      FAIL();
    } catch (const worker_died& caught) {
      EXPECT_EQ(caught.status().signal(), SIGKILL);
    }
    EXPECT_EQ(pool.apply(call<add>, 1, 1), 2);
    const auto found = pool.collect_errors().map(call<die_at_three>, std::views::iota(0, 100));
    for (int x = 0; x < 100; ++x) ASSERT_EQ(found[static_cast<std::size_t>(x)].has_value(), x != 3);
    EXPECT_EQ(found[3].error(), errc::worker_died);
    auto stream = pool.imap(call<die_at_three>, std::views::iota(0, 5));
    for (int x = 0; x < 3; ++x) EXPECT_EQ(*stream.next(), x);
    EXPECT_THROW(stream.next(), worker_died);
    EXPECT_EQ(*stream.next(), 4);
  }
}

TYPED_TEST(Conformance, RetriesSurviveDeaths) {
  if constexpr (!TypeParam::has_processes) {
    GTEST_SKIP() << "a thread does not die alone";
  } else {
    const auto pool = TypeParam::make();
    EXPECT_EQ(pool.with({.retries = 2}).apply(call<die_first>, 5), 5);
    EXPECT_THAT(pool.with({.retries = 2}).on(1).map(call<die_first>, {6, 7}), ElementsAre(6, 7));
  }
}

TYPED_TEST(Conformance, WorkersThatAreKilledWhileIdleOrBusyLoseNothingThatIsRetried) {
  if constexpr (!TypeParam::has_processes) {
    GTEST_SKIP() << "a thread does not die alone";
  } else {
    const auto pool = TypeParam::make();
    std::vector<future<int>> futures;
    for (int each = 0; each < 1000; ++each) {
      futures.push_back(pool.with({.retries = 20}).apply_async(call<add>, each, 1));
      if (each % 200 != 199) continue;
      for (const auto& victim : pool.workers()) {  // only who has started: starts that fail break the pool
        if (victim.state == worker_lifecycle::state::working) ::kill(victim.pid, SIGKILL);
      }
    }
    for (int each = 0; each < 1000; ++each) ASSERT_EQ(futures[static_cast<std::size_t>(each)].get(), each + 1);
  }
}

TYPED_TEST(Conformance, CallbacksOfMapsAreCalledOnce) {
  const auto pool = TypeParam::make();
  std::atomic<int> values = 0;
  pool.map_async(call<square>, std::vector<int>(50, 1))
      .on_complete([&](const std::vector<int>& all) { values += static_cast<int>(all.size()); },
                   [&](const error_info&) { values -= 1000; });
  EXPECT_TRUE(test::eventually([&] { return values == 50; }));
}

TYPED_TEST(Conformance, WhenAnyAsksTheOthersToStop) {
  if constexpr (!TypeParam::is_serial) {
    auto pool = TypeParam::make();
    const event began;
    std::vector<future<int>> race;
    race.push_back(pool.apply_async(call<tell_and_hang>, began));
    began.wait();
    race.push_back(pool.apply_async(call<add>, 2, 2));
    EXPECT_EQ(when_any(std::move(race)).get().value, 4);
    EXPECT_TRUE(pool.drain(60s)) << "the other one would go on for ever";
  }
}

TYPED_TEST(Conformance, AMapThatIsCancelledIsWithdrawn) {
  if constexpr (!TypeParam::is_serial) {
    const auto pool = TypeParam::make({.workers = 1});
    auto whole = pool.map_async(call<hang>, std::views::iota(0, 10));
    EXPECT_TRUE(whole.cancel());
    EXPECT_EQ(whole.get_result().error(), errc::cancelled);
  }
}

}  // namespace
}  // namespace muster::conformance_test

namespace muster::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Pools, CallConformance, conformance_test::kinds, conformance_test::kind_names);
}  // namespace muster::test
