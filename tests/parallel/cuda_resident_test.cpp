// SPDX-License-Identifier: BSL-1.0
// Variables of worlds that stay on the ranks' devices between calls: they have the bits that they would have on the
// host, whoever dies.
#include <array>
#include <csignal>
#include <cstddef>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/parallel/world.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "gpu_fixture.hpp"
#include "gpus_here.hpp"
#include "world_support.hpp"

namespace muster::cuda_resident_test {
namespace {

constexpr auto cpu = device::cpu();
constexpr std::size_t width = 1000;  // more than a part of a rank

struct form {
  unsigned ranks;
  test::caller who;
  bool on_one_device;
  bool is_late = false;
};

std::string name_of(const testing::TestParamInfo<form>& info) {
  constexpr std::array callers = {"First", "Last", "None"};
  return std::to_string(info.param.ranks) + "Ranks" + callers.at(static_cast<std::size_t>(info.param.who)) +
         (info.param.on_one_device ? "OneDevice" : "") + (info.param.is_late ? "Late" : "");
}

class Resident : public test::gpu_test, public testing::WithParamInterface<form> {
protected:
  void SetUp() override {
    if (GetParam().is_late) late_.emplace(7U);
    test::gpu_test::SetUp();
  }
  [[nodiscard]] world_options on_devices() const {
    auto made = on_processors();
    made.devices = GetParam().on_one_device ? gpus_.all().choosing({device::cuda(0)}) : gpus_.all();
    return made;
  }
  [[nodiscard]] static world_options on_processors() {
    auto made = test::options_for(GetParam().ranks, GetParam().who);
    made.log = [](log_level /*level*/, std::string_view /*text*/) {};
    return made;
  }
  // The last rank; not the program, if there is another.
  [[nodiscard]] static std::size_t some_worker() {
    return GetParam().who == test::caller::last ? 0 : GetParam().ranks - 1;
  }
  [[nodiscard]] static bool has_workers() { return GetParam().ranks > 1 || GetParam().who == test::caller::none; }

  const test::gpus_here gpus_;
  std::optional<test::late_streams> late_;
};

using ResidentKills = test::gives_memory_back<Resident>;

void expect_bits(const tensor& found, const tensor& expected) {
  ASSERT_EQ(found.dtype(), expected.dtype());
  ASSERT_EQ(found.shape(), expected.shape());
  EXPECT_EQ(std::vector(found.data(), found.data() + found.nbytes()),
            std::vector(expected.data(), expected.data() + expected.nbytes()));
}

// Of rows of x: their sum, and the weights once for each row; of any dtype that can be scaled.
tensor gradient_of(const tensor& x, const tensor& weights) {
  const auto made = tensor::zeros(weights.dtype(), weights.shape(), weights.device());
  for (std::size_t row = 0; row < x.rows(); ++row) {
    accumulate(made, convert(x.row(row), weights.dtype()));
    axpy(0.125, weights, made);
  }
  return made;
}

// Some steps of a rule, with and without slices, and what has come of it in each rank.
template <class Op>
std::vector<tensor> trained(world& w, const update_rule& rule, Op op, dtype type) {
  const auto weights = w.replicate("weights", convert(test::noise({width}, 5), type));
  const auto x = test::noise({13, width}, 7);
  auto step = w.function(
      [](const tensor& rows, const tensor& now) {
        const auto last = convert(now.to(cpu), dtype::f64);
        return std::tuple(last.span<double>()[0], gradient_of(rows, now));
      },
      rows("x"), replicas(weights), outputs(max("first")), updates(reduced_into(weights, op, rule)));
  std::vector<tensor> found;
  for (const unsigned slices : {1U, 3U, 1U}) {
    found.push_back(tensor::full<double>({}, step.with({.num_slices = slices})(x)));
    found.push_back(w.get_value(0, weights));
  }
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) found.push_back(w.get_value(rank, weights));
  return found;
}

void expect_all_bits(const std::vector<tensor>& found, const std::vector<tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t each = 0; each < found.size(); ++each) {
    SCOPED_TRACE(each);
    expect_bits(found[each], expected[each]);
  }
}

std::vector<update_rule> some_rules() {
  return {sgd{.rate = 0.1}, sgd{.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01}, adam{.rate = 0.01},
          rmsprop{.rate = 0.01, .momentum = 0.5}, assign_rule{}};
}

TEST_P(Resident, RulesGiveTheBitsOfProcessors) {
  world there(on_devices());
  world here(on_processors());
  for (const auto& rule : some_rules()) {
    for (const auto type : {dtype::f32, dtype::f16, dtype::f64, dtype::bf16}) {
      SCOPED_TRACE(testing::Message() << rule.name() << ' ' << dtype_name(type));
      expect_all_bits(trained(there, rule, sum, type), trained(here, rule, sum, type));
      expect_all_bits(trained(there, rule, avg, type), trained(here, rule, avg, type));
    }
  }
}

TEST_P(Resident, AReplicaGoesToTheDeviceOnceAndComesBackWhenItIsAskedFor) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "nobody counts what a real driver copies";
  if (goes_by_handle()) GTEST_SKIP() << "memory goes with its process here: variables stay on the host";
  world w(on_devices());
  const auto weights = w.replicate("weights", tensor::zeros<float>({width}));
  auto step = w.function(
      [](const tensor& now) {
        const test::fake_cuda counted;
        const auto gradient = tensor::ones<float>({width}, now.device());
        return std::tuple(counted.copied(fake_cuda_uploads), counted.copied(fake_cuda_downloads), gradient);
      },
      replicas(weights), outputs(none("up"), none("down")), updates(reduced_into(weights, sum, sgd{.rate = 1})));
  const auto first = step();
  const auto second = step();
  const auto third = step();
  const bool by_host = GetParam().ranks > 1 && !GetParam().on_one_device;  // devices that are not peers
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    EXPECT_GE(std::get<0>(first)[rank], width * sizeof(float));
    if (by_host) continue;
    EXPECT_EQ(std::get<0>(second)[rank], std::get<0>(first)[rank]);
    EXPECT_EQ(std::get<0>(third)[rank], std::get<0>(first)[rank]);
    EXPECT_EQ(std::get<1>(third)[rank], std::get<1>(first)[rank]);
  }
  const auto expected = tensor::full<float>({width}, -3.0F * static_cast<float>(w.ranks()));
  const auto before = fake.copied(fake_cuda_downloads);
  for (unsigned times = 0; times < 2; ++times) expect_bits(w.get_value(0, weights), expected);
  expect_bits(w.get_value(w.ranks() - 1, weights), expected);
  EXPECT_LE(fake.copied(fake_cuda_downloads) - before, width * sizeof(float));
}

TEST_P(Resident, SlicesAreJoinedOnTheDeviceWhichHasOneOfThemAtATime) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "nobody counts what a real driver copies";
  world w(on_devices());
  auto f = w.function(
      [](const rank_context& context, const tensor& x) {
        const test::fake_cuda counted;
        const auto memory = cuda_device::open(context.device)->memory();
        const auto halves = convert(x.row(0), dtype::f16);
        return std::tuple(counted.copied(fake_cuda_downloads), memory.held_bytes - memory.unused_bytes,
                          x.row(0).clone(), halves, halves);
      },
      rows("x"), outputs(none("down"), none("used"), avg("mean"), sum("sum"), max("largest")));
  constexpr unsigned slices = 8;
  const auto x = test::noise({slices * w.ranks(), width});
  const auto [down, used, mean, total, largest] = f.with({.num_slices = slices})(x);
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    const auto first = rank * slices;
    EXPECT_EQ(down[first], down[first + slices - 1]) << "nothing came to the host meanwhile";
    EXPECT_EQ(used[first + 2], used[first + slices - 1]) << "what was there of slices before is not there any more";
  }
  world here(on_processors());
  auto same = here.function(
      [](const tensor& given) {
        const auto halves = convert(given.row(0), dtype::f16);
        return std::tuple(given.row(0).clone(), halves, halves);
      },
      rows("x"), outputs(avg("mean"), sum("sum"), max("largest")));
  const auto [expected_mean, expected_total, expected_largest] = same.with({.num_slices = slices})(x);
  expect_all_bits({mean, total, largest}, {expected_mean, expected_total, expected_largest});
}

TEST_P(Resident, WhatIsSetBetweenCallsIsWhatTheNextOneFinds) {
  world w(on_devices());
  const auto weights = w.replicate("weights", tensor::zeros<float>({width}));
  const auto other = w.replicate("other", tensor::ones<float>({3}));
  auto step = w.function(
      [](const tensor& now, const tensor& more) {
        const auto gradient = now.clone();
        scale(gradient, -1);
        return std::tuple(more.to(cpu), gradient);
      },
      replicas(weights, other), outputs(avg("other")), updates(reduced_into(weights, avg, sgd{.rate = 1})));
  step();
  w.broadcast(weights, tensor::ones<float>({width}));
  step();
  expect_bits(w.get_value(0, weights), tensor::full<float>({width}, 2));
  w.broadcast(other, tensor::full<float>({5}, 7));
  EXPECT_TRUE(equal(step(), tensor::full<float>({5}, 7)));
  expect_bits(w.get_value(w.ranks() - 1, weights), tensor::full<float>({width}, 4));
  // All begin with what the master has.
  if (w.ranks() > 1) w.set_value(w.master_rank() == 0 ? 1 : 0, weights, tensor::full<float>({width}, 100));
  step();
  const auto ranks = static_cast<float>(w.ranks());
  const auto mean = w.ranks() > 1 ? (4 * (ranks - 1) + 100) / ranks : 4.0F;
  test::expect_close(w.get_value(0, weights), tensor::full<float>({width}, 4 + mean), 1e-5);
  expect_bits(w.get_value(w.ranks() - 1, weights), w.get_value(0, weights));
}

TEST_P(Resident, ReplicasThatDifferStayAsTheyAreInACallWithoutRows) {
  world there(on_devices());
  world here(on_processors());
  const auto run = [](world& w) {
    const auto weights = w.replicate("weights", tensor::ones<float>({width}));
    auto step = w.function([](const tensor& x, const tensor& now) { return gradient_of(x, now); }, rows("x"),
                           replicas(weights), updates(reduced_into(weights, sum, adam{.rate = 0.1})));
    w.set_value(w.ranks() - 1, weights, tensor::full<float>({width}, 5));
    std::vector<tensor> found;
    for (const std::size_t count : {0U, 4U, 0U}) {
      step(test::noise({count, width}));
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) found.push_back(w.get_value(rank, weights));
    }
    return found;
  };
  expect_all_bits(run(there), run(here));
}

TEST_P(Resident, LocalUpdatesAndScatteredVariablesStayInTheirRank) {
  world there(on_devices());
  world here(on_processors());
  const auto run = [](world& w) {
    const auto rows_there = w.scattered("rows", test::noise({11, 40}, 3));
    const auto count = w.replicate("count", tensor::zeros<float>({40}));
    const auto last = w.replicate("last", tensor::zeros<float>({40}));
    auto f = w.function(
        [](const tensor& mine, const tensor& so_far) {
          const auto total = so_far.clone();
          for (std::size_t row = 0; row < mine.rows(); ++row) accumulate(total, mine.row(row));
          return std::tuple(total, total, mine.row(0).clone());
        },
        sliceable(rows_there), replicas(count), outputs(sum("sum")), updates(increment(count, sum), assign(last, max)));
    std::vector<tensor> found;
    found.push_back(f());
    found.push_back(f.with({.num_slices = 2})());
    found.push_back(f.with({.batch_s = std::vector<std::int64_t>{0, 2, 0, 1}})());
    for (const auto& each : {count, last, rows_there}) {
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) found.push_back(w.get_value(rank, each));
    }
    found.push_back(w.gather(count));
    found.push_back(w.reduce(last, max));
    w.all_reduce(count, avg);
    found.push_back(f());
    found.push_back(w.get_value(0, count));
    return found;
  };
  expect_all_bits(run(there), run(here));
}

TEST_P(Resident, WhatIsRunInTheProgramAloneGoesOnWithWhatThereIs) {
  world there(on_devices());
  world here(on_processors());
  const auto run = [](world& w) {
    const auto weights = w.replicate("weights", tensor::ones<float>({width}));
    auto step = w.function([](const tensor& x, const tensor& now) { return gradient_of(x, now); }, rows("x"),
                           replicas(weights), updates(reduced_into(weights, sum, adam{.rate = 0.1})));
    const auto x = test::noise({6, width});
    step(x);
    step.local(x);
    std::vector<tensor> found;
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) found.push_back(w.get_value(rank, weights));
    step(x);
    found.push_back(w.get_value(0, weights));
    return found;
  };
  expect_all_bits(run(there), run(here));
}

TEST_P(Resident, TheNextCallBeginsWithWhatTheMasterHas) {
  world w(on_devices());
  const auto weights = w.replicate("weights", tensor::ones<float>({width}));
  auto step = w.function([](const tensor& now) { return tensor::ones<float>({width}, now.device()); },
                         replicas(weights), updates(reduced_into(weights, sum, sgd{.rate = 1})));
  const auto ranks = static_cast<float>(w.ranks());
  step.local();
  step();
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    expect_bits(w.get_value(rank, weights), tensor::full<float>({width}, -ranks));
  }
  w.set_value(w.master_rank(), weights, tensor::full<float>({width}, 7));
  step();
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    expect_bits(w.get_value(rank, weights), tensor::full<float>({width}, 7 - ranks));
  }
}

TEST_P(ResidentKills, WhoeverDiesOrFailsInACallLeavesAllAsItWas) {
  if (!has_workers()) GTEST_SKIP() << "the program itself is the only rank";
  world w(on_devices());
  world here(on_processors());
  const auto weights = w.replicate("weights", tensor::ones<float>({width}));
  const auto expected = here.replicate("weights", tensor::ones<float>({width}));
  const auto f = [](const rank_context& context, const tensor& x, int who, int how, const tensor& now) {
    const auto gradient = gradient_of(x, now);
    if (static_cast<int>(context.rank) == who && how == 1) ::raise(SIGKILL);
    if (static_cast<int>(context.rank) == who && how == 2) throw std::runtime_error("on purpose");
    return gradient;
  };
  auto step = w.function(f, rows("x"), whole("who", "how"), replicas(weights),
                         updates(reduced_into(weights, avg, adam{.rate = 0.1})));
  auto step_here = here.function(f, rows("x"), whole("who", "how"), replicas(expected),
                                 updates(reduced_into(expected, avg, adam{.rate = 0.1})));
  const auto x = test::noise({9, width});
  const auto who = static_cast<int>(some_worker());
  for (const int how : {0, 1, 0, 2, 1, 1, 0}) {
    if (how != 0) {
      EXPECT_THROW(step(x, who, how), error);
    } else {
      step(x, -1, 0);
      step_here(x, -1, 0);
    }
    for (std::size_t rank = 0; how != 1 && rank < w.ranks(); ++rank) {
      expect_bits(w.get_value(rank, weights), here.get_value(rank, expected));
    }
  }
  EXPECT_EQ(w.replaced_ranks(), 3U);
}

TEST_P(Resident, ARankWhoseDeviceIsLostIsReplacedAndAllGoesOn) {
  if (!has_workers() || !test::fake_cuda().is_there()) GTEST_SKIP() << "nobody else's device can be broken";
  world w(on_devices());
  const auto weights = w.replicate("weights", tensor::zeros<float>({width}));
  auto step = w.function(
      [](const rank_context& context, int who, const tensor& now) {
        const bool is_broken = static_cast<int>(context.rank) == who;
        if (is_broken) test::fake_cuda().fail("kernel", CUDA_ERROR_ILLEGAL_ADDRESS);
        return tensor::ones<float>({width}, now.device());
      },
      whole("who"), replicas(weights), updates(reduced_into(weights, sum, sgd{.rate = 1})));
  step(-1);
  EXPECT_THAT(test::text_of(errc::device_lost, [&] { step(static_cast<int>(some_worker())); }),
              testing::HasSubstr(text("rank ", some_worker(), " of world 'world'")));
  step(-1);
  expect_bits(w.get_value(0, weights), tensor::full<float>({width}, -2.0F * static_cast<float>(w.ranks())));
  EXPECT_EQ(w.replaced_ranks(), 1U);
}

TEST_P(ResidentKills, WhatIsAskedForAfterADeathIsThere) {
  if (!has_workers()) GTEST_SKIP() << "the program itself is the only rank";
  world w(on_devices());
  const auto weights = w.replicate("weights", tensor::zeros<float>({width}));
  auto step = w.function([](const tensor& now) { return tensor::ones<float>({width}, now.device()); },
                         replicas(weights), updates(reduced_into(weights, sum, sgd{.rate = 1, .momentum = 0.5})));
  step();
  const auto process = w.pids()[some_worker()];
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  const auto ranks = static_cast<float>(w.ranks());
  expect_bits(w.get_value(some_worker(), weights), tensor::full<float>({width}, -ranks));
  try {
    step();
  } catch (const error& missed) {
    // Where variables are on the host, nobody had to be asked for them, so that the dead one was not missed.
    EXPECT_EQ(missed.code(), errc::worker_died) << missed.what();
    EXPECT_TRUE(goes_by_handle()) << missed.what();
    step();
  }
  expect_bits(w.get_value(0, weights), tensor::full<float>({width}, -2.5F * ranks));
}

TEST_P(Resident, WhereADeviceHasNoMemoryTheCallFailsAndTheNextOneGoesOn) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "a real device is not full when it is to be";
  world w(on_devices());
  const auto who = static_cast<int>(w.ranks() - 1);
  const auto weights = w.replicate("weights", tensor::zeros<float>({width}));
  const auto many = w.replicate("many", tensor::zeros<float>({std::size_t{17} << 20U}));  // more than is there by now
  auto fill_up = w.function(
      [](const rank_context& context, int rank) {
        if (static_cast<int>(context.rank) != rank) return;
        // Without descriptors nothing stays on the device, so that there is an extent to be given back and a third try.
        for (int tries = 0; tries < 2; ++tries) test::fake_cuda().fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
        for (int tries = 0; tries < 3; ++tries) test::fake_cuda().fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
      },
      whole("who"));
  auto step = w.function([](const tensor& now) { return tensor::ones<float>({width}, now.device()); },
                         replicas(weights), updates(reduced_into(weights, sum, sgd{.rate = 1})));
  auto step_many = w.function([](const tensor& now) { return now; }, replicas(many),
                              updates(reduced_into(many, sum, assign_rule{})));
  step();
  fill_up(who);
  const auto why = test::text_of(errc::remote_exception, step_many);
  EXPECT_THAT(why, testing::HasSubstr(text("rank ", who, " of world 'world'")));
  EXPECT_THAT(why, testing::HasSubstr("MiB"));
  step();
  step_many();
  expect_bits(w.get_value(0, weights), tensor::full<float>({width}, -2.0F * static_cast<float>(w.ranks())));
  test::fake_cuda().no_failures();
}

TEST_P(ResidentKills, RanksThatAreKilledAtAnyTimeLeaveAllOrNothingOfACall) {
  if (!has_workers()) GTEST_SKIP() << "the program itself is the only rank";
  world w(on_devices());
  const auto weights = w.replicate("weights", tensor::zeros<float>({width}));
  const auto first = w.replicate("first", tensor::zeros<float>({7}));
  auto step = w.function(
      [](const tensor& now, const tensor& more) {
        return std::tuple(tensor::ones<float>({width}, now.device()), tensor::ones<float>({7}, more.device()));
      },
      replicas(weights, first),
      updates(reduced_into(weights, sum, sgd{.rate = 1}), reduced_into(first, avg, sgd{.rate = 1, .momentum = 0.5})));
  step();
  std::size_t happened = 1;
  auto moments = std::minstd_rand(1);
  float expected = -1;
  float moving = 1;
  for (int times = 0; times < 25; ++times) {
    const auto process = w.pids()[some_worker()];
    auto result = step.async();
    for (auto left = moments() % 3000; left > 0; --left) ::sched_yield();
    ::kill(process, SIGKILL);
    try {
      result.get();
      ++happened;
      moving = 0.5F * moving + 1;
      expected -= moving;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::worker_died) << failure.what();
    }
    const auto now = -static_cast<float>(happened * w.ranks());
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      expect_bits(w.get_value(rank, weights), tensor::full<float>({width}, now));
      test::expect_close(w.get_value(rank, first), tensor::full<float>({7}, expected), 1e-5);  // of up to 25 steps
    }
  }
}

// ---- anything in any order

// A value like the second, of the first row of the first.
tensor axpied(const tensor& x, const tensor& now) {
  const auto made = convert(x.row(0).reshape({1, 31}).broadcast_to({5, 31}).contiguous(), now.dtype());
  axpy(0.25, now, made);
  return made;
}

// What comes of a number of calls, drawn at random, of a world; each begins with what those before it have left.
std::vector<tensor> what_comes_of(world& w, unsigned seed, int steps) {
  const auto plain = w.replicate("plain", test::noise({300}, 1));
  const auto halves = w.replicate("halves", convert(test::noise({5, 31}, 2), dtype::f16));
  const auto count = w.replicate("count", tensor::zeros<std::int32_t>({9}));
  const auto mine = w.scattered("mine", test::noise({17, 31}, 3));
  auto train = w.function(
      [](const tensor& x, const tensor& now) {
        const auto gradient = gradient_of(x, now);
        return std::tuple(static_cast<float>(x.rows()), gradient, gradient);
      },
      rows("x"), replicas(plain), outputs(sum("rows"), avg("gradient")),
      updates(reduced_into(plain, avg, adam{.rate = 0.01, .weight_decay = 0.1})));
  auto two = w.function(
      [](const tensor& x, const tensor& now, const tensor& so_far) {
        const auto ones = tensor::full<std::int32_t>(so_far.shape(), static_cast<std::int32_t>(x.rows()), x.device());
        return std::tuple(
            x.clone(), gradient_of(x.slice(0, 5, 1).reshape({x.rows(), 5}), now.slice(0, 1).reshape({31}).slice(0, 5)),
            ones);
      },
      rows("x"), replicas(halves, count), outputs(gather("rows"), max("part")), updates(reduced_into(count, sum)));
  auto local = w.function(
      [](const tensor& x, const tensor& now) {
        const auto smallest = x.row(0).clone();
        for (std::size_t row = 1; row < x.rows(); ++row) accumulate(smallest, x.row(row), element_op::min);
        const auto more = convert(smallest.reshape({1, 31}).broadcast_to({5, 31}).contiguous(), dtype::f16);
        axpy(0.5, now, more);
        return std::tuple(smallest, more);
      },
      sliceable(mine), replicas(halves), outputs(min("least")), updates(increment(halves, avg)));
  auto products = w.function([](const tensor& x, const tensor& now) { return std::tuple(1, axpied(x, now)); },
                             rows("x"), replicas(halves), outputs(sum("calls")), updates(reduced_into(halves, prod)));
  std::minstd_rand random(seed);
  const auto draw = [&](unsigned below) { return static_cast<unsigned>(random()) % below; };
  std::vector<tensor> found;
  const auto one_step = [&] {
    const auto kind = draw(11);
    const auto how = draw(1000);
    const auto slices = 1 + draw(4);
    const std::array all = {plain, halves, count, mine};
    if (kind < 2) {
      const auto [rows, gradient] = train.with({.num_slices = slices})(test::noise({how % 9, 300}, how));
      found.push_back(tensor::full<float>({}, rows));
      found.push_back(gradient);
    } else if (kind == 2) {
      const auto [rows, part] = two.with({.num_slices = slices})(test::noise({how % 14, 31}, how));
      found.insert(found.end(), {rows, part});
    } else if (kind == 3) {
      const auto selected = how % 2 == 0 ? row_selection() : row_selection(std::vector<std::size_t>{0, 0, how % 3});
      found.push_back(local.with({.batch_s = selected, .num_slices = slices})());
    } else if (kind == 4) {
      found.push_back(tensor::full<float>({}, static_cast<float>(products(test::noise({how % 4, 31}, how)))));
    } else if (kind == 5) {
      w.broadcast(plain, test::noise({300}, how));
    } else if (kind == 6) {
      w.set_value(how % w.ranks(), halves, convert(test::noise({5, 31}, how), dtype::f16));
    } else if (kind == 7) {
      how % 2 == 0 ? w.all_reduce(count, max) : w.broadcast(halves);
    } else if (kind == 8) {
      w.scatter(mine, test::noise({how % 40, 31}, how));
    } else if (kind == 9) {
      found.push_back(w.get_value(how / 4 % w.ranks(), all.at(how % 4)));
    } else {
      static_cast<void>(train.local(test::noise({how % 5, 300}, how)));
    }
  };
  for (int step = 0; step < steps; ++step) {
    try {
      one_step();
    } catch (const error& failure) {  // both worlds refuse the same
      found.push_back(tensor::full<std::int32_t>({}, failure.code().value()));
    }
  }
  for (const auto& which : {plain, halves, count, mine}) {
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) found.push_back(w.get_value(rank, which));
  }
  return found;
}

TEST_P(Resident, WhateverIsDoneGivesTheBitsOfProcessors) {
  world there(on_devices());
  world here(on_processors());
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_all_bits(what_comes_of(there, seed, 40), what_comes_of(here, seed, 40));
  }
}

const auto all_forms = testing::Values(form{1, test::caller::first, true}, form{1, test::caller::none, true},
                                       form{2, test::caller::first, true}, form{2, test::caller::none, false},
                                       form{2, test::caller::none, true, true}, form{3, test::caller::last, false},
                                       form{3, test::caller::none, true}, form{3, test::caller::first, false, true});
INSTANTIATE_TEST_SUITE_P(Worlds, Resident, all_forms, name_of);
INSTANTIATE_TEST_SUITE_P(Worlds, ResidentKills, all_forms, name_of);

}  // namespace
}  // namespace muster::cuda_resident_test
