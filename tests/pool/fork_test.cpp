// SPDX-License-Identifier: BSL-1.0
// What a forked child does with its parent's pools: nothing, and it is told so.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "memory_map.hpp"
#include "open_files.hpp"
#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::fork_test {
namespace {

using namespace std::chrono_literals;

int add(int a, int b) { return a + b; }
int square(int x) { return x * x; }

bool is_refused(const std::function<void()>& call) {
  try {
    call();
    return false;
  } catch (const error& failure) {
    const std::string what = failure.what();
    return failure.code() == errc::forked && what.find("after fork()") != std::string::npos;
  }
}

/// Whether this child has nothing that is its parent's: reading or writing it would end it by a signal.
bool is_shut_out() {
  return test::count_open("memfd:muster-") == 0 && test::flags_of_mappings("memfd:muster-").empty();
}

/// Runs it in a forked child; whether it returned true there.
bool holds_in_child(const std::function<bool()>& what) {
  return test::spawn(1, [&](std::size_t) { return what() ? 0 : 1; })->wait(0) == exit_status::exited(0);
}

class Fork : public testing::Test {
protected:
  // Whatever the child did, the parent's pools are as they were.
  void TearDown() override {
    EXPECT_EQ(pool_.apply(add, 20, 22), 42);
    EXPECT_EQ(pool_.stats().workers.started, 2U);
    EXPECT_EQ(threads_.apply(add, 20, 22), 42);
  }

  pool pool_{test::quiet(2)};
  thread_pool threads_{{.workers = 2}};
};

TEST_F(Fork, EveryCallInAChildThrowsWhatToDo) {
  const std::vector<int> xs{1, 2, 3};
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { pool_.apply(add, 1, 2); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { static_cast<void>(pool_.apply_async(add, 1, 2)); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { pool_.with({.retries = 1}).map(square, xs); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { static_cast<void>(pool_.imap(square, xs)); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { pool_.collect_errors().map(square, xs); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { pool_.broadcast(add, 1, 2); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { static_cast<void>(pool_.feed<int>(square)); }); }));
  EXPECT_TRUE(
      holds_in_child([&] { return is_refused([&] { static_cast<void>(pool_.share(std::array<int, 4>{7})); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { static_cast<void>(threads_.share(7)); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { threads_.apply(add, 1, 2); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { threads_.with({.chunk = 2}).map(square, xs); }); }));
}

TEST_F(Fork, AFeedThatIsPushedIntoThrowsAndReachesNobody) {
  auto squares = pool_.with({.window = 1}).feed<int>(square);
  auto locals = threads_.with({.window = 1}).feed<int>(square);
  for (const bool is_full : {false, true}) {
    if (is_full) {
      squares.push(3);
      locals.push(4);
    }
    EXPECT_TRUE(holds_in_child([&] {
      return is_shut_out() && is_refused([&] { squares.push(5); }) && is_refused([&] { squares.next(); }) &&
             is_refused([&] { squares.close(); }) && is_refused([&] { locals.push(5); }) &&
             is_refused([&] { locals.next(); });
    }));
  }
  EXPECT_EQ(squares.next(), 9);
  EXPECT_EQ(locals.next(), 16);
}

TEST_F(Fork, HowAPoolEndsIsForItsOwnProcess) {
  EXPECT_TRUE(holds_in_child([&] {
    return is_refused([&] { pool_.close(); }) && is_refused([&] { pool_.drain(); }) &&
           is_refused([&] { pool_.terminate(); }) && is_refused([&] { pool_.join(); }) &&
           is_refused([&] { pool_.resize(1); }) && is_refused([&] { static_cast<void>(pool_.stats()); }) &&
           is_refused([&] { static_cast<void>(pool_.workers()); }) &&
           is_refused([&] { static_cast<void>(pool_.started()); }) && is_refused([&] { threads_.close(); }) &&
           is_refused([&] { threads_.terminate(); });
  }));
}

TEST_F(Fork, FuturesAndStreamsThrowInAChildAndAreThereForTheParent) {
  const std::vector<int> xs{1, 2, 3};
  const event began;
  const event end;
  auto runs = pool_.apply_async(test::run_until, began, end);
  auto map = pool_.map_async(square, xs);
  auto stream = pool_.imap(square, xs);
  auto local = threads_.apply_async(add, 1, 2);
  began.wait();
  EXPECT_TRUE(holds_in_child([&] {
    return is_refused([&] { runs.get(); }) && is_refused([&] { static_cast<void>(runs.ready()); }) &&
           is_refused([&] { runs.cancel(); }) && is_refused([&] { static_cast<void>(runs.wait_for(0s)); }) &&
           is_refused([&] { map.get(); }) && is_refused([&] { stream.next(); }) && is_refused([&] { local.get(); });
  }));
  end.set();
  EXPECT_FALSE(runs.get());
  EXPECT_THAT(map.get(), testing::ElementsAre(1, 4, 9));
  EXPECT_EQ(stream.next(), 1);
  EXPECT_EQ(local.get(), 3);
}

// As it does when it leaves the scopes that it was forked in.
TEST_F(Fork, AChildThatDropsEverythingChangesNothing) {
  const std::vector<int> xs{1, 2, 3};
  const event began;
  const event also_began;
  const event end;
  std::optional<pool> more(test::quiet(1));
  auto runs = pool_.apply_async(test::run_until, began, end);
  began.wait();
  std::optional map(pool_.map_async(square, xs));
  std::optional chunks(pool_.with({.chunk = 2}).imap_unordered(square, xs));
  EXPECT_EQ(chunks->next().has_value(), true);
  std::optional by_itself(pool_.imap(square, slow(xs)));
  EXPECT_EQ(by_itself->next(), 1);
  std::optional pushed(pool_.with({.window = 8}).feed<int>(square));
  for (int each = 1; each < 4; ++each) pushed->push(each);
  EXPECT_EQ(pushed->next(), 1);
  auto ends = pool_.apply_async(add, 100, 1);
  auto also_runs = pool_.apply_async(test::run_until, also_began, end);
  also_began.wait();  // and nobody is free for what comes now
  std::vector<future<int>> waiting;
  waiting.reserve(101);
  for (int each = 0; each < 100; ++each) waiting.push_back(pool_.apply_async(add, each, 1));
  pushed->push(4);
  std::optional stream(pool_.imap(square, xs));
  auto shared = std::make_optional(share(std::array<int, 1000>{7}));
  EXPECT_TRUE(holds_in_child([&] {
    if (!is_shut_out()) return false;
    waiting.push_back(std::move(ends));
    waiting.clear();
    map.reset();
    stream.reset();
    chunks.reset();
    by_itself.reset();
    pushed.reset();
    shared.reset();
    more.reset();
    return true;
  }));
  EXPECT_EQ(more->apply(add, 1, 2), 3);
  end.set();
  EXPECT_FALSE(runs.get());
  EXPECT_FALSE(also_runs.get());
  EXPECT_EQ(ends.get(), 101);
  for (int each = 0; each < 100; ++each) EXPECT_EQ(waiting[static_cast<std::size_t>(each)].get(), each + 1);
  EXPECT_THAT(map->get(), testing::ElementsAre(1, 4, 9));
  for (int each = 2; each < 5; ++each) EXPECT_EQ(pushed->next(), each * each);
  EXPECT_EQ((**shared)[0], 7);
}

TEST_F(Fork, AChildMayMakePoolsOfItsOwn) {
  EXPECT_TRUE(holds_in_child([&] {
    init(0, nullptr);
    const pool own(test::quiet(1));
    return own.apply(add, 20, 22) == 42 && is_refused([&] { pool_.apply(add, 1, 2); });
  }));
}

// The child goes on in the parent's place.
TEST_F(Fork, AfterDaemonCallsThrow) {
  EXPECT_TRUE(holds_in_child([] {
    init(0, nullptr);
    auto before = std::make_optional<pool>(test::quiet(1));
    const test::shared<std::atomic<int>> found;
    const auto child = ::fork();
    if (child == 0) {
      if (::daemon(1, 1) != 0) ::_exit(1);
      init(0, nullptr);
      const bool refused = is_refused([&] { before->apply(add, 1, 2); });
      const pool after(test::quiet(1));
      *found = refused && after.apply(add, 20, 22) == 42 ? 1 : 2;
      ::_exit(0);
    }
    return test::eventually([&] { return *found != 0; }) && *found == 1;
  }));
}

TEST_F(Fork, AProcessObjectIsOfItsParent) {
  const event began;
  const event end;
  const process runs(test::run_until, began, end);
  began.wait();
  EXPECT_TRUE(holds_in_child([&] {
    return is_refused([&] { runs.join(); }) && is_refused([&] { static_cast<void>(runs.is_alive()); }) &&
           is_refused([&] { runs.terminate(); });
  }));
  end.set();
  runs.join();
  EXPECT_EQ(runs.exit_status(), exit_status::exited(0));
}

}  // namespace
}  // namespace muster::fork_test
