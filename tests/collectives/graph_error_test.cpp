// SPDX-License-Identifier: BSL-1.0
// What cannot be, and what is said then.
#include <muster/collectives/graph.hpp>

#include "graph_support.hpp"

namespace muster::graph_error_test {
namespace {

using test::expect_refused;
using test::nothing;
using test::number;

const graph_form pair{dtype::f64, {2}};

template <class... Parts>
void expect_no_schedule(const graph& what, const Parts&... parts) {
  expect_refused([&] { static_cast<void>(what.schedule()); }, parts...);
}

TEST(GraphErrors, ANameIsOneNodes) {
  graph g;
  auto here = g.on(3);
  here.input("x", number);
  expect_refused([&] { here.compute("x", number, nothing); }, "rank 3", "two nodes \"x\"");
  expect_refused([&] { here.input("", number); }, "rank 3", "without a name");
}

TEST(GraphErrors, AValueIsUsedOnItsRank) {
  graph g;
  const auto x = g.on(0).input("x", number);
  expect_refused([&] { g.on(1).compute("y", number, {x}, nothing); }, "rank 1", "\"x\" of rank 0", "send it");
  expect_refused([&] { g.on(1).send(x, {.to = 0, .tag = 1}); }, "rank 1", "\"x\" of rank 0");
}

TEST(GraphErrors, AnUnknownNodeIsNamedWithWhoTakesIt) {
  graph g;
  auto here = g.on(1);
  here.compute("y", number, {"x"}, nothing);
  expect_no_schedule(g, "rank 1", "no node \"x\"", "\"y\" takes");
  graph sends;
  sends.on(1).send("x", {.to = 0, .tag = 4});
  expect_no_schedule(sends, "rank 1", "no node \"x\"", "a send to rank 0, tag 4, takes");
  graph updates;
  updates.on(1).state("s", number);
  updates.on(1).update("s", "x");
  expect_no_schedule(updates, "rank 1", "no node \"x\"", "the update of \"s\" takes");
}

TEST(GraphErrors, ACircleOnOneRankIsPrinted) {
  graph g;
  auto here = g.on(0);
  here.compute("a", number, {"c"}, nothing);
  here.compute("b", number, {"a"}, nothing);
  here.compute("c", number, {"b"}, nothing);
  here.compute("d", number, {"c"}, nothing);
  expect_no_schedule(
      g, "in a circle",
      "rank 0: compute \"a\" of \"c\"; rank 0: compute \"c\" of \"b\"; rank 0: compute \"b\" of \"a\"; ");
}

TEST(GraphErrors, ACircleAcrossRanksIsPrinted) {
  graph g;
  auto here = g.on(0);
  auto there = g.on(1);
  here.send(here.compute("a", number, {here.recv("b", number, {.from = 1, .tag = 2})}, nothing), {.to = 1, .tag = 1});
  there.send(there.compute("b", number, {there.recv("a", {.from = 0, .tag = 1})}, nothing), {.to = 0, .tag = 2});
  expect_no_schedule(g, "in a circle", "rank 0: compute \"a\" of \"b\"; ",
                     "rank 0: wait until received: \"b\" from rank 1, tag 2; rank 1: send \"b\" to rank 0, tag 2; ",
                     "rank 1: compute \"b\" of \"a\"; rank 1: wait until received: \"a\" from rank 0, tag 1; ",
                     "rank 0: send \"a\" to rank 1, tag 1; ");
}

TEST(GraphErrors, UpdatesInACircleArePrinted) {
  graph g;
  auto here = g.on(0);
  here.state("a", number);
  here.state("b", number);
  here.update("a", "b");
  here.update("b", "a");
  expect_no_schedule(g, "in a circle", "update \"a\" from \"b\"", "update \"b\" from \"a\"");
}

// ---- messages

TEST(GraphErrors, ATagIsOneMessagesBetweenTwoRanks) {
  graph g;
  auto here = g.on(0);
  here.send(here.input("x", number), {.to = 1, .tag = 4});
  here.send("x", {.to = 2, .tag = 4});
  expect_refused([&] { here.send(here.input("y", number), {.to = 1, .tag = 4}); }, "rank 0", "\"x\" and \"y\"",
                 "rank 1 with tag 4");
  here.recv("p", number, {.from = 1, .tag = 4});
  here.recv("q", number, {.from = 2, .tag = 4});
  expect_refused([&] { here.recv("r", number, {.from = 1, .tag = 4}); }, "rank 0", "\"p\" and \"r\"",
                 "rank 1 with tag 4");
}

TEST(GraphErrors, AMessageHasAnotherRankAndNoNegativeNumbers) {
  graph g;
  auto here = g.on(0);
  const auto x = here.input("x", number);
  expect_refused([&] { here.send(x, {.to = 0, .tag = 1}); }, "\"x\"", "sent to rank 0, tag 1");
  expect_refused([&] { here.send(x, {.to = 1, .tag = -1}); }, "\"x\"", "sent to rank 1, tag -1");
  expect_refused([&] { here.recv("y", {.from = -2, .tag = 1}); }, "\"y\"", "received from rank -2, tag 1");
  expect_refused([&] { static_cast<void>(g.on(-1)); }, "rank -1");
}

TEST(GraphErrors, AReceiveWithoutASendIsNamed) {
  graph g;
  g.on(0).input("x", number);
  g.on(1).recv("y", number, {.from = 0, .tag = 6});
  expect_no_schedule(g, "rank 1", "\"y\" is received from rank 0, tag 6", "rank 0 sends nothing to rank 1");
}

TEST(GraphErrors, ASendWithoutAReceiveIsNamed) {
  graph g;
  g.on(0).send(g.on(0).input("x", number), {.to = 1, .tag = 6});
  g.on(1).recv("y", number, {.from = 2, .tag = 6});
  expect_no_schedule(g, "rank 0", "\"x\" is sent to rank 1, tag 6", "rank 1 receives nothing from rank 0");
}

TEST(GraphErrors, BothEndsHaveTheSameForm) {
  graph g;
  g.on(0).send(g.on(0).input("x", number), {.to = 1, .tag = 6});
  g.on(1).recv("y", pair, {.from = 0, .tag = 6});
  expect_no_schedule(g, "rank 1", "\"y\" is received from rank 0, tag 6, as f64 (2,)", "rank 0 sends f32 ()");
}

TEST(GraphErrors, AFormThatNobodyKnowsIsAskedFor) {
  graph g;
  g.on(1).recv("y", {.from = 0, .tag = 6});
  expect_no_schedule(g, "rank 1", "which dtype and shape \"y\" has");
}

TEST(GraphErrors, AFormComesThroughRanksThatSendOn) {
  graph g;
  g.on(0).send(g.on(0).input("x", pair), {.to = 1, .tag = 1});
  g.on(1).send(g.on(1).recv("x", {.from = 0, .tag = 1}), {.to = 2, .tag = 1});
  g.on(2).recv("x", {.from = 1, .tag = 1});
  EXPECT_EQ(g.schedule().of(2).front().form, pair);
}

// ---- memory

TEST(GraphErrors, InputsAndStatesAreNotWrittenInPlace) {
  graph g;
  g.on(0).compute_in_place("y", g.on(0).input("x", number), nothing);
  expect_no_schedule(g, "rank 0", "\"y\"", "in place of \"x\"", "an input or a state");
}

TEST(GraphErrors, OneNodeWritesInPlaceOfAValue) {
  graph g;
  const auto x = g.on(0).compute("x", number, nothing);
  g.on(0).compute_in_place("y", x, nothing);
  g.on(0).compute_in_place("z", x, nothing);
  expect_no_schedule(g, "rank 0", "\"y\" and \"z\"", "in place of \"x\"");
}

TEST(GraphErrors, WhatWritesInPlaceDoesNotTakeItToo) {
  graph g;
  const auto x = g.on(0).compute("x", number, nothing);
  g.on(0).compute_in_place("y", x, {x}, nothing);
  expect_no_schedule(g, "rank 0", "\"y\"", "in place of \"x\" and takes it as well");
}

TEST(GraphErrors, AReaderThatNeedsWhatReplacesItsInputIsACircle) {
  graph g;
  const auto x = g.on(0).compute("x", number, nothing);
  const auto y = g.on(0).compute_in_place("y", x, nothing);
  g.on(0).compute("z", number, {x, y}, nothing);
  expect_no_schedule(g, "in a circle", "compute \"y\" in place of \"x\"", "compute \"z\" of \"x\", \"y\"");
}

TEST(GraphErrors, AStateIsNotUpdatedFromWhatIsWrittenInPlace) {
  graph g;
  const auto x = g.on(0).compute("x", number, nothing);
  g.on(0).compute_in_place("y", x, nothing);
  g.on(0).update(g.on(0).state("s", number), x);
  expect_no_schedule(g, "rank 0", "\"y\"", "in place of \"x\"", "\"s\"");
}

TEST(GraphErrors, OnlyStatesAreUpdatedOnceFromTheirForm) {
  graph g;
  auto here = g.on(0);
  const auto x = here.input("x", number);
  here.update(x, here.compute("y", number, nothing));
  expect_no_schedule(g, "rank 0", "\"x\" is to be updated but is no state");
  graph other;
  const auto state = other.on(0).state("s", number);
  other.on(0).update(state, other.on(0).compute("y", pair, nothing));
  expect_refused([&] { other.on(0).update(state, "z"); }, "rank 0", "\"s\" is updated twice");
  expect_no_schedule(other, "rank 0", "\"s\" is f32 ()", "\"y\", which is f64 (2,)");
}

}  // namespace
}  // namespace muster::graph_error_test
