// SPDX-License-Identifier: BSL-1.0
// Copies beside what a GPU, or what stands in for one (tests/fake_cuda), computes.
#include <muster/device/copy_lane.hpp>

#include <atomic>
#include <memory>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/pinned_memory.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor_compare.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "cuda_support.hpp"
#include "device_support.hpp"
#include "gpu_fixture.hpp"

namespace muster::cuda_copy_lane_test {
namespace {

constexpr auto where = device::cuda(0);
constexpr std::size_t many = std::size_t{1} << 15U;  // 128 KiB of floats: less is not pinned

tensor all(float value) { return tensor::full<float>({many}, value); }

class CopyLane : public test::gpu_test {
protected:
  void SetUp() override {
    test::gpu_test::SetUp();
    if (IsSkipped()) return;
    gpu_ = cuda_device::open(where);
    lane_ = gpu_->make_copy_lane();
  }
  void TearDown() override {
    lane_.reset();
    test::gpu_test::TearDown();
  }

  std::shared_ptr<cuda_device> gpu_;
  std::unique_ptr<copy_lane> lane_;
};

TEST_F(CopyLane, TakesPinnedTensorsInARowAndNoOthers) {
  const auto here = all(1);
  EXPECT_FALSE(lane_->takes(here)) << "not pinned";
  const pinned_memory pinned(*gpu_, here);
  EXPECT_TRUE(lane_->takes(here));
  EXPECT_TRUE(lane_->takes(here.slice(1, 3)));
  EXPECT_FALSE(lane_->takes(here.reshape({many / 2, 2}).transpose()));
  EXPECT_FALSE(lane_->takes(here.to(where)));
}

TEST_F(CopyLane, CopiesToTheDeviceAreThereForWhatIsComputedAfterAwait) {
  if (!test::runs_alone({"FAKE_CUDA_DELAY=3"})) return;
  const auto here = all(0);
  const pinned_memory pinned(*gpu_, here);
  for (int round = 1; round <= 20; ++round) {
    const auto value = static_cast<float>(round);
    here.fill(value);
    const auto there = tensor::empty<float>({many}, where);
    lane_->begin();
    lane_->copy(there, here);
    lane_->await();
    scale(there, 2);
    EXPECT_TRUE(equal(there, all(2 * value)));
    lane_->wait();  // here is written again
  }
}

TEST_F(CopyLane, CopiesToTheHostHaveWhatWasComputedBeforeBeginAndAreThereAfterWait) {
  if (!test::runs_alone({"FAKE_CUDA_DELAY=5"})) return;
  const auto here = all(0);
  const pinned_memory pinned(*gpu_, here);
  const auto there = tensor::zeros<float>({many}, where);
  const auto ones = tensor::ones<float>({many}, where);
  for (int round = 1; round <= 20; ++round) {
    accumulate(there, ones);
    lane_->begin();
    lane_->copy(here, there);
    lane_->await();
    accumulate(there, ones);  // which the copy does not see
    lane_->wait();
    EXPECT_TRUE(equal(here, all(static_cast<float>(2 * round - 1))));
  }
}

TEST_F(CopyLane, NobodyWaitsForACopyButWhoSaysSo) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "a real device would be stopped for good if this failed";
  const auto gate = tensor::zeros<std::uint64_t>({many});
  const auto here = all(0);
  const pinned_memory pinned_gate(*gpu_, gate);
  const pinned_memory pinned(*gpu_, here);
  const auto there = tensor::ones<float>({many}, where);
  gpu_->synchronize();
  {
    const cuda_device::scope current(*gpu_);
    CUdeviceptr closed = 0;
    gpu_->driver().host_device_pointer(&closed, gate.data(), 0);
    gpu_->driver().stream_wait_value(gpu_->copies().handle(), closed, 1, CU_STREAM_WAIT_VALUE_GEQ);
  }
  lane_->begin();
  lane_->copy(here, there);
  EXPECT_TRUE(equal(there, all(1))) << "the device computes meanwhile";
  EXPECT_TRUE(equal(here, all(0)));
  std::atomic_ref(gate.span<std::uint64_t>()[0]).store(1);
  lane_->wait();
  EXPECT_TRUE(equal(here, all(1)));
}

TEST_F(CopyLane, EndsWhenItsCopiesHaveBeenMade) {
  if (!test::runs_alone({"FAKE_CUDA_DELAY=8"})) return;
  const auto here = all(0);
  const pinned_memory pinned(*gpu_, here);
  const auto there = tensor::ones<float>({many}, where);
  lane_->begin();
  lane_->copy(here, there);
  lane_.reset();
  EXPECT_TRUE(equal(here, all(1)));
}

// Broken by what needs no memory of the device's, which could not be given back then.
TEST(CopyLaneAlone, ALostDeviceIsToldByWait) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  if (!test::runs_alone({})) return;
  const auto gpu = cuda_device::open(where);
  const auto lane = gpu->make_copy_lane();
  static int from = 1;
  static int to = 0;
  {
    const cuda_device::scope current(*gpu);
    fake.fail("copy", CUDA_ERROR_ILLEGAL_ADDRESS);
    static_cast<void>(gpu->driver().copy_async.attempt(
        reinterpret_cast<CUdeviceptr>(&to), reinterpret_cast<CUdeviceptr>(&from), sizeof to, gpu->copies().handle()));
  }
  test::expect_error(errc::device_lost, [&] { lane->wait(); }, " on cuda:0 failed");
}

}  // namespace
}  // namespace muster::cuda_copy_lane_test
