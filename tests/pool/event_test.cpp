// SPDX-License-Identifier: BSL-1.0
// Events go to workers and back, and outlive them.
#include <muster/queue/event.hpp>

#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::event_test {
namespace {

using namespace std::chrono_literals;

std::optional<event> kept;  // by a worker

void set(const event& which) { which.set(); }

bool set_and_wait(const event& ready, const event& begin) {
  ready.set();
  return begin.wait_for(100s);
}

TEST(PoolEvent, AWorkerSetsWhatTheCallerWaitsFor) {
  pool workers({.workers = 1});
  const event done;
  auto call = workers.apply_async(set, done);
  done.wait();
  call.get();
}

TEST(PoolEvent, WorkersWaitForWhatTheCallerSets) {
  pool workers({.workers = 2});
  const event begin;
  const event ready[2];
  auto first = workers.apply_async(set_and_wait, ready[0], begin);
  auto second = workers.apply_async(set_and_wait, ready[1], begin);
  all_of(ready[0], ready[1]).wait();
  begin.set();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
}

TEST(PoolEvent, OneThatAWorkerMadeOutlivesIt) {
  pool workers({.workers = 1});
  const auto made = workers.apply([] {
    event first;
    first.set();
    return std::vector<event>{first, event()};
  });
  ::kill(workers.workers().front().pid, SIGKILL);
  ASSERT_TRUE(test::eventually([&] { return workers.workers().front().incarnation == 2; }));
  EXPECT_TRUE(made[0].is_set());
  EXPECT_FALSE(made[1].is_set());
  workers.apply(set, made[1]);
  EXPECT_TRUE(all_of(made).is_set());
}

TEST(PoolEvent, OneThatAWorkerKeepsIsTheCallersStill) {
  pool workers({.workers = 1});
  const event done;
  workers.apply([](const event& given) { kept = given; }, done);
  workers.apply([] { kept->set(); });
  EXPECT_TRUE(done.is_set());
  workers.apply([] { kept.reset(); });
}

TEST(PoolEvent, AWorkerThatIsKilledWhileItWaitsHarmsNobody) {
  pool workers({.workers = 2});
  const event ready;
  const event begin;
  auto lost = workers.apply_async(set_and_wait, ready, begin);
  ready.wait();
  for (const auto& each : workers.workers()) ::kill(each.pid, SIGKILL);
  EXPECT_THROW(lost.get(), worker_died);
  begin.set();
  workers.apply([](const event& which) { which.wait(); }, begin);
}

TEST(PoolEvent, WhereOnlyCopiesGoItIsRefused) {
  pool workers({.workers = 1});
  const auto make = [](int) { return event(); };
  try {
    static_cast<void>(workers.map(make, {1}));
    FAIL() << "a copy of an event";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::not_serializable) << problem.what();
  }
}

}  // namespace
}  // namespace muster::event_test
