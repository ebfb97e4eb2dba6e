// SPDX-License-Identifier: BSL-1.0
// Every line of code of docs/coming-from-multiprocessing.md, as it stands there; and that none is missing here.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/as_completed.hpp>
#include <muster/async/when_all.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/collectives/group.hpp>
#include <muster/device/tensor.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/process/join.hpp>
#include <muster/process/listener.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "page.hpp"
#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::multiprocessing_page_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

int square(int x) { return x * x; }
int add(int a, int b) { return a + b; }
int prepared = 0;
void prepare(int what) { prepared = what; }
void run_with(int) {}
int sum_of(const muster::shared_queue<int>& queue) {
  int sum = 0;
  while (auto lease = queue.lease()) {
    sum += **lease;
    lease->ack();
  }
  return sum;
}

TEST(MultiprocessingPage, Pools) {
  muster::pool pool({.workers = 4});
  const std::vector xs{1, 2, 3};
  std::vector<int> seen;
  EXPECT_EQ(pool.apply(add, 2, 3), 5);
  auto later = pool.apply_async(add, 2, 3);
  EXPECT_EQ(later.get(), 5);
  std::atomic<int> found = 0;
  const auto on_value = [&](int value) { found = value; };
  const auto on_error = [&](const auto&) { found = -1; };
  pool.apply_async(add, 2, 3).on_complete(on_value, on_error);
  EXPECT_TRUE(test::eventually([&] { return found == 5; }));
  EXPECT_THAT(pool.map(square, xs), ElementsAre(1, 4, 9));
  EXPECT_EQ(pool.collect_errors().map(square, xs).size(), 3U);
  EXPECT_THAT(pool.with({.chunk = 10}).map(square, xs), ElementsAre(1, 4, 9));
  auto all = pool.map_async(square, xs);
  EXPECT_THAT(all.get(), ElementsAre(1, 4, 9));
  for (int each : pool.imap(square, xs)) seen.push_back(each);
  for (int each : pool.imap_unordered(square, xs)) seen.push_back(each);
  EXPECT_THAT(seen, UnorderedElementsAre(1, 4, 9, 1, 4, 9));
  EXPECT_THAT(pool.starmap(add, std::vector<std::pair<int, int>>{{1, 2}}), ElementsAre(3));
  EXPECT_THAT(pool.starmap_async(add, std::vector<std::pair<int, int>>{{1, 2}}).get(), ElementsAre(3));
  auto results = pool.imap(square, xs);
  if (results.wait_for(1s)) results.next();
  muster::thread_pool threads({.workers = 4});
  EXPECT_THAT(threads.map(square, xs), ElementsAre(1, 4, 9));
  EXPECT_THAT(pool.map(muster::bind_front(add, 1), xs), ElementsAre(2, 3, 4));
  EXPECT_THAT(pool.map(muster::bind_front([](int y, int x) { return x + y; }, 5), xs), ElementsAre(6, 7, 8));
  EXPECT_THAT(pool.with({.progress = true}).map(square, xs), ElementsAre(1, 4, 9));
  EXPECT_THROW(pool.apply([] { std::raise(SIGKILL); }), muster::worker_died);
  pool.close();
  pool.join();
}

TEST(MultiprocessingPage, PoolsWithOptions) {
  {
    muster::pool ready({.initializer = muster::bind_front(prepare, 1)});
    EXPECT_EQ(ready.apply([] { return prepared; }), 1);
  }
  muster::pool fresh({.max_tasks_per_worker = 100});
  EXPECT_EQ(fresh.apply(square, 3), 9);
  {
    muster::pool inside;
  }
  auto& pool = fresh;
  pool.terminate();
}

// Once more, with what its main function was called with; all that it has to do was done before.
TEST(MultiprocessingPage, HowWorkersStart) {
  std::string name = "program";
  std::array arguments{name.data(), static_cast<char*>(nullptr)};
  const int argc = 1;
  char** const argv = arguments.data();
  muster::init(argc, argv);
}

TEST(MultiprocessingPage, Results) {
  muster::pool pool({.workers = 2});
  std::vector<int> seen;
  auto later = pool.apply_async(add, 2, 3);
  EXPECT_TRUE(later.wait_for(1s) || later.wait_for(100s));
  later.wait();
  EXPECT_TRUE(later.ready());
  EXPECT_EQ(later.get(), 5);
  later = pool.apply_async(add, 2, 3);
  EXPECT_TRUE(later.get_result().has_value());
  later = pool.apply_async(add, 2, 3);
  static_cast<void>(later.cancel());
  later = pool.apply_async(add, 2, 3);
  const auto on_value = [](int value) { return value + 1; };
  EXPECT_EQ(later.then(on_value).get(), 6);
  std::vector<future<int>> calls;
  for (int each = 0; each < 3; ++each) calls.push_back(pool.apply_async(square, each));
  for (auto& each : muster::as_completed(calls)) seen.push_back(each.get());
  EXPECT_THAT(seen, UnorderedElementsAre(0, 1, 4));
  calls.clear();
  for (int each = 0; each < 3; ++each) calls.push_back(pool.apply_async(square, each));
  EXPECT_THAT(muster::when_all(std::move(calls)).get(), ElementsAre(0, 1, 4));
}

TEST(MultiprocessingPage, Processes) {
  muster::process child(run_with, 1);
  EXPECT_TRUE(child.join_for(1s) || child.join_for(100s));
  child.watch();
  EXPECT_GT(child.pid(), 0);
  EXPECT_FALSE(child.is_alive());
  EXPECT_EQ(child.exit_status(), exit_status::exited(0));
  child.terminate();
  child.kill(SIGKILL);
}

TEST(MultiprocessingPage, Queues) {
  muster::shared_queue<int> queue(100);
  queue.push(1);
  EXPECT_TRUE(queue.push_for(1, 1s));
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop_for(1s), 1);
  EXPECT_EQ(queue.try_pop(), 1);
  EXPECT_TRUE(queue.size() == 0);
  EXPECT_FALSE(queue.size() == queue.capacity());
  int missed = 0;
  if (!queue.try_push(1)) ++missed;
  if (!queue.pop_for(1s)) ++missed;
  EXPECT_EQ(missed, 0);
  queue.push(7);
  {
    auto lease = queue.lease();
    EXPECT_TRUE(lease);
  }
  {
    auto lease = queue.lease();
    EXPECT_EQ(**lease, 7) << "it came back";
    lease->ack();
  }
  muster::pool pool({.workers = 2});
  std::vector<future<int>> consumers;
  for (int each = 0; each < 2; ++each) consumers.push_back(pool.apply_async(sum_of, queue));
  for (int each = 0; each < 100; ++each) queue.push(1);
  queue.close();
  const auto sums = muster::when_all(std::move(consumers)).get();
  EXPECT_EQ(sums[0] + sums[1], 100);
  muster::shared_queue<int> simple(16);
  EXPECT_TRUE(simple.push(5));
  muster::p2p_queue<int> there(16);
  EXPECT_TRUE(there.push(5));
}

TEST(MultiprocessingPage, ProgramsThatAreStartedByThemselves) {
  const test::temporary_directory directory;
  const auto path = directory.path() / "socket";
  muster::shared_queue<int> queue(4);
  muster::listener door(path);
  door.offer("jobs", queue);
  const auto other = test::spawn(1, [&](std::size_t) {
    const auto host = muster::join(path);
    return host.get<muster::shared_queue<int>>("jobs").push(7) ? 0 : 1;
  });
  EXPECT_EQ(queue.pop(), 7);
  EXPECT_EQ(other->wait(0), exit_status::exited(0));
}

TEST(MultiprocessingPage, EventsAndMemory) {
  muster::event event;
  event.set();
  EXPECT_TRUE(event.is_set());
  EXPECT_TRUE(event.wait_for(1s));
  event.clear();
  EXPECT_FALSE(event.is_set());
  auto shared = muster::tensor::zeros<float>({1000});
  muster::pool pool({.workers = 1});
  pool.apply([](const tensor& mine) { mine.fill(1); }, shared);
  EXPECT_EQ(shared.at<float>(999), 1);
  auto table = pool.share(std::array{1, 2, 3});
  EXPECT_EQ(pool.apply([](const shared_object<std::array<int, 3>>& it) { return (*it)[2]; }, table), 3);
  group_ticket ticket(1);
  muster::group group(ticket, 0);
  group.barrier();
  EXPECT_GE(muster::effective_cpus(), 1U);
}

TEST(MultiprocessingPage, EveryLineOfItIsCompiledHere) {
  test::expect_compiled(MUSTER_DOCS "coming-from-multiprocessing.md", __FILE__, 60);
}

}  // namespace
}  // namespace muster::multiprocessing_page_test
