// SPDX-License-Identifier: BSL-1.0
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <numeric>
#include <optional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/parallel/world.hpp>

#include "processes.hpp"

namespace muster::world_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

float mean_of(const tensor& x) {
  const auto values = x.span<float>();
  return std::accumulate(values.begin(), values.end(), 0.0F) / static_cast<float>(values.size());
}
std::tuple<float, float, float> sum_min_max(const tensor& x) {
  const auto values = x.span<float>();
  return {std::accumulate(values.begin(), values.end(), 0.0F), *std::ranges::min_element(values),
          *std::ranges::max_element(values)};
}
float sum_of(const tensor& x) { return std::get<0>(sum_min_max(x)); }
tensor same(const tensor& x) { return x; }
void nothing() {}

class World : public testing::TestWithParam<std::tuple<unsigned, bool>> {
protected:
  [[nodiscard]] static unsigned ranks() { return std::get<0>(GetParam()); }
  world world_{{.ranks = ranks(),
                .master_rank = std::get<1>(GetParam()) ? ranks() - 1 : 0,
                .caller_computes = std::get<1>(GetParam())}};
};

TEST_P(World, TheMeanOfRowsIsExactForAnyNumberOfSlices) {
  auto f = world_.function(mean_of, rows("x"), outputs(avg("mean")));
  const auto x = tensor::arange<float>(0, 101);
  for (unsigned slices = 1; slices <= 101; slices += 5) EXPECT_EQ(f.with({.num_slices = slices})(x), 50.0F) << slices;
}

TEST_P(World, InAForkedChildCallsThrowAndTheParentGoesOn) {
  std::optional f(world_.function(mean_of, rows("x"), outputs(avg("mean"))));
  const auto x = tensor::arange<float>(0, 101);
  EXPECT_EQ((*f)(x), 50.0F);
  std::optional<world> other(std::in_place, world_options{.ranks = 1});
  const auto child = test::spawn(1, [&](std::size_t) {
    try {
      (*f)(x);
      return 1;
    } catch (const error& failure) {
      f.reset();
      if (failure.code() != errc::forked) return 2;
    }
    try {
      other->close();
      return 3;
    } catch (const error& failure) {
      other.reset();
      return failure.code() == errc::forked ? 0 : 4;
    }
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  EXPECT_EQ((*f)(x), 50.0F);
  EXPECT_EQ(other->function(mean_of, rows("x"), outputs(avg("mean")))(x), 50.0F);
}

TEST_P(World, WhatOutlivesItsWorldMayBeDroppedInAForkedChild) {
  std::optional<world> w(std::in_place, world_options{.ranks = ranks(), .caller_computes = std::get<1>(GetParam())});
  std::optional v(w->replicate("v", tensor::ones<float>({3})));
  std::optional f(w->function(mean_of, rows("x"), outputs(avg("mean"))));
  const auto x = tensor::arange<float>(0, 101);
  EXPECT_EQ(f->async(x).get(), 50.0F);  // made by a thread that a child has not
  w.reset();
  const auto child = test::spawn(1, [&](std::size_t) {
    v.reset();
    f.reset();
    return 0;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  EXPECT_THROW((*f)(x), error);
}

TEST_P(World, SeveralOutputsAreJoinedEachInItsWay) {
  auto f = world_.function(sum_min_max, rows("x"), outputs(sum("sum"), min("least"), max("most")));
  const auto x = tensor::arange<float>(-3, 98);
  EXPECT_EQ(f(x), std::tuple(4747.0F, -3.0F, 97.0F));
  EXPECT_EQ((f.only<2, 0>()(x)), std::tuple(97.0F, 4747.0F));
  EXPECT_EQ((f.only<0, 0>()(x)), std::tuple(4747.0F, 4747.0F));
  EXPECT_EQ(f(x), std::tuple(4747.0F, -3.0F, 97.0F));
}

TEST_P(World, GatherGivesTheRowsInOrder) {
  auto f = world_.function(same, rows("x"), outputs(gather("x")));
  const auto x = tensor::arange<int>(0, 23);
  EXPECT_EQ(f(x).to_vector<int>(), x.to_vector<int>());
  EXPECT_EQ(f.with({.num_slices = 3})(x).to_vector<int>(), x.to_vector<int>());
  EXPECT_THAT(f.with({.batch = row_range{3, 8}})(x).to_vector<int>(), ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(f.with({.batch = std::vector<int>{7, 3, 7, 0, 22}, .num_slices = 2})(x).to_vector<int>(),
              ElementsAre(7, 3, 7, 0, 22));
}

TEST_P(World, AFunctionOfNothingRunsOnceInEachRank) {
  auto f = world_.function(nothing);
  for (int each = 0; each < 100; ++each) f();
  EXPECT_EQ(f.profile().calls, 100U);
  auto where = world_.function([](const rank_context& context) { return static_cast<int>(context.rank); },
                               outputs(none("rank")));
  std::vector<int> expected(ranks());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(where(), expected);
}

TEST_P(World, TheProfileCountsWhatCallsWereGivenButNotWhatTheRanksHave) {
  const auto x = tensor::ones<float>({10, 4});
  const auto resident = world_.scattered("resident", x);
  auto given = world_.function(sum_of, rows("x"), outputs(sum("sum")));
  EXPECT_EQ(given(x) + given.with({.batch = std::vector<int>{1, 1, 2}})(x), 52.0F);
  EXPECT_EQ(given.profile().input_bytes, 13U * 4U * sizeof(float));
  auto there = world_.function(sum_of, sliceable(resident), outputs(sum("sum")));
  EXPECT_EQ(there.with({.batch_s = 1})(), 4.0F * static_cast<float>(ranks()));
  EXPECT_EQ(there.profile().input_bytes, 0U);
  auto told = world_.function([](const std::string& text) { return text.size(); }, whole("text"), outputs(max("size")));
  EXPECT_EQ(told(std::string(1000, 'x')), 1000U);
  EXPECT_GE(told.profile().input_bytes, 1000U);
  EXPECT_LT(told.profile().input_bytes, 1100U);
}

TEST_P(World, TheProfileSaysWhereTheTimeWentInEachRank) {
  using namespace std::chrono_literals;
  auto f = world_.function(
      [](const tensor& x) {
        const auto until = clock::now() + 2ms;
        while (clock::now() < until) {
        }
        return x.at<float>(0);
      },
      rows("x"), outputs(max("most")));
  for (int call = 0; call < 3; ++call) f(tensor::ones<float>({8}));
  const auto found = f.profile();
  EXPECT_EQ(found.calls, 3U);
  ASSERT_EQ(found.ranks.size(), ranks());
  for (const auto& each : found.ranks) {
    EXPECT_GE(each.compute, 6ms);
    EXPECT_GE(found.total, each.compute);
  }
  std::ostringstream out;
  out << found << 0.125;
  EXPECT_THAT(out.str(),
              AllOf(HasSubstr("3 calls of "), HasSubstr("rank     scatter     compute"), testing::EndsWith("\n0.125")));
  const auto text = out.str();
  EXPECT_EQ(std::ranges::count(text, '\n'), static_cast<std::ptrdiff_t>(2 + ranks()));
}

TEST_P(World, ADataThatGrowsIsSeenWholeByTheRanks) {
  auto f = world_.function([](const tensor& x) { return sum_of(x) + static_cast<float>(x.rows()); }, rows("x"),
                           outputs(sum("sum")));
  data x({.value = tensor::ones<float>({10})});
  EXPECT_EQ(f(x), 20.0F);
  for (const std::size_t length : {100U, 5000U, 100'000U}) {
    x.set_length(length);
    EXPECT_EQ(f(x), 10.0F + static_cast<float>(length));
  }
  x.set_length(4);
  EXPECT_EQ(f(x), 8.0F);
}

TEST_P(World, WholeInputsGoToEveryRank) {
  auto f = world_.function(
      [](const tensor& x, double factor, const std::string& text) {
        return factor * static_cast<double>(x.rows()) + static_cast<double>(text.size());
      },
      rows("x"), whole("factor", "text"), outputs(none("result")));
  const auto results = f(tensor::arange<float>(0, 10), 2.5, "four");
  double total = 0;
  for (const auto each : results) total += each;
  EXPECT_EQ(total, 25.0 + 4.0 * static_cast<double>(results.size()));
}

TEST_P(World, UpdatesOfOneRanksOwnAreAssignedOrAdded) {
  auto s = world_.replicate("s", tensor::full<float>({}, 1.0F));
  auto t = world_.replicate("t", tensor::full<float>({}, 1.0F));
  auto f = world_.function(
      [](const tensor& x) {
        const auto values = x.span<float>();
        const auto total = std::accumulate(values.begin(), values.end(), 0.0F);
        return std::tuple(total, total);
      },
      rows("x"), updates(assign(s, sum), increment(t, sum)));
  const auto x = tensor::arange<float>(1, 9);
  for (unsigned slices = 1; slices <= 5; ++slices) {
    world_.broadcast(t, tensor::full<float>({}, 1.0F));
    f.with({.num_slices = slices})(x);
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const auto part = part_of({0, 8}, rank, ranks());
      float total = 0;
      for (auto row = part.first; row < part.last; ++row) total += static_cast<float>(row + 1);
      if (!part.empty()) {
        EXPECT_EQ(world_.get_value(rank, s).item<float>(), total);
      }
      EXPECT_EQ(world_.get_value(rank, t).item<float>(), 1 + total);
    }
  }
}

TEST_P(World, AReducedGradientUpdatesAllReplicasAlike) {
  auto w = world_.replicate("w", tensor::full<float>({1000}, 1.0F));
  auto f = world_.function(
      [](const tensor& x, const tensor& weights) {
        const auto values = x.span<float>();
        const auto mean = std::accumulate(values.begin(), values.end(), 0.0F) / static_cast<float>(values.size());
        return std::tuple(mean, tensor::full<float>({weights.size()}, mean));
      },
      rows("x"), replicas(w), outputs(avg("mean")), updates(reduced_into(w, avg, sgd{.rate = 0.5})));
  const auto x = tensor::arange<float>(0, 101);
  EXPECT_EQ(f(x), 50.0F);
  const auto first = world_.get_value(0, w);
  EXPECT_NEAR(first.at<float>(999), 1.0F - 25.0F, 1e-5);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    EXPECT_EQ(world_.get_value(rank, w).to_vector<float>(), first.to_vector<float>());
  }
  EXPECT_EQ(f.with({.num_slices = 3})(x), 50.0F);
  EXPECT_NEAR(world_.get_value(0, w).at<float>(0), 1.0F - 50.0F, 1e-4);
}

TEST_P(World, RunLocallyAFunctionTakesAllRowsAndUpdatesTheCallersReplicasAlone) {
  auto s = world_.replicate("s", tensor::full<float>({}, 1.0F));
  auto w = world_.replicate("w", tensor::full<float>({3}, 1.0F));
  auto f = world_.function(
      [](const tensor& x, float factor, const tensor& old) {
        const auto values = x.span<float>();
        const auto total = factor * std::accumulate(values.begin(), values.end(), 0.0F);
        return std::tuple(total, x, total + old.item<float>(), tensor::full<float>({3}, total));
      },
      rows("x"), whole("factor"), replicas(s), outputs(sum("total"), gather("x")),
      updates(assign(s, sum), reduced_into(w, sum, sgd{.rate = 1})));
  const auto x = tensor::arange<float>(0, 4);
  const auto [total, rows] = f.local(x, 2.0F);
  EXPECT_EQ(total, 12.0F);
  EXPECT_EQ(rows.to_vector<float>(), x.to_vector<float>());
  const auto own = std::get<1>(GetParam()) ? world_.master_rank() : 0;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    EXPECT_EQ(world_.get_value(rank, s).item<float>(), rank == own ? 13.0F : 1.0F);
    EXPECT_EQ(world_.get_value(rank, w).at<float>(2), rank == own ? -11.0F : 1.0F);
  }
}

TEST_P(World, InputsAreBuiltFromValues) {
  auto f = world_.function(mean_of, rows("x"), outputs(avg("mean")));
  const auto inputs = f.build_inputs(tensor::arange<float>(0, 101));
  EXPECT_EQ(inputs[0].name(), "x");
  EXPECT_EQ(f(inputs[0]), 50.0F);
  const auto built = f.build_inputs({.type = dtype::f32, .minibatch = true, .force_cast = true, .oversize = 1.5},
                                    tensor::arange<double>(0, 100));
  EXPECT_EQ(built[0].dtype(), dtype::f32);
  EXPECT_EQ(built[0].alloc_size(), 150U);
  EXPECT_TRUE(built[0].minibatch());
  EXPECT_EQ(built[0].name(), "x");
}

TEST_P(World, CallsInTheBackgroundAreMadeInOrder) {
  auto f = world_.function([](const tensor& x, float factor) { return factor * x.at<float>(0); }, rows("x"),
                           whole("factor"), outputs(max("most")));
  const auto x = tensor::ones<float>({8});
  std::vector<future<float>> calls;
  for (int each = 0; each < 50; ++each) calls.push_back(f.async(x, static_cast<float>(each)));
  for (int each = 0; each < 50; ++each)
    EXPECT_EQ(calls[static_cast<std::size_t>(each)].get(), static_cast<float>(each));
}

TEST_P(World, AThrowingFunctionChangesNothingAndTheNextCallWorks) {
  auto s = world_.replicate("s", tensor::full<float>({}, 1.0F));
  auto f = world_.function(
      [](const tensor& x) {
        for (const auto value : x.span<float>()) {
          if (value == 7.0F) throw std::out_of_range("seven");
        }
        return tensor::full<float>({}, 5.0F);
      },
      rows("x"), updates(assign(s, sum)), named("picky"));
  try {
    f(tensor::arange<float>(0, 10));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const rank_error& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("picky"), HasSubstr("seven"), HasSubstr("rank ")));
    EXPECT_EQ(failure.function(), "picky");
    EXPECT_THROW(std::rethrow_if_nested(failure), std::out_of_range);
  }
  for (std::size_t rank = 0; rank < ranks(); ++rank) EXPECT_EQ(world_.get_value(rank, s).item<float>(), 1.0F);
  f(tensor::arange<float>(10, 20));
  EXPECT_EQ(world_.get_value(0, s).item<float>(), 5.0F);
}

TEST_P(World, ARankThatIsKilledFailsTheCallAndIsReplacedWithItsReplicas) {
  auto w = world_.replicate("w", tensor::full<float>({4}, 1.0F));
  auto f = world_.function(
      [](const rank_context& context, const tensor& x, int victim, const tensor& weights) {
        if (static_cast<int>(context.rank) == victim) std::raise(SIGKILL);
        return tensor::full<float>({weights.size()}, static_cast<float>(x.rows()));
      },
      rows("x"), whole("victim"), replicas(w), updates(reduced_into(w, sum, sgd{.rate = 1})));
  const auto x = tensor::arange<float>(0, 32);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (std::get<1>(GetParam()) && rank == world_.master_rank()) continue;
    world_.broadcast(w, tensor::full<float>({4}, 1.0F));
    EXPECT_THROW(f(x, static_cast<int>(rank)), rank_error);
    for (std::size_t each = 0; each < ranks(); ++each) EXPECT_EQ(world_.get_value(each, w).at<float>(3), 1.0F);
    f(x, -1);
    for (std::size_t each = 0; each < ranks(); ++each) EXPECT_EQ(world_.get_value(each, w).at<float>(3), -31.0F);
  }
}

TEST_P(World, AFailureOfAnyRankReachesThoseWhoWaitForItsPartOfAnUpdate) {
  auto w = world_.replicate("w", tensor::full<float>({4}, 1.0F));
  auto f = world_.function(
      [](const rank_context& context, const tensor& x, int victim, const tensor& weights) {
        if (static_cast<int>(context.rank) == victim) throw std::runtime_error("on purpose");
        return tensor::full<float>({weights.size()}, static_cast<float>(x.rows()));
      },
      rows("x"), whole("victim"), replicas(w), updates(reduced_into(w, sum, sgd{.rate = 1})));
  const auto x = tensor::arange<float>(0, 32);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    try {
      f(x, static_cast<int>(rank));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const rank_error& failure) {
      EXPECT_EQ(failure.rank(), rank);
    }
    for (std::size_t each = 0; each < ranks(); ++each) EXPECT_EQ(world_.get_value(each, w).at<float>(3), 1.0F);
  }
  f(x, -1);
  for (std::size_t each = 0; each < ranks(); ++each) EXPECT_EQ(world_.get_value(each, w).at<float>(3), -31.0F);
}

TEST_P(World, WhatARuleRemembersGoesOnFromCallToCallAndOverOneWithoutRows) {
  auto w = world_.replicate("w", tensor::full<float>({300}, 0.0F));
  auto f = world_.function(
      [](const tensor& x, const tensor& weights) {
        return tensor::full<float>({weights.size()}, static_cast<float>(x.rows()));
      },
      rows("x"), replicas(w), updates(reduced_into(w, sum, sgd{.rate = 1, .momentum = 0.5})));
  const auto x = tensor::arange<float>(0, 16);
  const auto expect = [&](float value) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      EXPECT_EQ(world_.get_value(rank, w).to_vector<float>(), std::vector<float>(300, value));
    }
  };
  f(x);
  expect(-16);
  f(x);
  expect(-16 - 24);
  f(x.slice(0, 0));
  expect(-40);
  f(x);
  expect(-40 - 28);
}

TEST_P(World, WithoutRowsHereARuleTakesNoStepEither) {
  const auto weights = [this] { return world_.replicate("w", tensor::full<float>({4}, 0.0F)); };
  const auto trained = [this](const variable& w) {
    return world_.function([](const tensor& x) { return tensor::full<float>({4}, static_cast<float>(x.rows())); },
                           rows("x"), updates(reduced_into(w, sum, adam{.rate = 0.1})));
  };
  const auto one = weights();
  const auto other = weights();
  auto with_empty_calls = trained(one);
  auto without = trained(other);
  const auto x = tensor::arange<float>(0, 8);
  with_empty_calls.local(x.slice(0, 0));
  for (int step = 0; step < 2; ++step) {
    with_empty_calls(x);
    without(x);
  }
  EXPECT_EQ(world_.get_value(0, one).to_vector<float>(), world_.get_value(0, other).to_vector<float>());
}

world* used_inside = nullptr;

TEST_P(World, AFunctionThatIsRunHereAndUsesItsWorldIsRefusedInsteadOfWaitingForItself) {
  auto f = world_.function([](int) { used_inside->distribute(); }, whole("nothing"));
  used_inside = &world_;
  EXPECT_THROW(f.local(1), error);
  used_inside = nullptr;
}

std::optional<variable> dropped_inside;

TEST_P(World, AFunctionThatDropsItsWorldsOrAsksForItsRanksDoesNotWaitForItself) {
  auto f = world_.function(
      [] {
        if (used_inside == nullptr) return 0;  // in another process
        dropped_inside.reset();
        int refused = 0;
        for (const auto& call : std::initializer_list<void (*)()>{[] { static_cast<void>(used_inside->pids()); },
                                                                  [] { used_inside->close(); }}) {
          try {
            call();
          } catch (const error&) {
            ++refused;
          }
        }
        return refused;
      },
      outputs(sum("refused")));
  used_inside = &world_;
  const bool is_run_here = std::get<1>(GetParam());
  for (int round = 0; round < 2; ++round) {
    dropped_inside = world_.replicate("v", tensor::zeros<float>({3}));
    world_.distribute();
    EXPECT_EQ(f(), is_run_here ? 2 : 0);
    EXPECT_EQ(dropped_inside.has_value(), !is_run_here);
  }
  dropped_inside.reset();
  EXPECT_EQ(f.local(), 2);
  used_inside = nullptr;
}

std::optional<world> ended_inside;

TEST_P(World, AFunctionThatEndsItsWorldInACallInTheBackgroundDoesNotWaitForItself) {
  ended_inside.emplace(world_options{.ranks = ranks(), .caller_computes = std::get<1>(GetParam())});
  std::vector<unique_fd> processes;
  for (const auto pid : ended_inside->pids()) {
    if (pid != 0) processes.push_back(open_pidfd(pid));
  }
  auto call = ended_inside->function([] { ended_inside.reset(); }).async();
  call.get();
  ended_inside.reset();
  for (const auto& each : processes) {
    pollfd end{.fd = each.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&end, 1, 30'000), 1);
  }
}

TEST_P(World, ReplicasOfDifferentShapesAreNotUpdatedTogether) {
  if (ranks() == 1) return;
  auto w = world_.replicate("w", tensor::full<float>({300}, 0.0F));
  auto f = world_.function([](const tensor& x) { return tensor::full<float>({300}, static_cast<float>(x.rows())); },
                           rows("x"), updates(reduced_into(w, sum, sgd{.rate = 1, .momentum = 0.5})));
  const auto x = tensor::arange<float>(0, 16);
  world_.set_value(ranks() - 1, w, tensor::full<float>({2}, 0.0F));
  EXPECT_THROW(f(x), error);
  world_.broadcast(w, tensor::full<float>({2}, 0.0F));
  EXPECT_THROW(f(x), error) << "the rule remembers others";
  world_.broadcast(w, tensor::full<float>({300}, 1.0F));
  f(x);
  EXPECT_EQ(world_.get_value(0, w).at<float>(299), -15.0F);
}

// The caller knew already that the call had failed, and no time passed for him any more.
TEST(WorldOfThree, WhoDoesNotComeBackWhenAnotherHasFailedIsKilled) {
  world three({.ranks = 3, .grace = std::chrono::milliseconds(20)});
  auto f = three.function(
      [](const rank_context& context, int failing, const tensor& stuck) {
        const std::atomic_ref<int> is_stuck(stuck.at<int>(0));
        if (static_cast<int>(context.rank) == failing) {
          while (is_stuck.load() == 0) continue;  // or the other would not even begin
          throw std::runtime_error("on purpose");
        }
        if (failing > 0 && context.rank > 0) is_stuck = 1;
        for (volatile bool for_ever = true; failing > 0 && context.rank > 0 && for_ever;) continue;
        return 1;
      },
      whole("failing", "stuck"), outputs(sum("ones")));
  const auto stuck = tensor::zeros<int>({1});
  try {
    f(1, stuck);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const rank_error& failure) {
    EXPECT_EQ(failure.rank(), 1U);
    EXPECT_THAT(failure.what(), HasSubstr("on purpose"));
  }
  EXPECT_EQ(f(-1, stuck), 3);
  EXPECT_EQ(three.replaced_ranks(), 1U);
}

TEST(WorldOfThree, WhoIsTooLateIsNamedAndWhoDiedOfItselfBeforeThat) {
  world three({.ranks = 3, .grace = std::chrono::milliseconds(200)});
  auto f = three.function(
      [](const rank_context& context, int late, int dead) {
        if (static_cast<int>(context.rank) == dead) std::raise(SIGKILL);
        for (volatile bool for_ever = true; static_cast<int>(context.rank) == late && for_ever;) continue;
      },
      whole("late", "dead"));
  const auto late_within = [&](std::chrono::nanoseconds timeout) {
    std::optional<std::size_t> late;
    try {
      f.with({.timeout = timeout})(2, -1);
    } catch (const rank_error& failure) {
      EXPECT_EQ(failure.info().code(), errc::timed_out);
      late = failure.rank();
    }
    return late;
  };
  // Where there is load rank 1, or the caller, may be late too, and is named; then all get more time.
  std::chrono::nanoseconds timeout = std::chrono::milliseconds(100);
  auto late = late_within(timeout);
  while (late != 2U && timeout < std::chrono::seconds(5)) {
    f(-1, -1);
    late = late_within(timeout *= 2);
  }
  EXPECT_EQ(late, 2U);
  try {
    f(1, 2);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const rank_error& failure) {
    EXPECT_EQ(failure.rank(), 2U);
    EXPECT_EQ(failure.info().code(), errc::worker_died);
  }
  f(-1, -1);
}

std::vector<std::int64_t> processors() {
  const auto here = allowed_cpus();
  return {here.begin(), here.end()};
}

TEST(WorldOfThree, RanksArePinnedByRankAlsoThoseThatTakeAPlace) {
  const auto all = allowed_cpus();
  const std::vector<cpu_list> lists = {{all.front()}, {all.back()}};
  constexpr unsigned nobody = 3;
  for (const unsigned own : {0U, 1U, 2U, nobody}) {
    world w({.ranks = 3, .master_rank = own % 3, .caller_computes = own != nobody, .pin = pinning::to(lists)});
    const auto f = w.function(processors, outputs(none("processors")));
    for (const bool is_replaced : {false, true}) {
      const auto found = f();
      for (std::size_t rank = 0; rank < 3; ++rank) {
        const auto& wanted = own == rank ? all : lists[rank % 2];
        EXPECT_EQ(found[rank], (std::vector<std::int64_t>(wanted.begin(), wanted.end()))) << "rank " << rank;
      }
      if (is_replaced) break;
      const auto victim = own == 0 ? 1 : 0;
      ::kill(w.pids()[static_cast<std::size_t>(victim)], SIGKILL);
      EXPECT_TRUE(test::eventually([&] {
        try {
          static_cast<void>(f());
        } catch (const rank_error&) {
          return false;
        }
        return w.replaced_ranks() == 1;
      }));
    }
  }
}

TEST(WorldOfThree, ClosesWithARankThatIsStopped) {
  world three({.ranks = 3});
  const auto pid = three.pids()[1];
  ::kill(pid, SIGSTOP);
  three.close();
  EXPECT_EQ(::kill(pid, 0), -1);
}

INSTANTIATE_TEST_SUITE_P(Ranks, World, testing::Combine(testing::Values(1U, 2U, 3U, 4U), testing::Bool()),
                         [](const auto& each) {
                           return "Of" + std::to_string(std::get<0>(each.param)) +
                                  (std::get<1>(each.param) ? "WithTheCaller" : "WithoutTheCaller");
                         });

}  // namespace
}  // namespace muster::world_test
