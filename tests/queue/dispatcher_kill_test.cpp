// SPDX-License-Identifier: BSL-1.0
// Workers are processes here, and they are killed.
#include <csignal>
#include <deque>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/serialize/exceptions.hpp>

#include "queue_support.hpp"

namespace muster::dispatcher_kill_test {
namespace {

using namespace std::chrono_literals;
using test::process_world;
using test::value_of;
using testing::IsEmpty;

constexpr spin_policy no_spin{.budget = 0ns, .processors = 2};

int add(int a, int b) { return a + b; }
int sleep_for_ever(int x) {
  for (;;) ::pause();
  return x;
}
std::string large(std::string text) { return text + std::string(3000, 'z'); }

TEST(DispatcherKill, AKilledTaskFailsAloneWithSignalAndProcess) {
  process_world world(1, no_spin);
  auto& stuck = world.post<sleep_for_ever>(1);
  std::vector<task_record*> others;
  for (int each = 0; each < 20; ++each) others.push_back(&world.post<add>(each, 1));
  const auto begun = [&] { return world.shared_board().line(0).current != 0; };
  ASSERT_TRUE(test::eventually(begun));
  const auto victim = world.pid(0);
  world.kill(0);
  world.bury(0);
  ASSERT_TRUE(world.tasks().wait(stuck));
  const auto failure = world.tasks().take(stuck).error();
  EXPECT_EQ(failure, errc::worker_died);
  EXPECT_EQ(failure.status(), exit_status::killed(SIGKILL));
  EXPECT_EQ(failure.place().pid, victim);
  for (int each = 0; each < 20; ++each) {
    auto& record = *others[static_cast<std::size_t>(each)];
    ASSERT_TRUE(world.tasks().wait(record));
    EXPECT_EQ(value_of<int>(world.tasks().take(record)), each + 1);
  }
}

TEST(DispatcherKill, AWaiterAsleepIsWoken) {
  process_world world(1, no_spin);
  auto& stuck = world.post<sleep_for_ever>(1);
  std::thread waiter([&] { world.tasks().wait(stuck); });
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().line(0).current != 0; }));
  world.kill(0);
  world.bury(0);
  waiter.join();
  EXPECT_EQ(world.tasks().take(stuck).error(), errc::worker_died);
}

TEST(DispatcherKill, AnIdleWorkersDeathCostsNothing) {
  process_world world(1, no_spin);
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().sleeping().count() == 1; }));
  world.kill(0);
  auto& record = world.post<add>(1, 2);  // the wake goes to a dead worker
  world.bury(0);
  ASSERT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 3);
}

TEST(DispatcherKill, RecoveringTwiceDoesNoHarm) {
  process_world world(1, no_spin);
  auto& record = world.post<add>(1, 2);
  ASSERT_TRUE(world.tasks().wait(record));
  world.kill(0);
  world.bury(0);
  world.tasks().recover(0, exit_status::lost());  // of the new one, which has nothing
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 3);
}

// Two clients with windows, sinks, cancellations and big replies, while workers are killed all the time.
// The fixture's workers are forked while client threads allocate; a child of AddressSanitizer's allocator may then
// inherit a lock that is held. Workers of a pool are executed anew: its soak test runs under that sanitizer.
TEST(DispatcherKill, RandomKillsLoseDoubleAndCorruptNothing) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's allocator does not survive a fork while other threads allocate";
#endif
  process_world world(3, {.budget = 2us, .processors = 2});
  test::counted_ends ends(world.tasks());
  std::atomic<bool> stop = false;
  std::mutex noting;
  std::vector<std::string> wrong;
  const auto note = [&](std::string text) {
    const std::lock_guard lock(noting);
    wrong.push_back(std::move(text));
  };
  std::atomic<std::uint64_t> told = 0;
  std::atomic<std::uint64_t> submitted = 0;

  const auto client = [&](unsigned seed) {
    std::minstd_rand random(seed);
    struct entry {
      task_record* record;
      std::string expected;
      bool is_text;
      bool asked_to_stop;  // while a worker had it already: it may then end in any way, and is not tried again
    };
    std::deque<entry> window;
    const auto take = [&] {
      auto& front = window.front();
      world.tasks().wait(*front.record);
      const auto reply = world.tasks().take(*front.record);
      if (reply.succeeded()) {
        const auto got = front.is_text ? value_of<std::string>(reply) : std::to_string(value_of<int>(reply));
        if (got != front.expected) note("got '" + got.substr(0, 40) + "', not '" + front.expected.substr(0, 40) + "'");
      } else if (!(reply.error() == errc::cancelled) && !(front.asked_to_stop && reply.error() == errc::worker_died)) {
        note(std::string(reply.error().message()));
      }
      window.pop_front();
    };
    while (!stop) {
      const auto number = static_cast<int>(random() % 100000);
      if (random() % 3 == 0) {
        auto request = world.request<add>(number, 1);
        request.sink = &ends.make_sink();
        request.retries = 1000;
        world.tasks().post(std::move(request));
        ++told;
      } else if (random() % 4 == 0) {
        auto request = world.request<large>(std::to_string(number));
        request.retries = 1000;
        window.push_back({&world.tasks().post(std::move(request)), large(std::to_string(number)), true, false});
      } else {
        auto request = world.request<add>(number, 1);
        request.retries = 1000;
        window.push_back({&world.tasks().post(std::move(request)), std::to_string(number + 1), false, false});
        if (random() % 16 == 0) window.back().asked_to_stop = !world.tasks().cancel(*window.back().record);
      }
      ++submitted;
      while (window.size() > 20) take();
    }
    while (!window.empty()) take();
  };

  std::thread one(client, 1);
  std::thread two(client, 2);
  std::minstd_rand random(3);
  const auto end = deadline::after(3s);
  int deaths = 0;
  while (!end.expired()) {
    test::work_for(std::chrono::microseconds(200 + random() % 1500));  // the rate of killing
    const auto victim = random() % 3;
    world.kill(victim);
    EXPECT_EQ(world.bury(victim).signal(), SIGKILL);
    ++deaths;
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_TRUE(world.tasks().wait_until_empty(deadline::after(30s)));
  EXPECT_THAT(wrong, IsEmpty());
  // Whoever told the last ones may still be at it.
  EXPECT_TRUE(test::eventually([&] { return ends.values() + ends.errors() == told; }));
  EXPECT_EQ(ends.errors(), 0U);
  const auto counters = world.tasks().read_statistics();
  EXPECT_EQ(counters.ended, counters.accepted);
  EXPECT_EQ(counters.accepted, submitted);
  RecordProperty("deaths", deaths);
  RecordProperty("tasks", static_cast<int>(submitted));
  std::printf("%d deaths, %llu tasks, %llu retried, %llu requeued\n", deaths,
              static_cast<unsigned long long>(submitted), static_cast<unsigned long long>(counters.retried),
              static_cast<unsigned long long>(counters.requeued));
}

TEST(DispatcherFreeze, AWorkerThatIsStoppedWhileItSpinsHoldsUpNobody) {
  process_world world(2, {.budget = 2us, .processors = 4});
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().sleeping().count() == 2; }));
  ::kill(world.pid(0), SIGSTOP);
  world.shared_board().sleeping().remove(0);
  world.shared_board().spinning().insert(0);

  auto& waited_for = world.post<add>(1, 2);
  ASSERT_TRUE(world.tasks().wait(waited_for, deadline::after(30s)));
  EXPECT_EQ(value_of<int>(world.tasks().take(waited_for)), 3);

  test::counted_ends ends(world.tasks());
  auto request = world.request<add>(1, 1);
  request.sink = &ends.make_sink();
  world.tasks().post(std::move(request));
  EXPECT_TRUE(test::eventually([&] { return ends.values() == 1; }));

  world.tasks().detach(world.post<add>(1, 2));
  EXPECT_TRUE(world.tasks().wait_until_empty(deadline::after(30s)));
  ::kill(world.pid(0), SIGCONT);
}

}  // namespace
}  // namespace muster::dispatcher_kill_test
