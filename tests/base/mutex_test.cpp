// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/mutex.hpp>

#include <thread>

#include <gtest/gtest.h>

namespace muster::mutex_test {
namespace {

using namespace std::chrono_literals;

TEST(Mutex, ExcludesOthers) {
  mutex guard;
  int count = 0;
  const auto add = [&] {
    for (int round = 0; round < 10000; ++round) {
      const scoped_lock lock(guard);
      ++count;
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(count, 20000);
}

TEST(Mutex, TryLockFailsWhileHeld) {
  mutex guard;
  const scoped_lock lock(guard);
  bool got = true;
  std::thread([&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS { got = guard.try_lock(); }).join();
  EXPECT_FALSE(got);
}

TEST(Condition, WakesTheWaiter) {
  mutex guard;
  condition changed;
  bool done = false;
  std::thread other([&] {
    const scoped_lock lock(guard);
    done = true;
    changed.notify_all();
  });
  {
    scoped_lock lock(guard);
    while (!done) changed.wait(lock);
  }
  other.join();
  EXPECT_TRUE(done);
}

TEST(Condition, WaitUntilEndsAtTheDeadline) {
  mutex guard;
  condition changed;
  scoped_lock lock(guard);
  const auto until = deadline::after(1ms);
  while (changed.wait_until(lock, until)) continue;
  EXPECT_TRUE(until.expired());
}

}  // namespace
}  // namespace muster::mutex_test
