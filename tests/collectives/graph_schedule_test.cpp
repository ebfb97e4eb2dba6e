// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/graph.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "graph_kalman.hpp"
#include "graph_support.hpp"

namespace muster::graph_schedule_test {
namespace {

using test::lines_of;
using test::nothing;
using test::number;
using test::shuffled_graph;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- what the predecessor printed: gist 3750410, and theano/tensor/tests/test_mpi.py

TEST(GraphSchedule, ReproducesTheKalmanFilterOfRank0) {
  EXPECT_THAT(lines_of(test::kalman_graph(8, false), 0),
              ElementsAre("send \"H\" to rank 1, tag 1",                                         //
                          "send \"Sigma\" to rank 1, tag 3",                                     //
                          "receive \"updated_Sigma\" from rank 1, tag 5",                        //
                          "compute \"H.T\" of \"H\"",                                            //
                          "compute \"A\" of \"Sigma\", \"H.T\"",                                 //
                          "send \"A\" to rank 1, tag 4",                                         //
                          "compute \"B\" of \"R\", \"H\", \"A\"",                                //
                          "send \"B\" to rank 1, tag 2",                                         //
                          "compute \"H mu - data\" of \"data\", \"H\", \"mu\"",                  //
                          "compute \"solve(B, H mu - data)\" of \"B\", \"H mu - data\"",         //
                          "compute \"updated_mu\" of \"mu\", \"A\", \"solve(B, H mu - data)\"",  //
                          "wait until sent: \"H\" to rank 1, tag 1",                             //
                          "wait until sent: \"B\" to rank 1, tag 2",                             //
                          "wait until sent: \"Sigma\" to rank 1, tag 3",                         //
                          "wait until sent: \"A\" to rank 1, tag 4",                             //
                          "wait until received: \"updated_Sigma\" from rank 1, tag 5"));
}

TEST(GraphSchedule, ReproducesTheKalmanFilterOfRank1) {
  EXPECT_THAT(lines_of(test::kalman_graph(8, false), 1),
              ElementsAre("receive \"H\" from rank 0, tag 1",                                             //
                          "receive \"B\" from rank 0, tag 2",                                             //
                          "receive \"Sigma\" from rank 0, tag 3",                                         //
                          "receive \"A\" from rank 0, tag 4",                                             //
                          "wait until received: \"H\" from rank 0, tag 1",                                //
                          "wait until received: \"B\" from rank 0, tag 2",                                //
                          "compute \"solve(B, H)\" of \"B\", \"H\"",                                      //
                          "wait until received: \"A\" from rank 0, tag 4",                                //
                          "compute \"A solve(B, H)\" of \"A\", \"solve(B, H)\"",                          //
                          "wait until received: \"Sigma\" from rank 0, tag 3",                            //
                          "compute \"A solve(B, H) Sigma\" of \"A solve(B, H)\", \"Sigma\"",              //
                          "compute \"updated_Sigma\" in place of \"A solve(B, H) Sigma\", of \"Sigma\"",  //
                          "send \"updated_Sigma\" to rank 0, tag 5",                                      //
                          "wait until sent: \"updated_Sigma\" to rank 0, tag 5"));
}

TEST(GraphSchedule, ReproducesTheOrderOfReceives) {
  graph g;
  auto here = g.on(0);
  for (const auto* name : {"y", "x", "z"}) {
    here.recv(name, number, {.from = 1, .tag = *name == 'x' ? 11 : *name == 'y' ? 12 : 13});
  }
  EXPECT_THAT(lines_of(g, 0), ElementsAre("receive \"x\" from rank 1, tag 11",               //
                                          "receive \"y\" from rank 1, tag 12",               //
                                          "receive \"z\" from rank 1, tag 13",               //
                                          "wait until received: \"x\" from rank 1, tag 11",  //
                                          "wait until received: \"y\" from rank 1, tag 12",  //
                                          "wait until received: \"z\" from rank 1, tag 13"));
}

TEST(GraphSchedule, ReproducesTheOrderOfSendAndCompute) {
  graph g;
  auto here = g.on(0);
  const auto x = here.input("x", number);
  const auto y = here.compute("y", number, {x}, nothing);
  here.send(x, {.to = 1, .tag = 1});
  EXPECT_THAT(lines_of(g, 0), ElementsAre("send \"x\" to rank 1, tag 1", "compute \"y\" of \"x\"",
                                          "wait until sent: \"x\" to rank 1, tag 1"));
}

TEST(GraphSchedule, ReproducesTheRoundTrip) {
  graph g;
  auto here = g.on(0);
  const auto y = here.compute("x + 1", number, {here.input("x", number)}, nothing);
  here.send(y, {.to = 1, .tag = 11});
  here.recv("z", {.from = 1, .tag = 12});
  auto there = g.on(1);
  there.send(there.compute("2 y", number, {there.recv("y", {.from = 0, .tag = 11})}, nothing), {.to = 0, .tag = 12});
  EXPECT_THAT(
      lines_of(g, 0),
      ElementsAre("receive \"z\" from rank 1, tag 12", "compute \"x + 1\" of \"x\"", "send \"x + 1\" to rank 1, tag 11",
                  "wait until sent: \"x + 1\" to rank 1, tag 11", "wait until received: \"z\" from rank 1, tag 12"));
  EXPECT_THAT(lines_of(g, 1),
              ElementsAre("receive \"y\" from rank 0, tag 11", "wait until received: \"y\" from rank 0, tag 11",
                          "compute \"2 y\" of \"y\"", "send \"2 y\" to rank 0, tag 12",
                          "wait until sent: \"2 y\" to rank 0, tag 12"));
}

// ---- what the order depends on

TEST(GraphSchedule, IsTheSameForTheRankAlone) {
  graph alone;
  auto there = alone.on(1);
  const graph_form square{dtype::f32, {8, 8}};
  const auto h = there.recv("H", square, {.from = 0, .tag = 1});
  const auto b = there.recv("B", square, {.from = 0, .tag = 2});
  const auto sigma = there.recv("Sigma", square, {.from = 0, .tag = 3});
  const auto a = there.recv("A", square, {.from = 0, .tag = 4});
  const auto s = there.compute("solve(B, H)", square, {b, h}, nothing);
  const auto gain = there.compute("A solve(B, H)", square, {a, s}, nothing);
  const auto loss = there.compute("A solve(B, H) Sigma", square, {gain, sigma}, nothing);
  there.send(there.compute_in_place("updated_Sigma", loss, {sigma}, nothing), {.to = 0, .tag = 5});
  EXPECT_EQ(lines_of(alone, 1), lines_of(test::kalman_graph(8, false), 1));
}

// Values that are computed from up to three of those before, some of other ranks.
shuffled_graph random_graph(std::mt19937& random, int ranks, int values) {
  shuffled_graph made;
  int tag = 0;
  for (int value = 0; value < values; ++value) {
    const int rank = value % ranks;
    std::vector<graph_value> inputs;
    for (auto count = random() % 4; count > 0 && value > 0; --count) {
      const int other = static_cast<int>(random() % static_cast<unsigned>(value));
      const int peer = other % ranks;
      const auto name = text("v", other);
      if (peer == rank) {
        inputs.emplace_back(name);
        continue;
      }
      const int its_tag = tag++;
      const auto received = text("r", its_tag);
      made.add([=](graph& g) { g.on(peer).send(name, {.to = rank, .tag = its_tag}); });
      made.add([=](graph& g) { g.on(rank).recv(received, {.from = peer, .tag = its_tag}); });
      inputs.emplace_back(received);
    }
    made.add([=](graph& g) { g.on(rank).compute(text("v", value), number, inputs, nothing); });
  }
  return made;
}

TEST(GraphSchedule, IsTheSameForAnyOrderOfDefinition) {
  std::mt19937 random(5);
  auto nodes = random_graph(random, 3, 30);
  const auto expected = nodes.in_order().schedule().to_dot();
  std::ostringstream first;
  nodes.in_order().schedule().print(first);
  for (int run = 0; run < 1000; ++run) {
    const auto schedule = nodes.in_disorder(random).schedule();
    std::ostringstream again;
    schedule.print(again);
    ASSERT_EQ(again.str(), first.str()) << "run " << run;
    ASSERT_EQ(schedule.to_dot(), expected);
  }
}

// Takes the steps of all ranks, each in its order, where a transfer ends when both ends have started; true if all end.
bool ends(const graph_schedule& schedule) {
  const auto ranks = schedule.ranks();
  std::map<int, std::vector<graph_step>> steps;
  std::map<int, std::size_t> next;
  std::set<std::tuple<int, int, int, bool>> started;  // from, to, tag, whether by the sender
  for (const auto rank : ranks) steps[rank] = schedule.of(rank);
  const auto take = [&](const graph_step& step) {
    const bool sends = step.kind == graph_step_kind::send || step.kind == graph_step_kind::wait_sent;
    const auto from = sends ? step.rank : step.peer;
    const auto to = sends ? step.peer : step.rank;
    if (step.waits()) return started.contains({from, to, step.tag, !sends});
    if (step.tag >= 0) started.insert({from, to, step.tag, sends});
    return true;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (const auto rank : ranks) {
      while (next[rank] < steps[rank].size() && take(steps[rank][next[rank]])) {
        ++next[rank];
        moves = true;
      }
    }
  }
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return next[rank] == steps[rank].size(); });
}

TEST(GraphSchedule, RanksNeverWaitForEachOtherInACircle) {
  std::mt19937 random(7);
  for (int run = 0; run < 200; ++run) {
    const auto made = random_graph(random, 2 + run % 3, 40).in_order();
    ASSERT_TRUE(ends(made.schedule())) << "run " << run;
  }
}

// By tags alone, rank 0 would wait for tag 1, which comes of what it sends after tag 9.
TEST(GraphSchedule, ALowerTagDoesNotGoFirstWhereThatWouldNeverEnd) {
  graph g;
  auto here = g.on(0);
  auto there = g.on(1);
  there.send(there.compute("a", number, nothing), {.to = 0, .tag = 9});
  here.send(here.compute("b", number, {here.recv("a", {.from = 1, .tag = 9})}, nothing), {.to = 1, .tag = 5});
  there.send(there.compute("c", number, {there.recv("b", {.from = 0, .tag = 5})}, nothing), {.to = 0, .tag = 1});
  here.compute("d", number, {here.recv("c", {.from = 1, .tag = 1})}, nothing);
  const auto schedule = g.schedule();
  EXPECT_TRUE(ends(schedule));
  EXPECT_THAT(lines_of(schedule, 0),
              ElementsAre("receive \"c\" from rank 1, tag 1", "receive \"a\" from rank 1, tag 9",
                          "wait until received: \"a\" from rank 1, tag 9", "compute \"b\" of \"a\"",
                          "send \"b\" to rank 1, tag 5", "wait until received: \"c\" from rank 1, tag 1",
                          "compute \"d\" of \"c\"", "wait until sent: \"b\" to rank 1, tag 5"));
}

// When each rank has done all, and how long it stood in waits, if each piece of work and each transfer takes 1.
struct imagined_rank {
  std::vector<graph_step> steps;
  std::size_t next = 0;
  int now = 0;
  int exposed = 0;
};

std::map<int, imagined_rank> imagine(const graph_schedule& schedule) {
  std::map<int, imagined_rank> ranks;
  std::map<std::tuple<int, int, int>, int> arrivals;
  for (const auto rank : schedule.ranks()) ranks[rank].steps = schedule.of(rank);
  const auto take = [&](imagined_rank& rank, const graph_step& step) {
    const bool sends = step.kind == graph_step_kind::send || step.kind == graph_step_kind::wait_sent;
    const std::tuple message(sends ? step.rank : step.peer, sends ? step.peer : step.rank, step.tag);
    if (step.kind == graph_step_kind::send) arrivals[message] = rank.now + 1;
    if (step.kind == graph_step_kind::compute) ++rank.now;
    if (!step.waits()) return true;
    if (!arrivals.contains(message)) return false;
    const auto until = std::max(rank.now, arrivals[message]);
    rank.exposed += until - std::exchange(rank.now, until);
    return true;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (auto& [number_, rank] : ranks) {
      for (; rank.next < rank.steps.size() && take(rank, rank.steps[rank.next]); ++rank.next) moves = true;
    }
  }
  return ranks;
}

// Rank 1 can do nothing before H.T, A and B are computed and B is sent; rank 0 nothing after its own 6 pieces of work
// until rank 1 has done its 4, and sent the last. What it sends itself costs it no time.
TEST(GraphSchedule, OnlyWhatTheDependencesForceIsExposedInTheKalmanFilter) {
  const auto ranks = imagine(test::kalman_graph(8, false).schedule());
  EXPECT_EQ(ranks.at(1).now, 3 + 1 + 4 + 1);
  EXPECT_EQ(ranks.at(1).exposed, (3 + 1) + 1);
  EXPECT_EQ(ranks.at(0).now, 3 + 1 + 4 + 1);
  EXPECT_EQ(ranks.at(0).exposed, 3 + 1 + 4 + 1 - 6);
}

TEST(GraphSchedule, WhatLeadsToTheNearestSendIsComputedFirst) {
  graph g;
  auto here = g.on(0);
  const auto far = here.compute("b", number, {here.compute("a", number, nothing)}, nothing);
  const auto near = here.compute("c", number, nothing);
  here.send(far, {.to = 1, .tag = 1});
  here.send(near, {.to = 1, .tag = 2});
  EXPECT_THAT(lines_of(g, 0),
              ElementsAre("compute \"c\"", "send \"c\" to rank 1, tag 2", "compute \"a\"", "compute \"b\" of \"a\"",
                          "send \"b\" to rank 1, tag 1", "wait until sent: \"b\" to rank 1, tag 1",
                          "wait until sent: \"c\" to rank 1, tag 2"));
}

TEST(GraphSchedule, AllThatCanBeComputedIsBeforeTheFirstWait) {
  graph g;
  auto here = g.on(0);
  here.compute("with", number, {here.recv("x", number, {.from = 1, .tag = 1})}, nothing);
  here.compute("without", number, nothing);
  EXPECT_THAT(lines_of(g, 0),
              ElementsAre("receive \"x\" from rank 1, tag 1", "compute \"without\"",
                          "wait until received: \"x\" from rank 1, tag 1", "compute \"with\" of \"x\""));
}

TEST(GraphSchedule, WhatIsWrittenInPlaceHasBeenReadAndSent) {
  graph g;
  auto here = g.on(0);
  const auto x = here.compute("x", number, nothing);
  here.compute_in_place("2 x", x, nothing);
  here.compute("z of x", number, {x}, nothing);
  here.send(x, {.to = 1, .tag = 3});
  EXPECT_THAT(lines_of(g, 0),
              ElementsAre("compute \"x\"", "send \"x\" to rank 1, tag 3", "compute \"z of x\" of \"x\"",
                          "wait until sent: \"x\" to rank 1, tag 3", "compute \"2 x\" in place of \"x\""));
}

TEST(GraphSchedule, StatesAreUpdatedAtTheEndAndReadBefore) {
  graph g;
  auto here = g.on(0);
  const auto newest = here.state("newest", number);
  const auto older = here.state("older", number);
  here.update(newest, here.compute("next", number, {newest}, nothing));
  here.update(older, newest);
  here.send(newest, {.to = 1, .tag = 1});
  EXPECT_THAT(lines_of(g, 0), ElementsAre("send \"newest\" to rank 1, tag 1", "compute \"next\" of \"newest\"",
                                          "wait until sent: \"newest\" to rank 1, tag 1",
                                          "update \"older\" from \"newest\"", "update \"newest\" from \"next\""));
}

// ---- how it looks

graph small_graph() {
  graph g;
  auto here = g.on(0);
  here.send(here.input("a \"b\"", number), {.to = 1, .tag = 1});
  here.recv("z", number, {.from = 2, .tag = 7});
  auto there = g.on(1);
  there.compute("y", number, {there.recv("x", {.from = 0, .tag = 1})}, nothing);
  return g;
}

TEST(GraphSchedule, IsPrintedByRankAndNumber) {
  std::ostringstream out;
  small_graph().schedule().print(out);
  EXPECT_EQ(out.str(),
            "rank 0\n"
            "   1 send \"a \"b\"\" to rank 1, tag 1\n"
            "   2 receive \"z\" from rank 2, tag 7\n"
            "   3 wait until sent: \"a \"b\"\" to rank 1, tag 1\n"
            "   4 wait until received: \"z\" from rank 2, tag 7\n"
            "rank 1\n"
            "   1 receive \"x\" from rank 0, tag 1\n"
            "   2 wait until received: \"x\" from rank 0, tag 1\n"
            "   3 compute \"y\" of \"x\"\n");
}

TEST(GraphSchedule, IsDrawnWithMessagesBetweenItsRanks) {
  EXPECT_EQ(small_graph().schedule().to_dot(),
            R"(digraph muster {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="rank 0";
    "0/a \"b\"" [label="a \"b\"\n1, 3"];
    "0/z" [label="z\n2, 4"];
  }
  subgraph cluster_1 {
    label="rank 1";
    "1/x" [label="x\n1, 2"];
    "1/y" [label="y\n3"];
  }
  "0/a \"b\"" -> "1/x" [style=dashed, label="tag 1"];
  "rank 2" -> "0/z" [style=dashed, label="tag 7"];
  "1/x" -> "1/y";
}
)");
}

}  // namespace
}  // namespace muster::graph_schedule_test
