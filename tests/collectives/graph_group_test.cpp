// SPDX-License-Identifier: BSL-1.0
// Graphs whose ranks are those of a group: threads, and processes that may die.
#include <muster/collectives/group_link.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <stdexcept>
#include <utility>

#include <muster/collectives/graph_local.hpp>
#include <muster/device/tensor_compare.hpp>

#include "graph_kalman.hpp"
#include "graph_support.hpp"
#include "group_support.hpp"

namespace muster::graph_group_test {
namespace {

using namespace std::chrono_literals;
using test::expect_error;
using test::expect_refused;
using test::number;
using test::rank_kind;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t longer = 1000;  // elements than what is sent at once
const graph_form row{dtype::f32, {longer}};

graph_plan plan_of(const group& mine, const graph& what) { return what.plan(static_cast<int>(mine.rank())); }

void begin(graph_plan& plan, const test::kalman_inputs& in) {
  for (const auto& [name, what] : std::map<const char*, const test::matrix<double>*>{
           {"mu", &in.mu}, {"Sigma", &in.sigma}, {"H", &in.h}, {"R", &in.r}, {"data", &in.data}}) {
    plan.set(name, test::tensor_of(*what));
  }
}

class GraphGroup : public testing::TestWithParam<rank_kind> {
protected:
  static void run(std::size_t ranks, const test::rank_body& body) { test::run_group(GetParam(), ranks, body); }
};

TEST_P(GraphGroup, GivesTheSameBitsAsOneProcess) {
  constexpr std::size_t n = 24;  // matrices are long messages
  constexpr int steps = 100;
  run(2, [](group& group) {
    const auto g = test::kalman_graph(n, true);
    const test::kalman_inputs in(n);
    group_link link(group);
    auto mine = plan_of(group, g);
    if (group.rank() == 0) begin(mine, in);
    for (int step = 0; step < steps; ++step) mine.run(link);
    if (group.rank() != 0) return;

    local_graph all(g);
    begin(all[0], in);
    for (int step = 0; step < steps; ++step) all.run();
    EXPECT_TRUE(equal(mine.value("mu"), all[0].value("mu")));
    EXPECT_TRUE(equal(mine.value("Sigma"), all[0].value("Sigma")));
  });
}

// Each adds its own number to what came from the rank before it.
TEST_P(GraphGroup, GoesThroughAsManyRanksAsThereAre) {
  constexpr int ranks = 4;
  run(ranks, [](group& group) {
    const auto adds = [](const tensor& out, const tensor& own, const tensor& in) {
      out.item<float>() = own.item<float>() + in.item<float>();
    };
    graph g;
    for (int rank = 0; rank < ranks; ++rank) {
      auto here = g.on(rank);
      const auto own = here.input("own", tensor::full<float>({}, static_cast<float>(rank + 1)));
      const auto sum =
          rank == 0 ? own : here.compute("sum", number, {own, here.recv("sum so far", {.from = rank - 1})}, adds);
      if (rank + 1 < ranks) here.send(sum, {.to = rank + 1});
    }
    group_link link(group);
    auto mine = plan_of(group, g);
    for (int each = 0; each < 500; ++each) mine.run(link);
    if (group.rank() + 1 == ranks) {
      EXPECT_EQ(mine.value("sum").item<float>(), 10);
    }
  });
}

TEST_P(GraphGroup, CarriesLongMessagesBothWaysAtOnce) {
  constexpr std::size_t bytes = std::size_t{16} << 20U;
  run(2, [](group& group) {
    graph g;
    const graph_form form{dtype::u8, {bytes}};
    for (const int rank : {0, 1}) {
      auto here = g.on(rank);
      here.send(here.input("mine", form), {.to = 1 - rank});
      here.recv("theirs", {.from = 1 - rank});
    }
    const auto numbers_of = [](std::size_t rank, std::size_t round) {
      const auto made = tensor::empty<std::uint8_t>({bytes});
      std::uint32_t next = static_cast<std::uint32_t>(10 * round + rank);
      for (auto& each : made.span<std::uint8_t>()) {
        next = next * 1664525U + 1013904223U;
        each = static_cast<std::uint8_t>(next >> 24U);
      }
      return made;
    };
    group_link link(group);
    auto plan = plan_of(group, g);
    for (std::size_t round = 0; round < 2; ++round) {
      plan.set("mine", numbers_of(group.rank(), round));
      plan.run(link);
      EXPECT_TRUE(equal(plan.value("theirs"), numbers_of(1 - group.rank(), round)));
    }
  });
}

// ---- what goes wrong

TEST_P(GraphGroup, WhoGoesOnBetweenLooksIsToldOfAnAbort) {
  run(2, [](group& group) {
    graph g;
    g.on(0).recv("x", {.from = 1});
    g.on(1).send(g.on(1).compute("x", number, {g.on(1).input("own", tensor::zeros<float>({}))},
                                 [](const tensor&, const tensor&) { throw std::out_of_range("no pivot"); }),
                 {.to = 0});
    group_link link(group);
    auto plan = plan_of(group, g);
    const auto text = test::text_thrown_by<std::exception>([&] {
      while (!plan.advance(link)) continue;
    });
    EXPECT_THAT(text, HasSubstr("no pivot"));
  });
}

TEST_P(GraphGroup, AllAreToldWhenAFunctionThrows) {
  run(3, [](group& group) {
    graph g;
    const auto y = g.on(1).compute("y", row, {g.on(1).recv("x", {.from = 0})},
                                   [](const tensor&, const tensor&) { throw std::out_of_range("no pivot"); });
    g.on(1).send(y, {.to = 2});
    g.on(0).send(g.on(0).input("x", tensor::zeros<float>({longer})), {.to = 1});
    g.on(0).recv("z", {.from = 2});
    g.on(2).send(g.on(2).recv("y", {.from = 1}), {.to = 0});
    group_link link(group);
    auto mine = plan_of(group, g);
    if (group.rank() == 1) {
      expect_error(errc::remote_exception, [&] { mine.run(link); }, "rank 1: computing \"y\" failed: no pivot");
    } else {
      expect_error(errc::cancelled, [&] { mine.run(link); }, "rank 1: computing \"y\" failed: no pivot");
    }
    expect_error(errc::cancelled, [&] { mine.run(link); }, "no pivot", "make a new plan");
    EXPECT_FALSE(group.is_whole());
  });
}

// Each defines its own end only, so nobody could check that they fit.
TEST_P(GraphGroup, BothAreToldWhenTheirEndsOfAMessageDiffer) {
  for (int each = 0; each < 20; ++each) {
    run(2, [](group& group) {
      graph g;
      if (group.rank() == 0) {
        g.on(0).send(g.on(0).input("x", tensor::zeros<float>({longer})), {.to = 1, .tag = 3});
      } else {
        g.on(1).recv("y", {dtype::f64, {2}}, {.from = 0, .tag = 3});
      }
      group_link link(group);
      auto mine = plan_of(group, g);
      expect_refused([&] { mine.run(link); }, "tag 3", "f32 (1000,)", "f64 (2,)");
    });
  }
}

// A short message has been sent before anybody could refuse it.
TEST_P(GraphGroup, TheSenderOfAShortMessageThatWasRefusedIsToldLater) {
  run(2, [](group& group) {
    graph g;
    if (group.rank() == 0) {
      g.on(0).send(g.on(0).input("x", tensor::zeros<float>({})), {.to = 1, .tag = 3});
      g.on(0).recv("z", number, {.from = 1, .tag = 4});
    } else {
      g.on(1).send(g.on(1).recv("y", {dtype::f64, {2}}, {.from = 0, .tag = 3}), {.to = 0, .tag = 4});
    }
    group_link link(group);
    auto mine = plan_of(group, g);
    EXPECT_THAT(test::text_thrown_by<error>([&] { mine.run(link); }),
                AllOf(HasSubstr("f32 ()"), HasSubstr("f64 (2,)")));
  });
}

TEST_P(GraphGroup, AMessageThatDoesNotComeIsNamedAtTheDeadline) {
  run(2, [](group& group) {
    graph g;
    g.on(static_cast<int>(group.rank())).recv("x", number, {.from = static_cast<int>(1 - group.rank()), .tag = 9});
    group_link link(group);
    auto mine = plan_of(group, g);
    if (group.rank() == 0) {
      expect_error(
          errc::timed_out, [&] { mine.run(link, deadline::after(5ms)); }, "rank 0", "\"x\" from rank 1, tag 9");
    } else {
      expect_error(errc::cancelled, [&] { mine.run(link); }, "rank 0", "\"x\" from rank 1, tag 9");
    }
  });
}

TEST_P(GraphGroup, ARankThatHasLeftIsWaitedForInVain) {
  run(2, [](group& group) {
    graph g;
    g.on(0).recv("x", number, {.from = 1});
    if (group.rank() == 1) return;
    group_link link(group);
    auto mine = plan_of(group, g);
    EXPECT_TRUE(test::eventually([&] { return group.members()[1].pid != 0; }));
    expect_error(errc::peer_lost, [&] { mine.run(link); }, "rank 1");
  });
}

INSTANTIATE_TEST_SUITE_P(Of, GraphGroup, testing::ValuesIn(test::rank_kinds()),
                         [](const auto& given) { return test::name_of(given.param); });

// ---- who is killed

TEST(GraphGroupKilled, WhileItComputesTheOthersAreTold) {
  const test::shared<std::atomic<bool>> computes;
  test::rank_processes ranks(3, [&](group& group) {
    graph g;
    const auto x = g.on(1).compute("x", row, [&](const tensor&) {
      *computes = true;
      for (;;) ::pause();
    });
    g.on(1).send(x, {.to = 0});
    g.on(2).send(g.on(2).input("y", tensor::zeros<float>({longer})), {.to = 1});
    g.on(0).recv("x", {.from = 1});
    g.on(1).recv("y", {.from = 2});
    group_link link(group);
    auto mine = plan_of(group, g);
    expect_error(errc::peer_lost, [&] { mine.run(link); }, "rank 1");
    expect_error(errc::cancelled, [&] { mine.run(link); }, "make a new plan");
  });
  ASSERT_TRUE(test::eventually([&] { return computes->load(); }));
  ranks.kill(1);
  EXPECT_EQ(ranks.end(1).signal(), SIGKILL);
  ranks.expect_all_end_well();
}

TEST(GraphGroupKilled, WhoGoesOnBetweenLooksIsTold) {
  const test::shared<std::atomic<bool>> looks;
  const test::shared<std::atomic<bool>> has_joined;  // else nobody knows whose death it is
  test::rank_processes ranks(2, [&](group& group) {
    if (group.rank() == 1) {
      *has_joined = true;
      for (;;) ::pause();
    }
    graph g;
    g.on(0).recv("x", number, {.from = 1});
    group_link link(group);
    auto mine = plan_of(group, g);
    expect_error(
        errc::peer_lost,
        [&] {
          while (!mine.advance(link)) *looks = true;
        },
        "rank 1");
  });
  ASSERT_TRUE(test::eventually([&] { return looks->load() && has_joined->load(); }));
  ranks.kill(1);
  EXPECT_EQ(ranks.end(1).signal(), SIGKILL);
  ranks.expect_all_end_well();
}

TEST(GraphGroupKilled, InTheMiddleOfManyRunsTheOtherIsTold) {
  for (std::size_t round = 0; round < 10; ++round) {
    const std::size_t victim = round % 2;
    const test::shared<std::atomic<std::size_t>> runs;
    test::rank_processes ranks(2, [&](group& group) {
      const auto g = test::kalman_graph(24, true);
      group_link link(group);
      auto mine = plan_of(group, g);
      if (group.rank() == 0) begin(mine, test::kalman_inputs(24));
      expect_error(
          errc::peer_lost,
          [&] {
            for (;; ++*runs) mine.run(link);
          },
          "is dead");
    });
    ASSERT_TRUE(test::eventually([&] { return *runs > 20 + 7 * round; }));
    ranks.kill(victim);
    EXPECT_EQ(ranks.end(victim).signal(), SIGKILL);
    ranks.expect_all_end_well();
  }
}

// ---- the link itself

TEST(GroupLink, TagsAreWaitedForInAnyOrderAndATicketIsGoodOnce) {
  constexpr int tags = 50;
  group alone(group_ticket(1), 0);
  group_link link(alone);
  for (int round = 0; round < 3; ++round) {
    std::vector<tensor> rooms;
    std::vector<graph_link::ticket> sends;
    std::vector<graph_link::ticket> receives;
    for (int tag = 0; tag < tags; ++tag) {
      rooms.push_back(tensor::zeros<int>({longer}));
      sends.push_back(link.isend(tensor::full<int>({longer}, tag), 0, tag));
      receives.push_back(link.irecv(rooms.back(), 0, tag));
    }
    for (int tag = tags; tag-- > 0;) {
      const auto at = static_cast<std::size_t>(tag);
      ASSERT_TRUE(link.wait(receives[at], deadline::never()));
      ASSERT_TRUE(link.test(sends[at]));
      ASSERT_EQ(rooms[at].at<int>(longer - 1), tag);
      expect_refused([&] { static_cast<void>(link.test(sends[at])); }, "used up");
    }
  }
  expect_refused([&] { static_cast<void>(link.test(0)); }, "ticket 0");
  expect_refused([&] { static_cast<void>(link.irecv(tensor::zeros<int>({}), -1, 0)); }, "rank -1");
  expect_refused([&] { static_cast<void>(link.isend(tensor::zeros<int>({}), 0, -1)); }, "tag -1");
}

}  // namespace
}  // namespace muster::graph_group_test
