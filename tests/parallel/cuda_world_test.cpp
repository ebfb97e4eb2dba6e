// SPDX-License-Identifier: BSL-1.0
// Worlds whose ranks compute on GPUs, or on what stands in for them.
#include <csignal>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/parallel/world.hpp>

#include "gpu_fixture.hpp"
#include "gpus_here.hpp"

namespace muster::cuda_world_test {
namespace {

constexpr auto cpu = device::cpu();

double sum_of(const tensor& what) {
  double sum = 0;
  for (const auto each : what.to(cpu).contiguous().span<float>()) sum += static_cast<double>(each);
  return sum;
}

class CudaWorld : public test::gpu_test, public testing::WithParamInterface<unsigned> {
protected:
  [[nodiscard]] world_options options() const { return {.ranks = GetParam(), .devices = gpus_.all(), .log = {}}; }

  const test::gpus_here gpus_;
};

TEST_P(CudaWorld, FunctionsGetTheirTensorsOnTheRanksDevice) {
  world w(options());
  const auto weights = w.replicate("weights", tensor::full<float>({3}, 2.0F));
  auto f = w.function(
      [](const rank_context& context, const tensor& x, const tensor& whole, const tensor& replica) {
        const bool are_there = x.device() == context.device && whole.device() == context.device &&
                               replica.device() == context.device && !context.device.is_cpu();
        return are_there ? 1 : 0;
      },
      rows("x"), whole("all"), replicas(weights), outputs(min("there")));
  EXPECT_EQ(f(tensor::ones<float>({8, 2}), tensor::ones<float>({5})), 1);
}

TEST_P(CudaWorld, ATensorOnADeviceIsReplicatedOnTheHost) {
  const auto given = tensor::full<float>({3}, 2.0F, device::cuda(0));
  for (const bool on_devices : {true, false}) {
    world w(on_devices ? options() : world_options{.ranks = GetParam()});
    const auto weights = w.replicate("weights", given);
    EXPECT_TRUE(w.get_value(0, weights).device().is_cpu());
    auto f = w.function([](const tensor& now) { return now.to(cpu); }, replicas(weights), outputs(max("weights")));
    EXPECT_TRUE(equal(f(), tensor::full<float>({3}, 2.0F)));
    w.all_reduce(weights, sum);
    EXPECT_TRUE(equal(w.get_value(0, weights), tensor::full<float>({3}, 2.0F * static_cast<float>(w.ranks()))));
  }
}

TEST_P(CudaWorld, TensorsInsideOfWhatNoneGivesAreOnTheHostAndTheCallersOwn) {
  world w(options());
  const auto weights = w.replicate("weights", tensor::zeros<float>({4}));
  auto f = w.function([](const tensor& now) { return std::tuple(std::vector{now}, tensor::ones<float>({4})); },
                      replicas(weights), outputs(none("weights")), updates(increment(weights)));
  const auto found = f();
  for (int call = 0; call < 2; ++call) f();
  for (const auto& of_rank : found) {
    EXPECT_TRUE(of_rank[0].device().is_cpu());
    EXPECT_TRUE(equal(of_rank[0], tensor::zeros<float>({4})));
  }
}

TEST_P(CudaWorld, OutputsMayLieOnTheDevice) {
  world w(options());
  auto f = w.function(
      [](const tensor& x) {
        const auto twice = x.clone();
        scale(twice, 2);
        return std::tuple(twice, twice, sum_of(x));
      },
      rows("x"), outputs(gather("twice"), none("parts"), sum("sum")));
  const auto x = tensor::arange<float>(24).reshape({12, 2});
  const auto [twice, parts, sum] = f(x);
  auto expected = x.clone();
  scale(expected, 2);
  EXPECT_TRUE(equal(twice, expected));
  EXPECT_EQ(parts.size(), w.ranks());
  EXPECT_TRUE(twice.device().is_cpu());
  EXPECT_EQ(sum, 23 * 24 / 2);
}

TEST_P(CudaWorld, UpdatesAreAppliedOnceAndAreSeenByTheNextCall) {
  world w(options());
  const auto weights = w.replicate("weights", tensor::zeros<float>({4}));
  auto step = w.function(
      [](const tensor& x, const tensor& now) {
        const auto gradient = tensor::zeros<float>({4}, x.device());
        for (std::size_t row = 0; row < x.rows(); ++row) accumulate(gradient, x.row(row));
        accumulate(gradient, now);
        return gradient;
      },
      rows("x"), replicas(weights), updates(reduced_into(weights, sum, sgd{.rate = 1})));
  const auto x = tensor::ones<float>({16, 4});
  step(x);
  EXPECT_TRUE(equal(w.get_value(0, weights), tensor::full<float>({4}, -16.0F)));
  step.with({.num_slices = 4})(x);
  // Each slice adds the weights once more to its sum.
  const auto ranks = static_cast<float>(w.ranks());
  EXPECT_TRUE(equal(w.get_value(0, weights), tensor::full<float>({4}, -16.0F - (16.0F - 16.0F * 4.0F * ranks))));
  for (std::size_t rank = 1; rank < w.ranks(); ++rank) {
    EXPECT_TRUE(equal(w.get_value(rank, weights), w.get_value(0, weights)));
  }
}

TEST_P(CudaWorld, AKilledRankIsReplacedAndTheCallChangesNothing) {
  if (GetParam() < 2) GTEST_SKIP() << "the program itself is the only rank";
  world w(options());
  const auto weights = w.replicate("weights", tensor::zeros<float>({4}));
  auto step = w.function(
      [](const rank_context& context, const tensor& x, int dies) {
        if (dies != 0 && context.rank == 1) ::raise(SIGKILL);
        return x.row(0).clone();
      },
      rows("x"), whole("dies"), updates(reduced_into(weights, sum, sgd{.rate = 1})));
  const auto x = tensor::ones<float>({8, 4});
  EXPECT_THROW(step(x, 1), error);
  EXPECT_TRUE(equal(w.get_value(0, weights), tensor::zeros<float>({4})));
  step(x, 0);
  EXPECT_TRUE(equal(w.get_value(1, weights), tensor::full<float>({4}, -static_cast<float>(w.ranks()))));
}

INSTANTIATE_TEST_SUITE_P(Ranks, CudaWorld, testing::Values(1U, 2U, 3U));

}  // namespace
}  // namespace muster::cuda_world_test
