// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/thread.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"

namespace muster::thread_test {
namespace {

using namespace std::chrono_literals;

TEST(Thread, RunsItsFunction) {
  const event begin;
  std::unique_ptr<int> taken;
  thread other(
      [&](std::unique_ptr<int> given) {
        begin.wait();
        taken = std::move(given);
      },
      std::make_unique<int>(42));
  EXPECT_TRUE(other.is_alive());
  EXPECT_FALSE(other.join_for(1ms));
  EXPECT_NO_THROW(other.watch());
  begin.set();
  other.join();
  other.join();
  EXPECT_TRUE(other.join_for(0s));
  EXPECT_FALSE(other.is_alive());
  EXPECT_NO_THROW(other.watch());
  EXPECT_EQ(*taken, 42);
}

TEST(Thread, WatchThrowsWhatTheFunctionThrewEachTime) {
  thread other([] { throw std::out_of_range(std::string(1U << 20U, 'x')); });
  other.join();
  for (int times = 0; times < 2; ++times) {
    try {
      other.watch();
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& thrown) {
      EXPECT_EQ(thrown.what(), std::string(1U << 20U, 'x'));
    }
  }
}

TEST(Thread, WhatIsNoStandardExceptionIsKeptToo) {
  thread other([] { throw 42; });
  other.join();
  EXPECT_THROW(other.watch(), int);
}

TEST(Thread, TheDestructorAsksItToStopAndWaits) {
  std::atomic<bool> stopped = false;
  {
    thread other(
        [&](const std::stop_token& stop, int) {
          while (!stop.stop_requested()) std::this_thread::yield();
          stopped = true;
        },
        1);
    EXPECT_TRUE(other.is_alive());
  }
  EXPECT_TRUE(stopped);
}

TEST(Thread, IsStoppedOnce) {
  thread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  EXPECT_TRUE(other.request_stop());
  EXPECT_FALSE(other.request_stop());
  other.join();
}

TEST(Thread, WaitingForItselfIsRefused) {
  std::atomic<thread*> self = nullptr;
  thread other([&] {
    while (self == nullptr) std::this_thread::yield();
    self.load()->join();
  });
  self = &other;
  EXPECT_TRUE(test::eventually([&] { return !other.is_alive(); }));
  EXPECT_THROW(other.watch(), error);
}

// What the thread itself has of the last object of its kind.
struct own_end {
  std::unique_ptr<thread> self;
  event begin;
  event over;
};

TEST(Thread, WhoseObjectItDestroysItselfGoesOnAlone) {
  const auto shared = std::make_shared<own_end>();
  std::atomic<bool> asked = false;
  shared->self = std::make_unique<thread>([shared, &asked](const std::stop_token& stop) {
    shared->begin.wait();
    shared->self.reset();
    asked = stop.stop_requested();
    shared->over.set();
  });
  shared->begin.set();
  shared->over.wait();
  EXPECT_TRUE(asked);
  EXPECT_TRUE(test::eventually([&] { return shared.use_count() == 1; })) << "it ends";
}

TEST(Thread, WhoseObjectGoesWithWhatItWasGivenGoesOnAlone) {
  const event begin;
  const event over;
  struct owner {
    explicit owner(event when) : last(std::move(when)) {}
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    ~owner() {
      self.reset();
      last.set();
    }
    event last;
    std::unique_ptr<thread> self;
  };
  auto shared = std::make_shared<owner>(over);
  shared->self = std::make_unique<thread>([shared, begin] { begin.wait(); });
  shared.reset();
  begin.set();
  over.wait();
}

TEST(Thread, SeveralMayWait) {
  const event begin;
  thread other([&] { begin.wait(); });
  std::vector<thread> waiters;
  for (int each = 0; each < 4; ++each) waiters.emplace_back([&] { other.join(); });
  begin.set();
  for (const auto& each : waiters) {
    each.join();
    EXPECT_NO_THROW(each.watch());
  }
}

TEST(Thread, WhatItWasGivenIsGoneWhenItHasEnded) {
  const auto given = std::make_shared<int>(1);
  thread other([](const std::shared_ptr<int>&) {}, given);
  other.join();
  EXPECT_EQ(given.use_count(), 1);
}

TEST(Thread, CanBeMoved) {
  thread one([] { throw 1; });
  thread other = std::move(one);
  EXPECT_THROW(one.join(), error);  // NOLINT(bugprone-use-after-move): on purpose
  other.join();
  one = std::move(other);
  EXPECT_THROW(one.watch(), int);
}

TEST(Thread, OfAForkedChildIsLeftAlone) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer knows nothing of the parent's threads in a forked child";
#endif
  const event begin;
  auto other = std::make_unique<thread>([&] { begin.wait(); });
  auto child = test::spawn(1, [&](std::size_t) { return other.reset(), 0; });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  begin.set();
  other->join();
}

}  // namespace
}  // namespace muster::thread_test
