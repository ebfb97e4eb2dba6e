// SPDX-License-Identifier: BSL-1.0
// Values as large as any that compile arrive in all ways, in processes and threads with little stack; larger ones are
// sent by what owns them.
#include <muster/async/std_future.hpp>
#include <muster/serialize/max_value_bytes.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <muster/pool/async.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/ctx_thread_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/this_pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>
#include <muster/serialize/shared_object.hpp>

#include "small_stacks.hpp"

namespace muster::large_value_test {
namespace {

namespace asio = boost::asio;
using test::large_value;
using test::make_large;

/// Two of them are a value.
struct half_value {
  std::array<std::uint32_t, max_value_bytes / 2 / sizeof(std::uint32_t)> numbers;
};

bool is_one(const large_value& given) { return given.begins_with(1); }
bool is_one_by_value(large_value given) { return given.begins_with(1); }
bool is_one_by_rvalue(large_value&& given) { return given.begins_with(1); }

large_value next_of(const large_value& given) {
  large_value made = given;
  for (auto& each : made.numbers) ++each;
  return made;
}

std::vector<large_value> many() { return {*make_large(1), *make_large(1), *make_large(1)}; }

// Each of these is a use of its own, and takes the stack of its own function.

template <class Pool>
void pass_arguments(const Pool& pool) {
  const auto one = make_large(1);
  EXPECT_TRUE(pool.apply(is_one, *one));
  EXPECT_TRUE(pool.apply(is_one_by_value, *one));
  EXPECT_TRUE(pool.apply(is_one_by_rvalue, *one));
  const auto halves = std::make_unique<half_value>();
  const auto count = [](const half_value& a, const half_value& b) { return a.numbers.size() + b.numbers.size(); };
  EXPECT_EQ(pool.apply(count, *halves, *halves), std::tuple_size_v<decltype(large_value::numbers)>);
  pool.broadcast([](const large_value&) {}, *one);
}

template <class Pool>
void pass_results(const Pool& pool) {
  const auto one = make_large(1);
  const auto direct = pool.apply(next_of, *one);
  EXPECT_TRUE(direct.begins_with(2));
}

template <class Pool>
void pass_results_as_data(const Pool& pool) {
  const auto one = make_large(1);
  const auto found = pool.apply_async(next_of, *one).get_result();
  EXPECT_TRUE(found->begins_with(2));
}

template <class Pool>
void pass_to_callbacks(const Pool& pool) {
  const auto one = make_large(1);
  const auto found = pool.apply_async(next_of, *one).then([](const large_value& two) { return next_of(two); }).get();
  EXPECT_TRUE(found.begins_with(3));
}

template <class Pool>
void pass_to_std(const Pool& pool) {
  const auto one = make_large(1);
  const auto found = pool.apply_async(next_of, *one).std().get();
  EXPECT_TRUE(found.begins_with(2));
}

template <class Pool>
void pass_futures(const Pool& pool) {
  const auto zero = make_large(0);
  EXPECT_TRUE(pool.apply(is_one, pool.apply_async(next_of, *zero)));
  EXPECT_TRUE(pool.apply(is_one_by_value, pool.apply_async(next_of, *zero)));
}

template <class Pool>
void pass_several_results(const Pool& pool) {
  std::vector<future<large_value>> all;
  const auto one = make_large(1);
  for (int count = 0; count < 3; ++count) all.push_back(pool.apply_async(next_of, *one));
  for (const auto& each : when_all(std::move(all)).get()) EXPECT_TRUE(each.begins_with(2));
}

template <class Pool>
void pass_bound_values(const Pool& pool) {
  const auto one = make_large(1);
  EXPECT_TRUE(pool.apply(bind_front(is_one, *one)));
  const auto all =
      pool.map(bind_front([](const large_value& given, int) { return is_one(given); }, *one), std::vector<int>(5));
  EXPECT_EQ(all, std::vector<bool>(5, true));
}

template <class Pool>
void pass_captures(const Pool& pool) {
  const auto one = make_large(1);
  EXPECT_TRUE(pool.apply(trivial_capture([given = *one] { return is_one(given); })));
}

template <class Pool>
void pass_through_maps(const Pool& pool) {
  for (const auto& each : pool.map(next_of, many())) EXPECT_TRUE(each.begins_with(2));
  const auto left = [](const half_value& a, const half_value&) { return a; };
  EXPECT_EQ(pool.starmap(left, std::vector<std::pair<half_value, half_value>>(3)).size(), 3U);
  for (const auto& each : pool.collect_errors().map(next_of, many())) EXPECT_TRUE(each->begins_with(2));
}

template <class Pool>
void pass_through_streams(const Pool& pool) {
  for (const auto& each : pool.imap(next_of, many())) EXPECT_TRUE(each.begins_with(2));
  for (const auto& each : pool.with({.chunk = 2}).imap_unordered(next_of, many())) EXPECT_TRUE(each.begins_with(2));
}

template <class Pool>
void pass_through_feeds(const Pool& pool) {
  auto results = pool.template feed<large_value>(next_of);
  const auto one = make_large(1);
  EXPECT_TRUE(results.push(*one));
  results.close();
  while (const auto found = results.next()) EXPECT_TRUE(found->begins_with(2));
}

asio::awaitable<void> await_results(const pool& from) {
  const auto one = make_large(1);
  const auto found = co_await from.apply_async(next_of, *one)(asio::use_awaitable);
  EXPECT_TRUE(found.begins_with(2));
  const auto data = co_await from.apply_async(next_of, *one).as_result();
  EXPECT_TRUE(data->begins_with(2));
  auto results = from.imap(next_of, many());
  while (const auto each = co_await results.async_next(asio::use_awaitable)) EXPECT_TRUE(each->begins_with(2));
}

template <class Pool>
void pass_in_all_ways(const Pool& pool) {
  pass_arguments(pool);
  pass_results(pool);
  pass_results_as_data(pool);
  pass_to_callbacks(pool);
  pass_to_std(pool);
  pass_futures(pool);
  pass_several_results(pool);
  pass_bound_values(pool);
  pass_captures(pool);
  pass_through_maps(pool);
  pass_through_streams(pool);
  pass_through_feeds(pool);
}

TEST(LargeValues, PassThroughPoolsOfProcesses) {
  test::run_on_small_stack([] {
    const pool workers({.workers = 2});
    pass_in_all_ways(workers);
  });
}

TEST(LargeValues, PassThroughPoolsOfThreads) {
  test::run_on_small_stack([] {
    const thread_pool workers({.workers = 2});
    pass_in_all_ways(workers);
    const auto one = make_large(1);
    EXPECT_TRUE(workers.apply([given = *one] { return is_one(given); }));
  });
}

TEST(LargeValues, PassThroughPoolsWithoutThreads) {
  test::run_on_small_stack([] {
    const serial_pool workers;
    pass_in_all_ways(workers);
  });
}

TEST(LargeValues, ComeToCoroutines) {
  test::run_on_small_stack([] {
    asio::io_context loop;
    const pool workers(loop, {.workers = 2});
    auto done = asio::co_spawn(loop, await_results(workers), asio::use_future);
    loop.run();
    EXPECT_NO_THROW(done.get());
  });
}

TEST(LargeValues, GoFromTasksToTheirOwnPool) {
  test::run_on_small_stack([] {
    const pool workers({.workers = 1});
    const auto one = make_large(1);
    const auto found = workers.apply([](const large_value& given) { return this_pool::apply(next_of, given); }, *one);
    EXPECT_TRUE(found.begins_with(2));
  });
}

/// Of a worker, by its initializer.
std::unique_ptr<large_value>& given_to_worker() {
  static std::unique_ptr<large_value> given;
  return given;
}

TEST(LargeValues, AreBoundToInitializersAndGivenToProcesses) {
  test::run_on_small_stack([] {
    const auto one = make_large(1);
    const pool workers(
        {.workers = 1,
         .initializer = bind_front(
             [](const large_value& given) { given_to_worker() = std::make_unique<large_value>(given); }, *one)});
    EXPECT_TRUE(workers.apply([] { return is_one(*given_to_worker()); }));
    const process alone(
        [](const large_value& given) {
          if (!is_one(given)) throw std::runtime_error("another value");
        },
        *one);
    alone.join();
    EXPECT_NO_THROW(alone.watch());
  });
}

TEST(LargeValues, AreContexts) {
  test::run_on_small_stack([] {
    const ctx_pool<large_value> workers(std::vector<large_value>{*make_large(1)});
    EXPECT_TRUE(workers.apply([](large_value& context) { return is_one(context); }));
    const ctx_thread_pool<large_value> threads(std::vector<large_value>{*make_large(1)});
    EXPECT_TRUE(threads.apply([](large_value& context) { return is_one(context); }));
  });
}

template <template <class> class Queue>
void pass_through_queue() {
  const Queue<large_value> queue(2);
  const auto one = make_large(1);
  EXPECT_TRUE(queue.push(*one));
  EXPECT_TRUE(queue.try_push(*one));
  const auto popped = queue.pop();
  EXPECT_TRUE(popped->begins_with(1));
  auto leased = queue.lease();
  EXPECT_TRUE((*leased)->begins_with(1));
  leased->ack();
}

TEST(LargeValues, PassThroughQueues) {
  test::run_on_small_stack([] {
    pass_through_queue<shared_queue>();
    pass_through_queue<p2p_queue>();
    const pool workers({.workers = 1});
    const shared_queue<large_value> queue(2);
    auto pushed = workers.apply_async([](const shared_queue<large_value>& to) { to.push(*make_large(1)); }, queue);
    EXPECT_TRUE(queue.pop()->begins_with(1));
    pushed.get();
  });
}

// ---- what is larger

/// Four MiB.
struct giant {
  std::array<std::uint64_t, (4U << 20U) / sizeof(std::uint64_t)> numbers{};
};
using owned = std::unique_ptr<giant>;

owned raised(owned given) {
  for (auto& each : given->numbers) ++each;
  return given;
}

template <class Pool>
void pass_owned(const Pool& pool) {
  const auto found = pool.apply(raised, std::make_unique<giant>());
  EXPECT_EQ(found->numbers.back(), 1U);
  std::vector<owned> all;
  for (int count = 0; count < 3; ++count) all.push_back(std::make_unique<giant>());
  for (const auto& each : pool.map(raised, std::move(all))) EXPECT_EQ(each->numbers.back(), 1U);
  const auto some = pool.apply([](std::vector<giant> given) { return given; }, std::vector<giant>(2));
  EXPECT_EQ(some.size(), 2U);
}

TEST(LargeValues, LargerOnesPassByWhatOwnsThem) {
  test::run_on_small_stack([] {
    pass_owned(pool({.workers = 1}));
    pass_owned(thread_pool({.workers = 1}));
    const pool workers({.workers = 1});
    const auto alone = std::make_unique<giant>();
    const auto shared = share(*alone);
    EXPECT_EQ(workers.apply([](const shared_object<giant>& given) { return given->numbers.size(); }, shared),
              alone->numbers.size());
    const shared_queue<owned> queue(1);
    queue.push(std::make_unique<giant>());
    EXPECT_EQ((*queue.pop())->numbers.back(), 0U);
  });
}

TEST(LargeValues, LargerOnesAreContextsThatFactoriesMake) {
  test::run_on_small_stack([] {
    const auto raise = [](giant& context) { return ++context.numbers.back(); };
    const ctx_pool<giant> workers([] { return giant(); }, {.workers = 1});
    EXPECT_EQ(workers.apply(raise), 1U);
    const ctx_thread_pool<giant> threads([] { return giant(); }, {.workers = 1});
    EXPECT_EQ(threads.apply(raise), 1U);
  });
}

}  // namespace
}  // namespace muster::large_value_test
