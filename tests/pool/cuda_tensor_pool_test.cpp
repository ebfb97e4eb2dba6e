// SPDX-License-Identifier: BSL-1.0
// Tensors on a GPU, or on what stands in for one, as arguments and results of tasks: by reference.
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/pool/pool.hpp>

#include "gpu_fixture.hpp"
#include "processes.hpp"

namespace muster::cuda_tensor_pool_test {
namespace {

constexpr auto gpu = device::cuda(0);
constexpr auto cpu = device::cpu();

// ---- what workers do

tensor make(float value) { return tensor::full<float>({1000}, value, gpu); }

tensor doubled_in_place(tensor given) {
  scale(given, 2);
  return given;
}

double sum(const tensor& of) {
  double total = 0;
  for (const auto each : of.to(cpu).to_vector<float>()) total += static_cast<double>(each);
  return total;
}

bool is_on_gpu(const tensor& of) { return of.device() == gpu && of.device_address() != 0; }

class CudaTensorPool : public test::gpu_test {
protected:
  void SetUp() override {
    test::gpu_test::SetUp();
    if (!IsSkipped()) pool_ = std::make_unique<pool>(pool_options{.workers = 2, .quarantine_after = 0, .log = discard});
  }
  void TearDown() override {
    pool_.reset();  // what workers have kept is free again after that
    test::gpu_test::TearDown();
  }
  static void discard(log_level /*level*/, std::string_view /*text*/) {}

  // Of the device, as the driver says.
  static std::size_t free_bytes() { return cuda_device::open(gpu)->memory().free_bytes; }

  std::unique_ptr<pool> pool_;
};

TEST_F(CudaTensorPool, AnArgumentIsWorkedOnInPlace) {
  const auto there = make(3);
  EXPECT_TRUE(pool_->apply(is_on_gpu, there));
  EXPECT_EQ(pool_->apply(sum, there), 3000);
  static_cast<void>(pool_->apply(doubled_in_place, there));
  EXPECT_TRUE(equal(there, tensor::full<float>({1000}, 6.0F))) << "the same memory";
}

TEST_F(CudaTensorPool, WhatATaskDoesWithAnArgumentIsDoneWhenItHasEnded) {
  ::setenv("FAKE_CUDA_DELAY", "5", 1);  // the streams of processes that start now are late
  pool_ = std::make_unique<pool>(pool_options{.workers = 2, .log = discard});
  static_cast<void>(pool_->on(0).apply(is_on_gpu, make(1)));
  static_cast<void>(pool_->on(1).apply(is_on_gpu, make(1)));
  ::unsetenv("FAKE_CUDA_DELAY");
  const auto there = make(1);
  float expected = 1;
  for (const std::size_t worker : std::vector<std::size_t>{0, 1, 1, 0, 1, 0}) {
    pool_->on(worker).apply(
        [](const tensor& given) {
          for (int times = 0; times < 8; ++times) scale(given, 2);
          for (int times = 0; times < 7; ++times) scale(given, 0.5);
        },
        there);
    expected *= 2;
    EXPECT_TRUE(equal(there, tensor::full<float>({1000}, expected)));
  }
  EXPECT_THROW(pool_->apply(
                   [](const tensor& given) {
                     for (int times = 0; times < 8; ++times) scale(given, 2);
                     throw std::runtime_error("on purpose");
                   },
                   there),
               std::exception);
  EXPECT_TRUE(equal(there, tensor::full<float>({1000}, expected * 256)));
}

TEST_F(CudaTensorPool, AResultStaysOnTheDevice) {
  const auto made = pool_->apply(make, 4.0F);
  EXPECT_EQ(made.device(), gpu);
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 4.0F)));
}

TEST_F(CudaTensorPool, GoesFromWorkerToWorkerAndBackToItsOwner) {
  auto made = pool_->on(0).apply(make, 1.0F);
  for (const std::size_t worker : std::vector<std::size_t>{1, 0, 1, 1, 0}) made = pool_->on(worker).apply(doubled_in_place, made);
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 32.0F)));
}

TEST_F(CudaTensorPool, TheProgramNeedsNoContextToPassItOn) {
  auto made = pool_->on(0).apply(make, 5.0F);
  EXPECT_EQ(pool_->on(1).apply(sum, made), 5000);
}

TEST_F(CudaTensorPool, AViewGoesAsAView) {
  const auto rows = tensor::arange<float>(12).reshape({3, 4}).to(gpu);
  EXPECT_EQ(pool_->apply(sum, rows.row(1)), 4 + 5 + 6 + 7);
  EXPECT_EQ(pool_->apply(sum, rows.slice(1, 3, 1)), 1 + 2 + 5 + 6 + 9 + 10);
}

TEST_F(CudaTensorPool, WhatAWorkerHasMadeOutlivesIt) {
  const auto made = pool_->on(0).apply(make, 7.0F);
  pool_->on(0).apply([] { cuda_device::open(gpu)->synchronize(); });  // else it may die before it has made it
  const auto died = pool_->on(0).apply_async([] { ::raise(SIGKILL); }).get_result();
  EXPECT_EQ(died.error(), errc::worker_died);
  EXPECT_EQ(pool_->on(1).apply(sum, made), 7000);
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 7.0F)));
}

TEST_F(CudaTensorPool, WhatAKilledWorkerHeldIsFreeAgain) {
  const auto device = cuda_device::open(gpu);
  const auto held = [&] {
    static_cast<void>(tensor::empty<float>({1}, gpu));  // collects what others have let go of
    const auto now = device->memory();
    return now.held_bytes - now.unused_bytes;
  };
  const auto before = held();
  for (int times = 0; times < 3; ++times) {
    const auto there = tensor::zeros<float>({100'000}, gpu);
    const auto died = pool_->apply_async(
                               [](const tensor& given) {
                                 static const auto kept = given;
                                 static_cast<void>(kept.device_address());
                                 ::raise(SIGKILL);
                               },
                               there)
                          .get_result();
    EXPECT_EQ(died.error(), errc::worker_died);
  }
  EXPECT_TRUE(test::eventually([&] { return held() == before; }));
}

TEST_F(CudaTensorPool, WhatAWorkerKeepsIsNotUsedAgain) {
  {
    const auto there = tensor::full<float>({1000}, 8.0F, gpu);
    pool_->on(0).apply(
        [](const tensor& given) {
          static tensor kept;
          kept = given;
        },
        there);
    pool_->on(1).apply([](const tensor& given) { static_cast<void>(sum(given)); }, there);
  }
  for (int times = 0; times < 20; ++times) static_cast<void>(tensor::zeros<float>({1000}, gpu));
  // A static in another function is another: the worker's is asked for by the same one.
  const auto keeper = [](const tensor& given) {
    static tensor kept;
    if (given.size() != 0) kept = given;
    return sum(kept);
  };
  const auto again = tensor::full<float>({1000}, 9.0F, gpu);
  EXPECT_EQ(pool_->on(0).apply(keeper, again), 9000);
  {
    const auto gone = tensor::full<float>({1000}, 10.0F, gpu);
    EXPECT_EQ(pool_->on(0).apply(keeper, gone), 10'000);
  }
  for (int times = 0; times < 20; ++times) static_cast<void>(tensor::full<float>({1000}, 1.0F, gpu));
  EXPECT_EQ(pool_->on(0).apply(keeper, tensor::empty<float>({0})), 10'000);
}

TEST_F(CudaTensorPool, AsACopyItArrivesOnTheHost) {
  const auto there = make(2);
  const auto where = pool_->with({.transfer = transfer::copy}).apply([](const tensor& given) {
    return given.device().is_cpu() && given.span<float>()[999] == 2.0F;
  }, there);
  EXPECT_TRUE(where);
}

TEST_F(CudaTensorPool, MapsTakeAndGiveThem) {
  std::vector<tensor> many;
  for (int each = 0; each < 50; ++each) many.push_back(make(static_cast<float>(each)));
  const auto sums = pool_->map(sum, many);
  for (std::size_t each = 0; each < many.size(); ++each) EXPECT_EQ(sums[each], 1000.0 * static_cast<double>(each));
  const auto twice = pool_->map(doubled_in_place, many);
  for (std::size_t each = 0; each < many.size(); ++each) EXPECT_EQ(sum(twice[each]), 2000.0 * static_cast<double>(each));
}

}  // namespace
}  // namespace muster::cuda_tensor_pool_test
