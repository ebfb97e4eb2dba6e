// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/graph_local.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

#include <muster/collectives/graph_trace.hpp>
#include <muster/device/tensor_compare.hpp>

#include "foreign_locale.hpp"
#include "graph_kalman.hpp"
#include "graph_support.hpp"

namespace muster::graph_run_test {
namespace {

using test::expect_error;
using test::expect_refused;
using test::number;
using testing::HasSubstr;

constexpr auto soon = std::chrono::milliseconds(20);

tensor one(float value) { return tensor::full<float>({}, value); }

// z = (x + 1) · 2, the half of it on another rank.
graph round_trip() {
  graph g;
  auto here = g.on(0);
  const auto y = here.compute("x + 1", number, {here.input("x", number)},
                              [](const tensor& out, const tensor& x) { out.item<float>() = x.item<float>() + 1; });
  here.send(y, {.to = 1, .tag = 11});
  here.recv("z", {.from = 1, .tag = 12});
  auto there = g.on(1);
  const auto z = there.compute("2 y", number, {there.recv("y", {.from = 0, .tag = 11})},
                               [](const tensor& in) { return one(2 * in.item<float>()); });
  there.send(z, {.to = 0, .tag = 12});
  return g;
}

TEST(GraphRun, AllRanksRunInOneThread) {
  local_graph all(round_trip());
  for (const float x : {1.5F, -3.0F}) {
    all[0].set("x", one(x));
    all.run();
    EXPECT_EQ(all[0].value("z").item<float>(), (x + 1) * 2);
  }
  EXPECT_EQ(all[1].runs(), 2U);
}

TEST(GraphRun, RanksRunInThreadsOfTheirOwn) {
  const auto g = round_trip();
  local_graph_links links(2);
  std::thread other([&] {
    auto there = g.plan(1);
    for (int run = 0; run < 100; ++run) there.run(links[1]);
  });
  auto here = g.plan(0);
  const auto x = one(0);
  here.set("x", x);
  for (int run = 0; run < 100; ++run) {
    x.item<float>() = static_cast<float>(run);
    here.run(links[0]);
    ASSERT_EQ(here.value("z").item<float>(), static_cast<float>((run + 1) * 2));
  }
  other.join();
}

// ---- the filter

double distance(const tensor& found, const test::matrix<double>& expected) {
  double most = 0;
  double largest = 0;
  for (std::size_t at = 0; at < expected.elements.size(); ++at) {
    most = std::max(most, std::abs(found.data<float>()[at] - expected.elements[at]));
    largest = std::max(largest, std::abs(expected.elements[at]));
  }
  return most / largest;
}

void begin(graph_plan& plan, const test::kalman_inputs& in) {
  plan.set("mu", test::tensor_of(in.mu));
  plan.set("Sigma", test::tensor_of(in.sigma));
  plan.set("H", test::tensor_of(in.h));
  plan.set("R", test::tensor_of(in.r));
}

TEST(GraphRun, AKalmanFilterEqualsTheSerialOneInDouble) {
  test::kalman_inputs in(12);
  local_graph all(test::kalman_graph(12, true));
  begin(all[0], in);
  test::serial_kalman serial(in);
  for (int step = 0; step < 100; ++step) {
    in.measure();
    all[0].set("data", test::tensor_of(in.data));
    all.run();
    serial.step(in);
    ASSERT_LT(distance(all[0].value("mu"), serial.mu), 1e-5) << "step " << step;
    ASSERT_LT(distance(all[0].value("Sigma"), serial.sigma), 1e-5) << "step " << step;
    ASSERT_LT(distance(all[1].value("updated_Sigma"), serial.sigma), 1e-5) << "step " << step;
  }
}

TEST(GraphRun, AKalmanFilterGivesTheSameBitsWhetherItsRanksTakeTurnsOrNot) {
  const test::kalman_inputs in(8);
  const auto g = test::kalman_graph(8, true);
  const auto data = test::tensor_of(in.data);
  constexpr int steps = 50;

  local_graph turns(g);
  begin(turns[0], in);
  turns[0].set("data", data);
  for (int step = 0; step < steps; ++step) turns.run();

  local_graph_links links(2);
  std::thread other([&] {
    auto there = g.plan(1);
    for (int step = 0; step < steps; ++step) there.run(links[1]);
  });
  auto here = g.plan(0);
  begin(here, in);
  here.set("data", data);
  for (int step = 0; step < steps; ++step) here.run(links[0]);
  other.join();

  EXPECT_TRUE(equal(here.value("mu"), turns[0].value("mu")));
  EXPECT_TRUE(equal(here.value("Sigma"), turns[0].value("Sigma")));
}

// ---- states

TEST(GraphRun, AStateIsKeptFromRunToRun) {
  graph g;
  auto here = g.on(0);
  const auto count = here.state("count", one(5));
  const auto next = here.compute("next", number, {count}, [](const tensor& x) { return one(x.item<float>() + 1); });
  here.update(count, next);
  here.update(here.state("before", number), count);
  local_graph all(g);
  for (int run = 0; run < 3; ++run) all.run();
  EXPECT_EQ(all[0].value("count").item<float>(), 8);
  EXPECT_EQ(all[0].value("next").item<float>(), 8);
  EXPECT_EQ(all[0].value("before").item<float>(), 7);
  all[0].set("count", one(1));
  all.run();
  EXPECT_EQ(all[0].value("count").item<float>(), 2);
}

TEST(GraphRun, PlansHaveStatesOfTheirOwn) {
  graph g;
  const auto initial = one(1);
  const auto state = g.on(0).state("s", initial);
  g.on(0).update(state, g.on(0).compute("next", number, {state}, [](const tensor& out, const tensor& x) {
    out.item<float>() = 2 * x.item<float>();
  }));
  local_graph first(g);
  local_graph second(g);
  first.run();
  first.run();
  second.run();
  EXPECT_EQ(first[0].value("s").item<float>(), 4);
  EXPECT_EQ(second[0].value("s").item<float>(), 2);
  EXPECT_EQ(initial.item<float>(), 1);
}

TEST(GraphRun, OneValueUpdatesSeveralStates) {
  graph g;
  auto here = g.on(0);
  const auto next = here.compute("next", number, {"a"}, [](const tensor& x) { return one(x.item<float>() + 1); });
  here.update(here.state("a", number), next);
  here.update(here.state("b", number), next);
  local_graph all(g);
  all.run();
  all.run();
  EXPECT_EQ(all[0].value("a").item<float>(), 2);
  EXPECT_EQ(all[0].value("b").item<float>(), 2);
}

TEST(GraphRun, AValueIsComputedInPlace) {
  graph g;
  auto here = g.on(0);
  const auto x = here.compute("x", number, [](const tensor& out) { out.item<float>() = 3; });
  here.compute_in_place("x²", x, [](const tensor& out) { out.item<float>() *= out.item<float>(); });
  here.compute("x + 1", number, {x}, [](const tensor& in) { return one(in.item<float>() + 1); });
  local_graph all(g);
  all.run();
  EXPECT_EQ(all[0].value("x²").item<float>(), 9);
  EXPECT_EQ(all[0].value("x + 1").item<float>(), 4);
  EXPECT_EQ(all[0].value("x").data(), all[0].value("x²").data());
}

TEST(GraphRun, AComputeTakesAsManyInputsAsThereAre) {
  graph g;
  std::vector<graph_value> inputs;
  for (int rank = 1; rank < 5; ++rank) {
    g.on(rank).send(g.on(rank).input("x", one(static_cast<float>(rank))), {.to = 0, .tag = rank});
    inputs.push_back(g.on(0).recv(text("x", rank), {.from = rank, .tag = rank}));
  }
  g.on(0).compute("sum", number, inputs, [](const tensor& out, std::span<const tensor> in) {
    out.item<float>() = 0;
    for (const auto& each : in) out.item<float>() += each.item<float>();
  });
  local_graph all(g);
  all.run();
  EXPECT_EQ(all[0].value("sum").item<float>(), 10);
}

// ---- what goes wrong

TEST(GraphRun, AFunctionThatThrowsIsNamedAndItsExceptionIsInside) {
  graph g;
  g.on(2).compute("B", number, [](const tensor&) { throw std::out_of_range("no pivot"); });
  local_graph all(g);
  try {
    all.run();
    FAIL();
  } catch (const error& found) {
    EXPECT_THAT(found.what(), HasSubstr("rank 2: computing \"B\" failed: no pivot"));
    EXPECT_THROW(std::rethrow_if_nested(found), std::out_of_range);
  }
  expect_error(errc::cancelled, [&] { all.run(); }, "rank 2", "no pivot", "make a new plan");
}

TEST(GraphRun, WhoWaitsForARankThatFailedIsTold) {
  graph g;
  g.on(0).recv("x", {.from = 1, .tag = 1});
  g.on(1).send(g.on(1).compute("x", number, [](const tensor&) { throw error(errc::overflow, "too much"); }),
               {.to = 0, .tag = 1});
  local_graph_links links(2);
  std::thread other([&] {
    auto there = g.plan(1);
    expect_error(errc::overflow, [&] { there.run(links[1]); }, "rank 1", "\"x\"", "too much");
  });
  auto here = g.plan(0);
  expect_error(errc::cancelled, [&] { here.run(links[0]); }, "rank 1 gave up", "\"x\"", "too much");
  other.join();
}

TEST(GraphRun, AMessageThatDoesNotComeIsNamedAtTheDeadline) {
  graph g;
  g.on(0).recv("x", number, {.from = 1, .tag = 9});
  local_graph_links links(2);
  auto here = g.plan(0);
  expect_error(
      errc::timed_out, [&] { here.run(links[0], deadline::after(soon)); }, "rank 0", "\"x\" from rank 1, tag 9");
}

TEST(GraphRun, EndsThatWereMadeApartAndDifferAreToldBoth) {
  graph sender;
  sender.on(0).send(sender.on(0).input("x", one(1)), {.to = 1, .tag = 3});
  graph receiver;
  receiver.on(1).recv("y", {dtype::f64, {2}}, {.from = 0, .tag = 3});
  local_graph_links links(2);
  auto here = sender.plan(0);
  auto there = receiver.plan(1);
  EXPECT_FALSE(here.advance(links[0]));
  const auto parts = {"rank 0 sends f32 () to rank 1, tag 3", "receives it as f64 (2,)"};
  expect_refused([&] { there.run(links[1]); }, *parts.begin(), *std::prev(parts.end()));
  expect_refused([&] { here.run(links[0]); }, *parts.begin(), *std::prev(parts.end()));
}

TEST(GraphRun, AnInputThatWasNotGivenIsNamedAndNothingHasHappened) {
  local_graph all(round_trip());
  expect_refused([&] { all.run(); }, "rank 0", "\"x\" has not been given");
  all[0].set("x", one(1));
  all.run();
  EXPECT_EQ(all[0].value("z").item<float>(), 4);
}

TEST(GraphRun, OnlyWhatFitsIsSet) {
  local_graph all(round_trip());
  expect_refused([&] { all[0].set("x", tensor::zeros<double>({})); }, "\"x\"", "f64 ()", "f32 ()");
  expect_refused([&] { all[0].set("z", one(1)); }, "\"z\"", "computed or received");
  expect_refused([&] { all[0].set("y", one(1)); }, "no value \"y\"");
  expect_refused([&] { static_cast<void>(all[0].value("y")); }, "no value \"y\"");
  graph strided;
  strided.on(0).input("x", {dtype::f32, {2}});
  auto plan = strided.plan(0);
  expect_refused([&] { plan.set("x", tensor::zeros<float>({2, 2}).slice(0, 1, 1).reshape({2})); }, "contiguous");
}

TEST(GraphRun, AnInputMayBeWhatTheLastRunHasComputed) {
  constexpr std::size_t count = 5;
  const graph_form row{dtype::f32, {count}};
  graph g;
  const auto x = g.on(0).input("x", row);
  g.on(0).compute("y", row, {x}, [](const tensor& out, const tensor& in) {
    for (std::size_t index = 0; index < count; ++index) out.at<float>(index) = in.at<float>(count - 1 - index);
  });
  auto plan = g.plan(0);
  local_graph_links links(1);
  const auto first = tensor::arange<float>(0, count);
  plan.set("x", first);
  for (int run = 0; run < 3; ++run) {
    plan.run(links[0]);
    plan.set("x", plan.value("y"));
  }
  EXPECT_EQ(plan.value("y").to_vector<float>(), (std::vector<float>{4, 3, 2, 1, 0}));
  EXPECT_EQ(first.at<float>(1), 1);
}

TEST(GraphRun, WhatAFunctionReturnsIsChecked) {
  graph g;
  const auto x = g.on(0).input("x", one(1));
  g.on(0).compute("form", number, {x}, [](const tensor&) { return tensor::zeros<float>({3}); });
  expect_refused([&] { local_graph(g).run(); }, "\"form\"", "returned f32 (3,)", "f32 ()");
  graph shares;
  shares.on(1).compute("same", number, {shares.on(1).input("x", one(1))}, [](const tensor& in) { return in; });
  expect_refused([&] { local_graph(shares).run(); }, "rank 1", "\"same\"", "elements of an input");
  graph in_place;
  in_place.on(1).compute_in_place("y", in_place.on(1).compute("x", number, test::nothing), [] { return one(1); });
  expect_refused([&] { local_graph(in_place).run(); }, "rank 1", "\"y\"", "in place");
}

TEST(GraphRun, AFunctionThatKeepsWhatHasBecomeAStateIsRefused) {
  graph g;
  auto here = g.on(0);
  const auto state = here.state("s", number);
  const auto next = here.compute("c", number, [kept = one(0)] {
    kept.item<float>() += 1;
    return kept;
  });
  here.update(state, next);
  here.compute("d", number, {state}, [](const tensor& x) { return one(x.item<float>()); });
  local_graph all(g);
  all.run();
  EXPECT_EQ(all[0].value("s").item<float>(), 1);
  expect_refused([&] { all.run(); }, "\"c\"", "a state's since it returned it before");
  graph twice;
  const auto kept = one(1);
  twice.on(0).compute("x", number, [kept] { return kept; });
  twice.on(0).compute("y", number, [kept] { return kept; });
  expect_refused([&] { local_graph(twice).run(); }, "\"y\"", "elements of another value");
}

TEST(GraphRun, OneProcessNeedsAllRanks) {
  graph g;
  g.on(0).recv("x", number, {.from = 1, .tag = 9});
  expect_refused([&] { const local_graph all(g); }, "rank 0", "tag 9", "rank 1 has no nodes");
  local_graph none((graph()));
  none.run();
  expect_refused([&] { static_cast<void>(none[0]); }, "rank 0");
  expect_refused([&] { const local_graph_links links(0); }, "0 ranks");
  local_graph_links two(2);
  expect_refused([&] { static_cast<void>(two[2]); }, "rank 2", "0 to 1");
}

// ---- messages of one process

TEST(GraphLink, TagsAreWaitedForInAnyOrder) {
  constexpr int count = 64;
  constexpr int rounds = 200;
  local_graph_links links(2);
  std::mt19937 random(3);
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::vector<tensor> rooms;
  for (int tag = 0; tag < count; ++tag) rooms.push_back(tensor::zeros<int>({}, memory::local));
  for (int round = 0; round < rounds; ++round) {
    std::vector<graph_link::ticket> sends(count);
    std::vector<graph_link::ticket> receives(count);
    std::shuffle(order.begin(), order.end(), random);
    for (const auto tag : order) {
      sends[static_cast<std::size_t>(tag)] = links[0].isend(tensor::full<int>({}, round + tag, memory::local), 1, tag);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const auto tag : order) {
      receives[static_cast<std::size_t>(tag)] = links[1].irecv(rooms[static_cast<std::size_t>(tag)], 0, tag);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const auto tag : order) {
      ASSERT_TRUE(links[1].wait(receives[static_cast<std::size_t>(tag)], deadline::never()));
      ASSERT_TRUE(links[0].test(sends[static_cast<std::size_t>(tag)]));
      ASSERT_EQ(rooms[static_cast<std::size_t>(tag)].item<int>(), round + tag);
    }
  }
}

TEST(GraphLink, MessagesOfOneTagComeInOrder) {
  local_graph_links links(2);
  std::vector<graph_link::ticket> sends;
  for (int value = 0; value < 3; ++value) sends.push_back(links[0].isend(tensor::full<int>({}, value), 1, 7));
  EXPECT_FALSE(links[0].wait(sends[0], deadline::after(soon)));
  const auto room = tensor::zeros<int>({});
  for (int value = 0; value < 3; ++value) {
    EXPECT_TRUE(links[1].wait(links[1].irecv(room, 0, 7), deadline::never()));
    EXPECT_EQ(room.item<int>(), value);
    EXPECT_TRUE(links[0].test(sends[static_cast<std::size_t>(value)]));
  }
}

// ---- time. The link and the functions share a clock that only they move, so that nothing depends on the machine.

using time = std::chrono::milliseconds;
constexpr time step_time(50);

// Carries one message after the other; each takes 50 ms.
class slow_link final : public graph_link {
public:
  explicit slow_link(time& now) : now_(now) {}

  ticket isend(const tensor& /*what*/, int /*to*/, int /*tag*/) override { return start(); }
  ticket irecv(const tensor& /*room*/, int /*from*/, int /*tag*/) override { return start(); }
  bool test(ticket which) override { return ends_[which - 1] <= now_; }
  bool wait(ticket which, deadline /*until*/) override {
    now_ = std::max(now_, ends_[which - 1]);
    return true;
  }
  void abort(std::string_view /*why*/) noexcept override {}

private:
  ticket start() {
    free_ = std::max(free_, now_) + step_time;
    ends_.push_back(free_);
    return ends_.size();
  }

  time& now_;
  time free_{0};
  std::vector<time> ends_;
};

TEST(GraphTime, TransfersAndComputationOverlap) {
  time now(0);
  const auto works = [&now](const tensor& /*out*/) { now += step_time; };
  graph g;
  for (int node = 0; node < 4; ++node) {
    g.on(0).send(g.on(0).compute(text("x", node), number, works), {.to = 1, .tag = node});
  }
  slow_link link(now);
  auto plan = g.plan(0);
  plan.run(link);
  EXPECT_EQ(now, 5 * step_time);  // one after the other takes 8
}

TEST(GraphTime, TransfersOfWhatIsThereAreHiddenByComputation) {
  time now(0);
  graph g;
  for (int node = 0; node < 4; ++node) {
    g.on(0).send(g.on(0).input(text("x", node), one(0)), {.to = 1, .tag = node});
    g.on(0).compute(text("y", node), number, [&now](const tensor& /*out*/) { now += step_time; });
  }
  slow_link link(now);
  auto plan = g.plan(0);
  plan.run(link);
  EXPECT_EQ(now, 4 * step_time);
}

// Transfers take their time from when they are waited for.
class late_link final : public graph_link {
public:
  ticket isend(const tensor& /*what*/, int /*to*/, int /*tag*/) override { return 1; }
  ticket irecv(const tensor& /*room*/, int /*from*/, int /*tag*/) override { return 1; }
  bool test(ticket /*which*/) override { return false; }
  bool wait(ticket /*which*/, deadline /*until*/) override {
    std::this_thread::sleep_for(soon);
    return true;
  }
  void abort(std::string_view /*why*/) noexcept override {}
};

TEST(GraphTime, TheTimeInWaitsIsCounted) {
  graph g;
  g.on(0).recv("x", {.from = 1, .tag = 1});
  g.on(1).send(g.on(1).input("x", one(0)), {.to = 0, .tag = 1});
  late_link link;
  auto plan = g.plan(0);
  for (int run = 0; run < 2; ++run) plan.run(link);
  EXPECT_GE(plan.exposed(), soon);
  EXPECT_GE(plan.total_exposed(), 2 * soon);
  EXPECT_LT(plan.exposed(), plan.total_exposed());
  std::ostringstream out;
  print_times(out, plan);
  EXPECT_THAT(out.str(), HasSubstr("rank 0, 2 runs, us each\n"));
  EXPECT_THAT(out.str(), HasSubstr(" wait until received: \"x\" from rank 1, tag 1\n"));
  EXPECT_THAT(out.str(), HasSubstr(" exposed communication, of "));
}

TEST(GraphTime, ATraceHasARowForEachRankAndAnArrowForEachMessage) {
  local_graph all(round_trip());
  all[0].set("x", one(1));
  all.run();
  const auto events = nlohmann::json::parse(trace_of(all.plans()));
  std::map<std::string, int> kinds;
  std::map<std::string, std::string> arrows;
  std::vector<std::string> names;
  for (const auto& each : events) {
    ++kinds[each["ph"]];
    if (each["ph"] == "X") names.push_back(text(each["tid"], ' ', each["name"].get<std::string>()));
    if (each["ph"] == "s" || each["ph"] == "f") arrows[each["id"]] += each["ph"].get<std::string>();
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"M", 2}, {"X", 10}, {"s", 2}, {"f", 2}}));
  EXPECT_THAT(names, testing::IsSupersetOf({"1 compute \"x + 1\" of \"x\"", "2 compute \"2 y\" of \"y\"",
                                            "1 wait until received: \"z\" from rank 1, tag 12"}));
  EXPECT_EQ(arrows, (std::map<std::string, std::string>{{"0/1/11", "sf"}, {"1/0/12", "fs"}}));
}

TEST(GraphTime, ATraceIsJsonInEveryLocale) {
  local_graph all(round_trip());
  all[0].set("x", one(1));
  all.run();
  const auto right = trace_of(all.plans());
  const test::foreign_locale scope;
  EXPECT_EQ(trace_of(all.plans()), right);
}

}  // namespace
}  // namespace muster::graph_run_test
