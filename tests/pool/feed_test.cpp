// SPDX-License-Identifier: BSL-1.0
// Streams that are pushed into, over pools of processes, of threads, and of neither; and the pace of inputs that come
// by themselves.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/detail/input_pace.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/pool/thread_pool.hpp>

#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::feed_test {
namespace {

using namespace std::chrono_literals;

int square(int x) { return x * x; }
int fail_at_three(int x) { return x == 3 ? throw std::runtime_error("three") : x; }
std::size_t length(const std::string& text) { return text.size(); }
void nothing(int) {}

struct processes {
  static pool make() { return pool(test::quiet(2)); }
};
struct threads {
  static thread_pool make() { return thread_pool({.workers = 2}); }
};
struct serial {
  static serial_pool make() { return serial_pool(); }
};

template <class Kind>
class Feed : public testing::Test {
protected:
  decltype(Kind::make()) pool_ = Kind::make();
};
using kinds = testing::Types<processes, threads, serial>;
TYPED_TEST_SUITE(Feed, kinds);

TYPED_TEST(Feed, AResultComesThoughNothingElseIsPushed) {
  auto squares = this->pool_.template feed<int>(square);
  for (int each = 0; each < 100; ++each) {
    EXPECT_TRUE(squares.push(each));
    ASSERT_EQ(squares.next(), each * each);
  }
  squares.close();
  EXPECT_EQ(squares.next(), std::nullopt);
}

TYPED_TEST(Feed, ResultsComeInTheOrderOfTheElements) {
  auto lengths = this->pool_.with({.window = 7}).template feed<std::string>(length);
  std::thread source([&] {
    for (std::size_t each = 0; each < 500; ++each) lengths.push(std::string(each, 'x'));
    lengths.close();
  });
  std::size_t expected = 0;
  for (const auto each : lengths) ASSERT_EQ(each, expected++);
  EXPECT_EQ(expected, 500U);
  source.join();
}

TYPED_TEST(Feed, SeveralMayPush) {
  auto squares = this->pool_.template feed<int>(square);
  std::vector<std::thread> sources;
  for (int source = 0; source < 4; ++source) {
    sources.emplace_back([&squares, source] {
      for (int each = 0; each < 100; ++each) squares.push(100 * source + each);
    });
  }
  std::multiset<int> found;
  for (int each = 0; each < 400; ++each) found.insert(*squares.next());
  for (auto& each : sources) each.join();
  for (int each = 0; each < 400; ++each) ASSERT_EQ(found.count(each * each), 1U);
}

TYPED_TEST(Feed, PushWaitsWhileTheWindowIsFull) {
  auto squares = this->pool_.with({.window = 2}).template feed<int>(square);
  std::atomic<int> pushed = 0;
  std::thread source([&] {
    for (int each = 0; each < 20; ++each) {
      squares.push(each);
      ++pushed;
    }
  });
  for (int consumed = 0; consumed < 20; ++consumed) {
    EXPECT_LE(pushed, consumed + 2);
    EXPECT_EQ(squares.next(), consumed * consumed);
  }
  source.join();
}

TYPED_TEST(Feed, ClosingEndsWhoPushesAndWhoWaits) {
  auto full = this->pool_.with({.window = 1}).template feed<int>(square);
  EXPECT_TRUE(full.push(1));
  std::thread source([&] { EXPECT_FALSE(full.push(2)); });
  full.close();
  source.join();
  EXPECT_EQ(full.next(), 1);
  EXPECT_EQ(full.next(), std::nullopt);

  auto empty = this->pool_.template feed<int>(square);
  std::thread sink([&] { EXPECT_EQ(empty.next(), std::nullopt); });
  empty.close();
  sink.join();
  EXPECT_FALSE(empty.push(1));
}

TYPED_TEST(Feed, AFailingElementThrowsAtItsPlaceAndTheNextCallGoesOn) {
  auto found = this->pool_.with({.window = 8}).template feed<int>(fail_at_three);
  for (int each = 2; each < 5; ++each) found.push(each);
  EXPECT_EQ(found.next(), 2);
  EXPECT_THROW(found.next(), std::runtime_error);
  EXPECT_EQ(found.next(), 4);
  found.push(3);
  const auto failed = found.next_result();
  ASSERT_TRUE(failed && !*failed);
  EXPECT_EQ(failed->error().place().element, 3U);
}

TYPED_TEST(Feed, OfAFunctionWithoutResultYieldsMonostate) {
  auto done = this->pool_.template feed<int>(nothing);
  done.push(1);
  EXPECT_TRUE(done.next());
}

TYPED_TEST(Feed, OneThatIsDroppedDoesNoHarm) {
  for (int round = 0; round < 10; ++round) {
    auto dropped = this->pool_.template feed<int>(square);
    dropped.push(round);
  }
  EXPECT_EQ(this->pool_.apply(square, 3), 9);
}

TYPED_TEST(Feed, IntoAPoolThatIsClosedIsAnError) {
  auto squares = this->pool_.with({.window = 8}).template feed<int>(square);
  squares.push(3);
  this->pool_.close();
  EXPECT_THROW(squares.push(4), error);
  EXPECT_EQ(squares.next(), 9);
  squares.close();
  EXPECT_EQ(squares.next(), std::nullopt) << "nothing is being sent any more";
}

TEST(FeedOfThreads, OneThatIsDroppedAsksTheElementThatRunsToStopAndWaitsForIt) {
  bool ended = false;
  std::latch begun(1);
  const thread_pool pool({.workers = 1});
  {
    auto dropped = pool.feed<int>([&](int) {
      begun.count_down();
      while (!this_task::stop_requested()) ::sched_yield();
      test::work_for(10ms);
      ended = true;
    });
    EXPECT_TRUE(dropped.push(1));
    begun.wait();
  }
  EXPECT_TRUE(ended);
}

// Sending it takes as long as the element.
TEST(FeedOfNoThreads, AnElementThatIsBeingPushedWhenItIsClosedComesBeforeTheEnd) {
  std::latch begun(1);
  std::latch may_end(1);
  std::atomic<bool> is_over = false;
  const serial_pool pool;
  auto squares = pool.feed<int>([&](int x) {
    begun.count_down();
    may_end.wait();
    return x * x;
  });
  std::thread source([&] { EXPECT_TRUE(squares.push(3)); });
  begun.wait();
  squares.close();
  std::thread releaser([&] {  // when this thread waits for the element, or has not waited
    EXPECT_TRUE(test::eventually([&] { return is_over || test::sleeps_on_futex(::getpid()); }));
    may_end.count_down();
  });
  EXPECT_EQ(squares.next(), 9);
  is_over = true;
  releaser.join();
  source.join();
  EXPECT_EQ(squares.next(), std::nullopt);
}

TEST(InputPace, AQuickInputIsAskedAtOnce) {
  detail::input_pace pace;
  EXPECT_GT(pace.patience(), 0ns) << "nothing is known yet";
  pace.observe(1us);
  EXPECT_GT(pace.patience(), 0ns) << "of one element as little";
  pace.observe(1us);
  EXPECT_EQ(pace.patience(), 0ns);
}

TEST(InputPace, ASlowOneGivesAResultAsMuchTimeAsItTook) {
  detail::input_pace pace;
  for (int each = 0; each < 10; ++each) pace.observe(1us);
  pace.observe(2s);
  EXPECT_EQ(pace.patience(), 2s);
  pace.observe(1us);
  EXPECT_EQ(pace.patience(), 0ns);
}

}  // namespace
}  // namespace muster::feed_test
