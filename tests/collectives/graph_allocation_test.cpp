// SPDX-License-Identifier: BSL-1.0
// Graphs of one process; of several: group_allocation_test.cpp.
#include <muster/collectives/graph_local.hpp>

#include <cstddef>
#include <thread>

#include <muster/collectives/group_link.hpp>

#include "allocations.hpp"
#include "graph_kalman.hpp"
#include "graph_support.hpp"

namespace muster::graph_allocation_test {
namespace {

using test::allocations;

TEST(GraphAllocation, ARunAllocatesNothingOnceItIsWarm) {
  const test::kalman_inputs in(8);
  local_graph all(test::kalman_graph(8, true));
  for (const auto& [name, what] :
       {std::pair("mu", &in.mu), {"Sigma", &in.sigma}, {"H", &in.h}, {"R", &in.r}, {"data", &in.data}}) {
    all[0].set(name, test::tensor_of(*what));
  }
  for (int run = 0; run < 3; ++run) all.run();
  const auto before = allocations();
  for (int run = 0; run < 100; ++run) all.run();
  EXPECT_EQ(allocations(), before);
}

// Each rank counts, between runs that both have begun with.
TEST(GraphAllocation, RanksInThreadsAllocateNothingEither) {
  graph g;
  g.on(0).send(g.on(0).input("x", tensor::zeros<float>({8})), {.to = 1, .tag = 1});
  g.on(0).recv("y", {.from = 1, .tag = 2});
  g.on(1).send(g.on(1).recv("x", {.from = 0, .tag = 1}), {.to = 0, .tag = 2});
  local_graph_links links(2);
  auto here = g.plan(0);
  auto there = g.plan(1);
  constexpr int warm = 10;
  constexpr int counted = 200;
  std::thread other([&] {
    for (int run = 0; run < warm + counted; ++run) there.run(links[1]);
  });
  for (int run = 0; run < warm; ++run) here.run(links[0]);
  const auto before = allocations();
  for (int run = 0; run < counted; ++run) here.run(links[0]);
  const auto after = allocations();
  other.join();
  EXPECT_EQ(after, before);
}

// A message to oneself, so that what happens is the same every time.
TEST(GraphAllocation, AGroupsLinkAllocatesNothing) {
  group alone(group_ticket(1), 0);
  group_link link(alone);
  const auto x = tensor::zeros<float>({1000});
  const auto y = tensor::zeros<float>({1000});
  const auto carry = [&] {
    const auto sent = link.isend(x, 0, 1);
    const auto received = link.irecv(y, 0, 1);
    return link.wait(received, deadline::never()) && link.wait(sent, deadline::never());
  };
  for (int warm = 0; warm < 10; ++warm) EXPECT_TRUE(carry());
  const auto before = allocations();
  bool carried = true;
  for (int counted = 0; counted < 1000; ++counted) carried &= carry();
  const auto after = allocations();
  EXPECT_EQ(after, before);
  EXPECT_TRUE(carried);
}

}  // namespace
}  // namespace muster::graph_allocation_test
