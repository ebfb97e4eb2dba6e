// SPDX-License-Identifier: BSL-1.0
// Tasks that call their own pool. Workers are threads over one mapping, or processes that are killed.
#include <muster/queue/nested_end.hpp>

#include <atomic>
#include <csignal>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <muster/queue/slot_protocol.hpp>
#include <muster/serialize/exceptions.hpp>

#include "queue_support.hpp"

namespace muster::nested_test {
namespace {

using namespace std::chrono_literals;
using test::process_world;
using test::thread_world;
using test::value_of;

constexpr spin_policy no_spin{.budget = 0ns, .processors = 2};
constexpr spin_policy short_spin{.budget = 2us, .processors = 2};

// ---- what tasks do: as pool/this_pool.hpp, without its types

template <auto Function, class... Args>
nested_call call_async(const Args&... args) {
  auto& here = nested_end::require_current();
  return here.submit(here.functions().encode(&test::thunk_of<Function, Args...>),
                     outgoing_frame::of(here.memory(), args...));
}

template <class R>
R get(nested_call call) {
  call.wait();
  const auto reply = call.take();
  if (!reply.succeeded()) reply.error().raise();
  return std::get<0>(codec<R>::decode(reply.bytes()));
}

std::uint64_t fib(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  auto one = call_async<fib>(n - 1);
  auto other = call_async<fib>(n - 2);
  return get<std::uint64_t>(std::move(one)) + get<std::uint64_t>(std::move(other));
}

int add(int a, int b) { return a + b; }
std::string tripled(std::string text) { return text + text + text; }

int call_add(int n) { return get<int>(call_async<add>(n, 1)); }

std::size_t call_tripled(int bytes) {
  const auto text = std::string(static_cast<std::size_t>(bytes), 'x');
  return get<std::string>(call_async<tripled>(text)).size();
}

int call_many(int count) {
  std::vector<nested_call> calls;
  for (int each = 0; each < count; ++each) calls.push_back(call_async<add>(each, 1));
  int sum = 0;
  for (auto each = calls.rbegin(); each != calls.rend(); ++each) sum += get<int>(std::move(*each));
  return sum;
}

int throw_runtime_error(int n) { throw std::runtime_error("number " + std::to_string(n)); }
int call_thrower(int n) {
  try {
    return get<int>(call_async<throw_runtime_error>(n));
  } catch (const std::runtime_error& failure) {
    return failure.what() == "number " + std::to_string(n) ? 1 : 0;
  }
}

int descend(int levels) { return levels == 0 ? 0 : 1 + get<int>(call_async<descend>(levels - 1)); }

// As many calls, one after the other, as never fit into a ring; the worker runs each itself.
std::atomic<bool> calls_are_made = false;
int call_in_turn(int count) {
  int sum = 0;
  for (int each = 0; each < count; ++each) sum += get<int>(call_async<add>(each, 1));
  calls_are_made = true;
  return sum;
}

// Asks for something and lets it go.
int forget(int count) {
  for (int each = 0; each < count; ++each) static_cast<void>(call_async<tripled>(std::string(2000, 'y')));
  return count;
}

int cancel_one(int n) {
  auto call = call_async<add>(n, 1);
  if (!call.cancel()) return get<int>(std::move(call)) == n + 1 ? 1 : 0;
  try {
    get<int>(std::move(call));
  } catch (const error& failure) {
    return failure.code() == errc::cancelled ? 1 : 0;
  }
  return 0;
}

bool ends(dispatcher& tasks) { return tasks.wait_until_empty(deadline::after(60s)); }

template <class World>
bool all_cells_free(World& world) {
  return test::eventually([&] {
    for (std::size_t worker = 0; worker < world.shared_board().sizes().workers; ++worker) {
      for (std::size_t cell = 0; cell < requests_per_worker; ++cell) {
        if (cell_protocol::read(world.shared_board().request(worker, cell).word).state() != cell_state::free) {
          return false;
        }
      }
    }
    return true;
  });
}

template <class World>
void expect_nothing_left(World& world) {
  EXPECT_TRUE(ends(world.tasks()));
  EXPECT_TRUE(all_cells_free(world));
  EXPECT_TRUE(test::eventually([&] { return world.memory().read_statistics().live_blocks == 0; }));
  const auto counters = world.tasks().read_statistics();
  EXPECT_EQ(counters.accepted, counters.ended);
  EXPECT_EQ(counters.corrupted, 0U);
}

// ---- workers as threads

class NestedThreads : public testing::TestWithParam<std::size_t> {
protected:
  template <class R, auto Function, class... Args>
  R apply(const Args&... args) {
    auto& record = world_.post<Function>(args...);
    EXPECT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
    return value_of<R>(world_.tasks().take(record));
  }

  void SetUp() override { world_.start_workers(); }
  void TearDown() override { expect_nothing_left(world_); }

  thread_world world_{GetParam(), {}, 16};
};

INSTANTIATE_TEST_SUITE_P(Workers, NestedThreads, testing::Values(1, 2, 3));

TEST(Nested, ThousandsOfCallsInPlaceWhileNobodyDrainsAreNoDamage) {
  constexpr int count = 5000;
  thread_world world(1, {}, 16);
  world.start_workers();
  auto& record = world.post<call_in_turn>(count);
  {
    const auto scope = world.pause();
    EXPECT_TRUE(test::eventually([] { return calls_are_made.load(); }));
  }
  EXPECT_TRUE(world.tasks().wait(record, deadline::after(60s)));
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), count * (count + 1) / 2);
  EXPECT_TRUE(world.tasks().audit().suspects.empty());
  expect_nothing_left(world);
}

TEST_P(NestedThreads, ACallGivesItsValue) {
  for (int each = 0; each < 200; ++each) ASSERT_EQ((apply<int, call_add>(each)), each + 1);
}

TEST_P(NestedThreads, RecursionEnds) { EXPECT_EQ((apply<std::uint64_t, fib>(13)), 233U); }

TEST_P(NestedThreads, RecursionEndsWhenAllSlotsAreTaken) {
  std::vector<task_record*> records;
  for (int each = 0; each < 40; ++each) records.push_back(&world_.post<fib>(7));
  for (auto* record : records) {
    ASSERT_TRUE(world_.tasks().wait(*record, deadline::after(60s)));
    EXPECT_EQ(value_of<std::uint64_t>(world_.tasks().take(*record)), 13U);
  }
}

TEST_P(NestedThreads, LargeArgumentsAndResultsArrive) {
  for (const int bytes : {10, 47, 60, 1000, 20000, 300000}) {
    EXPECT_EQ((apply<std::size_t, call_tripled>(bytes)), 3U * static_cast<unsigned>(bytes));
  }
}

TEST_P(NestedThreads, MoreCallsThanCellsEnd) { EXPECT_EQ((apply<int, call_many>(200)), 200 * 201 / 2); }

TEST_P(NestedThreads, AnExceptionArrivesAsItself) {
  for (int each = 0; each < 50; ++each) EXPECT_EQ((apply<int, call_thrower>(each)), 1);
}

TEST_P(NestedThreads, WhatIsLetGoRunsToItsEnd) {
  const auto before = world_.tasks().read_statistics().ended;
  EXPECT_EQ((apply<int, forget>(10)), 10);
  EXPECT_TRUE(ends(world_.tasks()));
  EXPECT_EQ(world_.tasks().read_statistics().ended - before, 11U);
}

TEST_P(NestedThreads, ACallIsCancelledOrEnds) {
  for (int each = 0; each < 100; ++each) EXPECT_EQ((apply<int, cancel_one>(each)), 1);
}

TEST_P(NestedThreads, ARecursionTooDeepForTheStackFailsWithWhatToDo) {
  EXPECT_EQ((apply<int, descend>(40)), 40);
  if (GetParam() > 1) return;  // with more workers the depth of one depends on who takes what
  try {
    apply<int, descend>(200);
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_NE(std::string(failure.what()).find("end the recursion earlier"), std::string::npos);
  }
}

TEST_P(NestedThreads, CallsOfAcceptedTasksAreAcceptedAfterClose) {
  auto& record = world_.post<fib>(10);
  world_.tasks().close(error_info(errc::pool_closed, "closed"));
  ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
  EXPECT_EQ(value_of<std::uint64_t>(world_.tasks().take(record)), 55U);
}

TEST_P(NestedThreads, TheLastTaskIsNotTheLastWhileItsCallsAreUnread) {
  std::atomic<int> emptied = 0;
  std::vector<task_record*> records;
  for (int each = 0; each < 8; ++each) records.push_back(&world_.post<forget>(20));
  world_.tasks().close(error_info(errc::pool_closed, "closed"), [&] { ++emptied; });
  for (auto* record : records) {
    ASSERT_TRUE(world_.tasks().wait(*record, deadline::after(60s)));
    world_.tasks().take(*record);
  }
  EXPECT_TRUE(test::eventually([&] { return emptied == 1; }));
  const auto counters = world_.tasks().read_statistics();
  EXPECT_GE(counters.accepted, 8U);
  EXPECT_EQ(counters.accepted, counters.ended);
}

TEST(Nested, OutsideOfATaskTheErrorSaysWhatToDo) {
  EXPECT_EQ(nested_end::current(), nullptr);
  try {
    static_cast<void>(nested_end::require_current());
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_NE(std::string(failure.what()).find("call the pool itself"), std::string::npos);
  }
}

// ---- workers as processes

int sleep_for_ever(int x) {
  for (;;) ::pause();
  return x;
}

// Leaves the call to another worker.
template <class R>
std::string fate_of(nested_call call) {
  while (!call.is_done()) ::usleep(100);
  try {
    get<R>(std::move(call));
  } catch (const worker_died& death) {
    return "died in worker " + std::to_string(death.info().place().worker);
  } catch (const std::exception& other) {
    return other.what();
  }
  return "a value";
}

std::string fate_of_sleeper(int n) { return fate_of<int>(call_async<sleep_for_ever>(n)); }

int sleep_with_calls(int count) {
  std::vector<nested_call> calls;
  for (int each = 0; each < count; ++each) calls.push_back(call_async<tripled>(std::string(20000, 'z')));
  calls.push_back(call_async<sleep_for_ever>(1));
  return sleep_for_ever(count);
}

int sleep_after_letting_go(int count) {
  forget(count);
  return sleep_for_ever(count);
}

// Calls a big function until it has a value.
std::size_t insist(int bytes) {
  const auto text = std::string(static_cast<std::size_t>(bytes), 'x');
  for (;;) {
    try {
      return get<std::string>(call_async<tripled>(text)).size();
    } catch (const worker_died&) {  // NOLINT(bugprone-empty-catch): again
    }
  }
}

std::uint64_t stubborn_fib(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  std::array calls{call_async<stubborn_fib>(n - 1), call_async<stubborn_fib>(n - 2)};
  std::uint64_t sum = 0;
  for (int each = 0; each < 2; ++each) {
    try {
      sum += get<std::uint64_t>(std::move(calls[static_cast<std::size_t>(each)]));
    } catch (const worker_died&) {
      sum += stubborn_fib(n - 1 - each);
    }
  }
  return sum;
}

class NestedProcesses : public testing::Test {
protected:
  template <auto Function, class... Args>
  task_record& post_to(std::size_t worker, unsigned retries, const Args&... args) {
    auto request = world_.request<Function>(args...);
    request.lane = board::shared_lanes + worker;
    request.retries = retries;
    return world_.tasks().post(std::move(request));
  }
  void await_running(std::size_t worker) {
    ASSERT_TRUE(test::eventually([&] { return world_.shared_board().line(worker).current != 0; }));
  }
  void replace(std::size_t worker) {
    world_.kill(worker);
    EXPECT_EQ(world_.bury(worker).signal(), SIGKILL);
  }

  process_world world_{2, no_spin, {}, 16};
};

TEST_F(NestedProcesses, RecursionEnds) {
  auto& record = world_.post<fib>(14);
  ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
  EXPECT_EQ(value_of<std::uint64_t>(world_.tasks().take(record)), 377U);
  expect_nothing_left(world_);
}

TEST_F(NestedProcesses, LargeArgumentsAndResultsArrive) {
  for (const int bytes : {1000, 300000, 3000000}) {
    auto& record = world_.post<call_tripled>(bytes);
    ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
    EXPECT_EQ(value_of<std::size_t>(world_.tasks().take(record)), 3U * static_cast<unsigned>(bytes));
  }
  expect_nothing_left(world_);
}

TEST_F(NestedProcesses, TheDeathOfACallsWorkerIsItsError) {
  auto& record = post_to<fate_of_sleeper>(0, 0, 1);
  await_running(0);
  await_running(1);
  replace(1);
  ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
  EXPECT_EQ(value_of<std::string>(world_.tasks().take(record)), "died in worker 1");
  expect_nothing_left(world_);
}

TEST_F(NestedProcesses, ADeadTasksCallsAreWithdrawnOrForgotten) {
  auto& blocker = post_to<sleep_for_ever>(1, 0, 1);  // so that nobody begins the calls
  await_running(1);
  auto& record = post_to<sleep_with_calls>(0, 0, 12);
  await_running(0);
  ASSERT_TRUE(test::eventually([&] { return world_.tasks().read_statistics().accepted == 15; }));
  replace(0);
  ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::worker_died);
  EXPECT_EQ(world_.tasks().pending(), 1U);
  replace(1);
  EXPECT_EQ(world_.tasks().take(blocker).error(), errc::worker_died);
  expect_nothing_left(world_);
}

TEST_F(NestedProcesses, WhatADeadTaskHadLetGoRunsToItsEnd) {
  auto& blocker = post_to<sleep_for_ever>(1, 0, 1);
  await_running(1);
  auto& record = post_to<sleep_after_letting_go>(0, 0, 30);  // more than there are slots
  await_running(0);
  const auto all_let_go = [&] {
    std::size_t count = 0;
    for (std::size_t cell = 0; cell < requests_per_worker; ++cell) {
      const auto found = cell_protocol::read(world_.shared_board().request(0, cell).word);
      if (found.has(cell_flag::abandoned)) ++count;
    }
    return count == 30;
  };
  ASSERT_TRUE(test::eventually(all_let_go));
  replace(0);
  ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::worker_died);
  ASSERT_TRUE(test::eventually([&] { return world_.tasks().pending() == 1; }));
  replace(1);
  EXPECT_EQ(world_.tasks().take(blocker).error(), errc::worker_died);
  EXPECT_EQ(world_.tasks().read_statistics().accepted, 32U);
  EXPECT_EQ(world_.tasks().read_statistics().lost, 2U);
  expect_nothing_left(world_);
}

TEST_F(NestedProcesses, ARequesterWithAnUnreadBlockReplyLeavesNothing) {
  auto& record = post_to<sleep_with_calls>(0, 0, 3);
  await_running(0);
  const auto answered = [&] {
    std::size_t count = 0;
    for (std::size_t cell = 0; cell < requests_per_worker; ++cell) {
      const auto found = cell_protocol::read(world_.shared_board().request(0, cell).word);
      if (found.state() == cell_state::answered && found.has(cell_flag::block_reply)) ++count;
    }
    return count == 3;
  };
  ASSERT_TRUE(test::eventually(answered));
  // An answer stands before its worker has let the arguments go.
  EXPECT_TRUE(test::eventually([&] { return world_.memory().read_statistics().live_blocks == 3; }));
  replace(0);
  EXPECT_EQ(world_.memory().read_statistics().live_blocks, 0U);
  replace(1);  // the sleeper
  EXPECT_EQ(world_.tasks().take(record).error(), errc::worker_died);
  expect_nothing_left(world_);
}

TEST_F(NestedProcesses, StopEndsTasksThatWait) {
  auto& record = post_to<call_many>(0, 0, 5);
  auto& stuck = post_to<sleep_with_calls>(0, 0, 40);
  ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
  EXPECT_EQ(value_of<int>(world_.tasks().take(record)), 15);
  await_running(0);
  world_.kill(0);
  world_.kill(1);
  world_.tasks().stop(error_info(errc::cancelled, "stopped"));
  EXPECT_EQ(world_.tasks().take(stuck).error(), errc::cancelled);
  EXPECT_TRUE(ends(world_.tasks()));
}

// At random here; after every few instructions: nested_step_test.cpp.
TEST(NestedKill, RandomKillsLoseDoubleAndCorruptNothing) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's allocator does not survive a fork while other threads allocate";
#endif
  process_world world(3, short_spin, {}, 16);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> calls = 0;
  const auto client = [&](unsigned seed) {
    std::minstd_rand random(seed);
    const auto run = [&]<class R>(task_request request, R expected) {
      request.retries = 60000;
      auto& record = world.tasks().post(std::move(request));
      world.tasks().wait(record);
      const auto reply = world.tasks().take(record);
      ++calls;
      if (!reply.succeeded() || value_of<R>(reply) != expected) ++wrong;
    };
    while (!stop) {
      switch (random() % 4) {
        case 0: run(world.request<stubborn_fib>(7), std::uint64_t{13}); break;
        case 1: run(world.request<insist>(3000), std::size_t{9000}); break;
        case 2: run(world.request<forget>(5), 5); break;
        default: run(world.request<insist>(100000), std::size_t{300000});
      }
    }
  };
  std::thread one(client, 1);
  std::thread two(client, 2);
  std::minstd_rand random(3);
  int deaths = 0;
  for (const auto end = deadline::after(4s); !end.expired(); ++deaths) {
    test::work_for(std::chrono::microseconds(300 + random() % 3000));  // the rate of killing
    const auto victim = random() % 3;
    world.kill(victim);
    EXPECT_EQ(world.bury(victim).signal(), SIGKILL);
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_EQ(wrong, 0);
  expect_nothing_left(world);
  std::printf("%d deaths, %d calls, %llu tasks\n", deaths, calls.load(),
              static_cast<unsigned long long>(world.tasks().read_statistics().accepted));
}

}  // namespace
}  // namespace muster::nested_test
