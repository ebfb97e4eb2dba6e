// SPDX-License-Identifier: BSL-1.0
// Pages that a GPU, or what stands in for one (tests/fake_cuda), reads and writes by itself.
#include <muster/cuda/pinned_memory.hpp>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/copy_lane.hpp>
#include <muster/device/tensor_compare.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "device_support.hpp"
#include "gpu_fixture.hpp"

namespace muster::cuda_pinned_test {
namespace {

constexpr auto where = device::cuda(0);
constexpr std::size_t many = std::size_t{1} << 18U;

class PinnedMemory : public test::gpu_test {
protected:
  // Unknown to the machine's own driver.
  void expect_registered(std::size_t count) const {
    if (fake_.is_there()) {
      EXPECT_EQ(fake_.live(fake_cuda_registrations), before_ + count);
    }
  }
  void SetUp() override {
    test::gpu_test::SetUp();
    if (IsSkipped()) return;
    gpu_ = cuda_device::open(where);
    if (fake_.is_there()) before_ = fake_.live(fake_cuda_registrations);
  }

  std::shared_ptr<cuda_device> gpu_;
  test::fake_cuda fake_;
  std::size_t before_ = 0;
};

TEST_F(PinnedMemory, IsCopiedFromAndToAsAnyOther) {
  const auto here = tensor::arange<float>(many);
  const auto back = tensor::empty<float>({many});
  const pinned_memory pinned_here(*gpu_, here);
  const pinned_memory pinned_back(*gpu_, back);
  EXPECT_TRUE(pinned_here.is_pinned());
  expect_registered(2);
  back.copy_from(here.to(where));
  EXPECT_TRUE(equal(back, here));
}

TEST_F(PinnedMemory, IsKnownToTheDriverOnceWhateverViewsArePinned) {
  const auto here = tensor::arange<float>(many);
  {
    const pinned_memory whole(*gpu_, here);
    {
      const pinned_memory part(*gpu_, here.slice(10, 20));
      EXPECT_TRUE(part.is_pinned());
      expect_registered(1);
    }
    expect_registered(1);
  }
  expect_registered(0);
}

TEST_F(PinnedMemory, MovesWithItsOwner) {
  pinned_memory first(*gpu_, tensor::zeros<float>({many}));
  pinned_memory second(std::move(first));
  EXPECT_TRUE(second.is_pinned());
  expect_registered(1);
  second = pinned_memory(*gpu_, tensor::zeros<float>({2 * many}));
  expect_registered(1);
  second = pinned_memory();
  EXPECT_FALSE(second.is_pinned());
  expect_registered(0);
}

TEST_F(PinnedMemory, KeepsTheTensorsMemory) {
  auto here = tensor::full<float>({many}, 3);
  const pinned_memory pinned(*gpu_, here);
  here = tensor();
  EXPECT_EQ(pinned.what().at<float>(many - 1), 3);
}

TEST_F(PinnedMemory, OfLittleIsNotPinned) {
  const pinned_memory small(*gpu_, tensor::zeros<float>({10}));
  EXPECT_FALSE(small.is_pinned());
  EXPECT_FALSE(pinned_memory(*gpu_, tensor()).is_pinned());
  expect_registered(0);
}

TEST_F(PinnedMemory, ElsewhereIsRefused) {
  test::expect_error(
      errc::invalid_argument, [&] { pinned_memory(*gpu_, tensor::zeros<float>({many}, memory::local)); },
      "memory::local");
  test::expect_error(
      errc::invalid_argument, [&] { pinned_memory(*gpu_, tensor::zeros(dtype::f32, {many}, where)); }, "cuda:0");
}

TEST_F(PinnedMemory, WhatCannotBePinnedIsNot) {
  if (!fake_.is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  const auto here = tensor::zeros<float>({many});
  fake_.fail("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY);
  test::expect_error(errc::out_of_memory, [&] { pinned_memory(*gpu_, here); }, "cuMemHostRegister");
  expect_registered(0);
  EXPECT_TRUE(pinned_memory(*gpu_, here).is_pinned());
}

TEST_F(PinnedMemory, IsKeptUntilAnotherDeviceHasCopiedIt) {
  if (!fake_.is_there()) GTEST_SKIP() << "a real device may be done before that is looked at";
  if (cuda_device::count() < 2) GTEST_SKIP() << "there is one GPU";
  const auto other = cuda_device::open(device::cuda(1));
  const auto here = tensor::arange<float>(many);
  const auto there = tensor::zeros<float>({many}, device::cuda(1));
  const auto lane = other->make_copy_lane();
  static std::atomic<bool> is_passed = false;
  is_passed = false;
  {
    const pinned_memory pinned(*gpu_, here);
    {
      const cuda_device::scope current(*other);
      const auto pass_late = [](void*) {
        for (int times = 0; times < 2000; ++times) std::this_thread::yield();
        is_passed = true;
      };
      other->driver().stream_host_function(other->copies().handle(), pass_late, nullptr);
    }
    EXPECT_TRUE(lane->takes(here));
    lane->begin();
    lane->copy(there, here);
  }
  EXPECT_TRUE(is_passed);
  expect_registered(0);
  lane->await();
  EXPECT_TRUE(equal(there, here));
}

TEST_F(PinnedMemory, IsPinnedAndLetGoByManyThreads) {
  const auto here = tensor::arange<float>(many);
  {
    std::vector<std::jthread> threads;
    for (int each = 0; each < 4; ++each) {
      threads.emplace_back([&] {
        for (int round = 0; round < 50; ++round) EXPECT_TRUE(pinned_memory(*gpu_, here).is_pinned());
      });
    }
  }
  expect_registered(0);
}

}  // namespace
}  // namespace muster::cuda_pinned_test
