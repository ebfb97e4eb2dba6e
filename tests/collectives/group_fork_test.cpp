// SPDX-License-Identifier: BSL-1.0
// What a forked child does with its parent's groups: nothing, and it is told so.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <muster/collectives/graph.hpp>
#include <muster/collectives/group.hpp>
#include <muster/collectives/group_link.hpp>
#include <muster/collectives/group_objects.hpp>
#include <muster/collectives/work_future.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::group_fork_test {
namespace {

using namespace std::chrono_literals;

bool is_refused(const std::function<void()>& call) {
  try {
    call();
    return false;
  } catch (const error& failure) {
    return failure.code() == errc::forked && std::string(failure.what()).find("fork") != std::string::npos;
  }
}

/// Runs it in a forked child; whether it returned true there.
bool holds_in_child(const std::function<bool()>& what) {
  return test::spawn(1, [&](std::size_t) { return what() ? 0 : 1; })->wait(0) == exit_status::exited(0);
}

bool is_refused_in_child(const std::function<void()>& call) {
  return holds_in_child([&] { return is_refused(call); });
}

/// Of rank 0 of a group of two. Whatever the child did, the parent's group is as it was.
struct two_ranks {
  two_ranks() {
    // The group's thread is there, and so are the rings.
    const auto sent = mine.isend(sum, 1);
    static_cast<void>(peer.recv(0));
    const auto begun = mine.barrier_async();
    peer.barrier();
    begun.wait();
  }
  ~two_ranks() {
    const auto begun = mine.all_reduce_async(sum);
    peer.all_reduce(tensor::ones<float>({4}));
    begun.wait();
    EXPECT_EQ(sum.at<float>(0), 2);
    peer.send(sum, 0);
    EXPECT_EQ(mine.recv(1).at<float>(0), 2);
  }

  group_ticket ticket{2, {.timeout = 60s}};
  tensor sum = tensor::ones<float>({4});
  group mine{ticket, 0};
  group peer{ticket, 1};
};

void expect_nothing_done_in_children() {
  two_ranks both;
  auto& mine = both.mine;
  EXPECT_TRUE(is_refused_in_child([&] { mine.barrier(); }));
  EXPECT_TRUE(is_refused_in_child([&] { mine.all_reduce(both.sum); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.all_reduce_async(both.sum)); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.isend(both.sum, 1)); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.recv(1)); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.all_gather_object(1)); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.split(0)); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.subset({0})); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.shrink()); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(mine.members()); }));
  EXPECT_TRUE(holds_in_child([&] {
    mine.abort("in a child");
    return !mine.is_whole();
  }));
  EXPECT_TRUE(holds_in_child([&] {
    {
      const auto dropped = std::move(mine);
    }
    return true;
  }));
}

TEST(GroupFork, AChildsCallsThrowAndItsDestructorsDoNothing) { expect_nothing_done_in_children(); }

TEST(GroupFork, AChildsHandlesOfWorkThrow) {
  two_ranks both;
  const auto receive = both.mine.irecv(1, 5);
  const auto call = both.mine.barrier_async();
  for (const auto* each : {&receive, &call}) {
    EXPECT_TRUE(is_refused_in_child([&] { each->wait(); }));
    EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(each->test()); }));
    EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(each->exception()); }));
    EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(each->cancel()); }));
    EXPECT_TRUE(is_refused_in_child([&] { each->then([](const std::exception_ptr&) {}); }));
    EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(wait_any({each, 1})); }));
    EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(future_of(*each)); }));
  }
  both.peer.barrier();
  both.peer.send(both.sum, 0, 5);
  call.wait();
  receive.wait();
}

TEST(GroupFork, AChildsFuturesOfWorkThrowAndItsDestructorsDoNothing) {
  two_ranks both;
  auto receive = future_of(both.mine.irecv(1, 5)).then([](const tensor& got) { return got; });
  auto call = future_of(both.mine.barrier_async());
  for (auto* const each : {&receive, &call}) {
    EXPECT_TRUE(is_refused_in_child([&] { each->wait(); }));
    EXPECT_TRUE(holds_in_child([&] {
      {
        const auto dropped = std::move(*each);
        const auto group_too = std::move(both.mine);
      }
      return true;
    }));
  }
  both.peer.barrier();
  both.peer.send(both.sum, 0, 5);
  call.wait();
  EXPECT_EQ(receive.get().at<float>(0), 1);
}

TEST(GroupFork, AChildCannotJoinWithItsParentsTicketButMakesGroupsOfItsOwn) {
  const group_ticket ticket(2, {.timeout = 60s});
  EXPECT_TRUE(is_refused_in_child([&] { const group child(ticket, 1); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(ticket.ranks()); }));
  EXPECT_TRUE(holds_in_child([&] {
    const group_ticket another(1);
    group own(another, 0);
    own.barrier_async().wait();
    return own.is_whole();
  }));
}

TEST(GroupFork, AChildWithItsParentsMemoryIsNoRankEither) {
  const auto inherited =
      std::make_shared<domain>(domain_options{.arena_bytes = std::size_t{64} << 20U, .inherited = true});
  const group_ticket ticket(2, {.timeout = 60s}, inherited);
  group mine(ticket, 0);
  EXPECT_TRUE(is_refused_in_child([&] { const group child(ticket, 1); }));
  EXPECT_TRUE(is_refused_in_child([&] { mine.barrier(); }));
  EXPECT_TRUE(holds_in_child([&] {
    {
      const auto dropped = std::move(mine);
    }
    return true;
  }));
  group peer(ticket, 1);
  const auto begun = mine.barrier_async();
  peer.barrier();
  begun.wait();
}

TEST(GroupFork, AChildCannotRunAGraphOverItsParentsGroup) {
  two_ranks both;
  graph sends;
  auto here = sends.on(0);
  here.send(here.input("x", both.sum), {.to = 1});
  sends.on(1).recv("y", {.from = 0});
  auto plan = sends.plan(0);
  group_link link(both.mine);
  EXPECT_TRUE(is_refused_in_child([&] { plan.run(link); }));
  EXPECT_TRUE(is_refused_in_child([&] { static_cast<void>(link.irecv(both.sum, 1, 0)); }));
}

// The child of a task.
bool is_nothing_done_in_a_workers_child() {
  expect_nothing_done_in_children();
  return !testing::Test::HasFailure();
}

TEST(GroupFork, AChildOfATaskIsTreatedAlike) {
  const pool pool({.workers = 1});
  EXPECT_TRUE(pool.apply(is_nothing_done_in_a_workers_child));
}

}  // namespace
}  // namespace muster::group_fork_test
