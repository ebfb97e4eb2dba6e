// SPDX-License-Identifier: BSL-1.0
// What a forked child has of its parent's shared memory: nothing, so that the memory of a killed program is free
// whoever lives on; unless the domain was made to be inherited.
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/pidfd.hpp>
#include <muster/collectives/group.hpp>
#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/shared_queue.hpp>

#include "memory_map.hpp"
#include "open_files.hpp"
#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::child_memory_test {
namespace {

constexpr const char* ours = "memfd:muster-";

bool is_refused(const std::function<void()>& call) {
  try {
    call();
    return false;
  } catch (const error& failure) {
    return failure.code() == errc::forked;
  }
}

/// Runs it in a forked child; whether it returned true there.
bool holds_in_child(const std::function<bool()>& what) {
  return test::spawn(1, [&](std::size_t) { return what() ? 0 : 1; })->wait(0) == exit_status::exited(0);
}

bool has_nothing_mapped(pid_t pid = 0) { return test::flags_of_mappings(ours, pid).empty(); }
bool has_nothing(pid_t pid = 0) { return has_nothing_mapped(pid) && test::count_open(ours, pid) == 0; }

[[noreturn]] void live_on() {
  for (;;) ::pause();
}

/// A process that is neither this one's child nor of its group, by the number that `pid` gets; killed in the end.
class survivor {
public:
  survivor() = default;
  survivor(const survivor&) = delete;
  survivor& operator=(const survivor&) = delete;
  ~survivor() {
    if (!process_) return;
    send_signal(process_.get(), SIGKILL);
    static_cast<void>(reap(process_.get()));  // this process is its subreaper
  }
  [[nodiscard]] bool await() {
    if (!test::eventually([&] { return *number_ != 0; })) return false;
    process_ = open_pidfd(*number_);
    return true;
  }
  [[nodiscard]] pid_t pid() const { return *number_; }
  [[nodiscard]] bool lives() const { return !has_ended(process_.get()); }

  /// In the process itself.
  void announce() const { *number_ = ::getpid(); }

private:
  // Not of the test's own memory: its name is another.
  struct words {
    std::atomic<pid_t> number = 0;
  };
  const unique_fd file_ = make_memfd("survivor", sizeof(words));
  const mapping memory_{file_, sizeof(words), mapping::inherit::yes};
  std::atomic<pid_t>* const number_ = &(new (memory_.bytes().data()) words)->number;
  unique_fd process_;
};

TEST(ChildMemory, AChildThatOutlivesItsKilledProgramHasNothingOfIt) {
  survivor child;
  const auto program = test::spawn(1, [&](std::size_t) {
    init(0, nullptr);
    const pool pool(test::quiet(2));
    const auto data = tensor::ones<double>({1 << 20});
    if (has_nothing()) return 1;
    if (::fork() == 0) {
      child.announce();
      live_on();
    }
    live_on();
    return 0;
  });
  ASSERT_TRUE(child.await());
  program->kill(0);
  static_cast<void>(program->wait(0));
  ASSERT_TRUE(child.lives());
  EXPECT_TRUE(has_nothing(child.pid()));
}

// It makes a session of its own: otherwise it dies with its worker's group.
TEST(ChildMemory, AChildThatATaskForksHasNothingOfTheProgram) {
  const pool pool(test::quiet(1));
  const auto child = pool.apply([] {
    const auto made = ::fork();
    if (made != 0) return made;
    ::setsid();
    live_on();
  });
  EXPECT_TRUE(test::eventually([&] { return has_nothing(child); }));  // once it has begun
  EXPECT_FALSE(has_nothing(pool.workers().front().pid));
  ::kill(child, SIGKILL);
}

// Without the C library, which would have told muster: the files are open there.
TEST(ChildMemory, AChildThatRawCloneHasMadeHasNothingMapped) {
  const pool pool(test::quiet(1));
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_TRUE(has_nothing_mapped(child));
  const auto process = open_pidfd(child);
  send_signal(process.get(), SIGKILL);
  EXPECT_EQ(reap(process.get()).signal(), SIGKILL);
}

TEST(ChildMemory, WhatLiesInSharedMemoryIsRefusedInAChild) {
  const pool pool(test::quiet(1));
  const auto data = tensor::ones<double>({100});
  const auto row = data.slice(10, 20);
  const auto local = tensor::ones<double>({100}, memory::local);
  const auto shared = share(std::array<int, 1000>{7});
  const event happened;
  happened.set();
  const auto either = any_of(happened, event());
  const shared_queue<int> numbers(4);
  EXPECT_TRUE(holds_in_child([&] {
    return has_nothing() && is_refused([&] { static_cast<void>(data.at<double>(3)); }) &&
           is_refused([&] { data.fill(2.0); }) && is_refused([&] { static_cast<void>(row.to_vector<double>()); }) &&
           is_refused([&] { static_cast<void>(row.clone(memory::local)); }) &&
           is_refused([&] { static_cast<void>((*shared)[0]); }) &&
           is_refused([&] { static_cast<void>(happened.is_set()); }) && is_refused([&] { happened.set(); }) &&
           is_refused([&] { happened.clear(); }) && is_refused([&] { happened.wait(); }) &&
           is_refused([&] { either.wait(); }) && is_refused([&] { numbers.push(1); }) &&
           is_refused([&] { static_cast<void>(numbers.try_pop()); }) && data.size() == 100 && shared &&
           local.at<double>(99) == 1;
  }));
  EXPECT_EQ(data.at<double>(3), 1);
  EXPECT_EQ((*shared)[0], 7);
  EXPECT_TRUE(happened.is_set());
}

TEST(ChildMemory, AChildThatDropsEverythingTouchesNothing) {
  auto pool = std::make_optional<muster::pool>(test::quiet(1));
  auto data = std::make_optional(tensor::ones<double>({100}));
  auto row = std::make_optional(data->slice(10, 20));
  auto shared = std::make_optional(share(std::array<int, 1000>{7}));
  auto happened = std::make_optional<event>();
  auto numbers = std::make_optional<shared_queue<int>>(4);
  numbers->push(3);
  auto lease = numbers->lease();
  numbers->push(4);
  auto where = domain::of_program();
  EXPECT_TRUE(holds_in_child([&] {
    if (!has_nothing()) return false;
    lease.reset();
    row.reset();
    data.reset();
    shared.reset();
    happened.reset();
    numbers.reset();
    pool.reset();
    where.reset();
    const auto own = tensor::ones<double>({100});  // in a domain of the child's
    return own.at<double>(99) == 1;
  }));
  EXPECT_EQ(data->at<double>(99), 1);
  lease.reset();
  EXPECT_EQ(numbers->pop(), 3);
  EXPECT_EQ(numbers->pop(), 4);
  EXPECT_EQ(pool->apply([] { return 42; }), 42);
}

TEST(ChildMemory, ADescriptorThatTheHostKeepsIsClosedInAChild) {
  domain host({.arena_bytes = std::size_t{1} << 20U});
  auto& exchange = host.descriptors();
  const auto name = exchange.make_name();
  exchange.deposit(name, make_memfd("kept-for-others", 4096), {});
  const auto count = [] { return test::count_open("kept-for-others"); };
  EXPECT_EQ(count(), 1U);
  EXPECT_TRUE(holds_in_child([&] { return count() == 0; }));
  EXPECT_TRUE(exchange.fetch(name, deadline::never()).has_value());
}

TEST(ChildMemory, AGroupsHandlesAreRefusedInAChildAndLeaveItWhole) {
  const group_ticket ticket(2);
  group one(ticket, 0);
  std::optional<group> other(std::in_place, ticket, 1);
  const auto into = tensor::zeros<int>({4});
  const auto received = other->irecv(into, 0);
  auto dropped = one.irecv(tensor::zeros<int>({4}), 1);
  EXPECT_TRUE(holds_in_child([&] {
    const bool refused =
        has_nothing() && is_refused([&] { one.barrier(); }) &&
        is_refused([&] { static_cast<void>(one.barrier_async()); }) && is_refused([&] { one.send(into, 1); }) &&
        is_refused([&] { received.wait(); }) && is_refused([&] { static_cast<void>(received.test()); }) &&
        is_refused([&] { static_cast<void>(one.members()); }) && is_refused([&] { static_cast<void>(one.split(0)); }) &&
        is_refused([&] { static_cast<void>(ticket.ranks()); }) && !one.is_whole() && one.size() == 2;
    one.abort("of no use");
    dropped = {};
    other.reset();
    return refused;
  }));
  EXPECT_TRUE(one.is_whole());
  one.send(tensor::full<int>({4}, 5), 1);
  received.wait();
  EXPECT_EQ(into.at<int>(3), 5);
  other->send(into, 0);
  dropped.wait();
}

TEST(ChildMemory, AWorldsHandlesAreRefusedInAChildAndLeaveItWhole) {
  auto three = std::make_optional<world>(world_options{.ranks = 2});
  auto ranks = std::make_optional(three->function([] { return 1.0; }, outputs(none("ones"))));
  static_cast<void>((*ranks)());
  EXPECT_TRUE(holds_in_child([&] {
    const bool refused = has_nothing() && is_refused([&] { static_cast<void>((*ranks)()); });
    ranks.reset();
    three.reset();
    return refused;
  }));
  static_cast<void>((*ranks)());
}

TEST(ChildMemory, AnInheritedDomainIsThereForAChildToReadAndChangesNothingWhenItIsDropped) {
  auto where = domain::of_program({.inherited = true});
  auto data = std::make_optional(tensor::ones<double>({100}));
  auto shared = std::make_optional(share(std::array<int, 1000>{7}));
  const event happened;
  EXPECT_TRUE(holds_in_child([&] {
    const bool is_there = data->at<double>(99) == 1 && (**shared)[0] == 7;
    happened.set();
    data.reset();
    shared.reset();
    where.reset();
    return is_there;
  }));
  EXPECT_TRUE(happened.is_set());
  EXPECT_EQ(data->at<double>(99), 1);
  EXPECT_EQ((**shared)[0], 7);
}

}  // namespace
}  // namespace muster::child_memory_test
