// SPDX-License-Identifier: BSL-1.0
// Copies between GPUs, or what stands in for them (tests/fake_cuda): directly where one reaches the other.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/dlpack.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "cuda_support.hpp"
#include "device_support.hpp"
#include "gpu_fixture.hpp"

namespace muster::cuda_copy_test {
namespace {

using test::expect_error;

constexpr auto one = device::cuda(0);
constexpr auto other = device::cuda(1);
constexpr auto cpu = device::cpu();

class CudaCopy : public test::gpu_test {
protected:
  void SetUp() override {
    test::gpu_test::SetUp();
    if (!IsSkipped() && cuda_device::count() < 2) GTEST_SKIP() << "there is one GPU";
  }

  [[nodiscard]] static bool are_peers() { return cuda_device::open(other)->reaches(*cuda_device::open(one)); }

  // Unknown to the machine's own driver.
  void expect_copies(std::size_t direct, std::size_t staged) const {
    if (!fake_.is_there()) return;
    EXPECT_EQ(fake_.copies_between(true), direct);
    EXPECT_EQ(fake_.copies_between(false), staged);
  }

  test::fake_cuda fake_;
};

TEST_F(CudaCopy, BetweenPeersGoesDirectly) {
  if (!test::runs_alone({})) return;
  const auto here = tensor::arange<float>(1000);
  const auto there = here.to(one).to(other);
  EXPECT_EQ(there.device(), other);
  EXPECT_TRUE(equal(there.to(cpu), here));
  EXPECT_TRUE(equal(there.to(one).to(cpu), here));
  if (are_peers()) expect_copies(2, 0);
}

TEST_F(CudaCopy, BetweenPeersGoesDirectlyWithoutVirtualMemoryToo) {
  if (!test::runs_alone({"FAKE_CUDA_VIRTUAL=0"})) return;
  const auto here = tensor::arange<float>(1000);
  const auto there = here.to(one).to(other);
  EXPECT_TRUE(equal(there.to(cpu), here));
  EXPECT_TRUE(equal(tensor::full<float>({10}, 3, one).to(other).to(cpu), tensor::full<float>({10}, 3)));
  if (are_peers()) expect_copies(2, 0);
}

TEST_F(CudaCopy, BetweenDevicesThatAreNoPeersGoesByWayOfTheHost) {
  if (!test::runs_alone({"FAKE_CUDA_PEERS=0"})) return;
  const auto here = tensor::arange<float>(1000);
  EXPECT_TRUE(equal(here.to(one).to(other).to(one).to(cpu), here));
  if (!are_peers()) expect_copies(0, 0);
}

TEST_F(CudaCopy, OfStridedTensorsKeepsTheirElements) {
  const auto here = tensor::arange<std::int16_t>(24).reshape({2, 3, 4}).permute({2, 0, 1});
  const auto there = here.to(one);
  EXPECT_TRUE(equal(there.transpose().to(other).to(cpu), here.transpose()));
  const auto wide = tensor::zeros<std::int16_t>({4, 2, 6}, other);
  wide.slice(0, 6, 2, 2).copy_from(there);
  EXPECT_TRUE(equal(wide.to(cpu).slice(0, 6, 2, 2), here));
  EXPECT_FALSE(any(wide.to(cpu).slice(1, 6, 2, 2)));
}

// What a device is asked for is done in its own order; a copy is in the order of both.
TEST_F(CudaCopy, IsInTheOrderOfBothDevices) {
  if (!test::runs_alone({"FAKE_CUDA_DELAY=7"})) return;
  const auto source = tensor::zeros<float>({1000}, one);
  const auto target = tensor::zeros<float>({1000}, other);
  const auto ones = tensor::ones<float>({1000}, one);
  for (int round = 1; round <= 50; ++round) {
    accumulate(source, ones);  // the copy sees this
    target.copy_from(source);  //
    accumulate(source, ones);  // and not this
    const auto back = target.to(one);
    scale(target, 0);  // which does not see this
    EXPECT_TRUE(equal(back, tensor::full<float>({1000}, static_cast<float>(2 * round - 1))));
    EXPECT_TRUE(equal(target, tensor::zeros<float>({1000})));
  }
}

TEST_F(CudaCopy, MemoryThatIsGivenBackMeanwhileIsNotTakenTooEarly) {
  if (!test::runs_alone({"FAKE_CUDA_DELAY=9"})) return;
  for (int round = 0; round < 50; ++round) {
    const auto value = static_cast<float>(round);
    const auto there = tensor::full<float>({1000}, value, one).to(other);
    const auto next = tensor::full<float>({1000}, -1, one);  // where the first one was
    EXPECT_TRUE(equal(there, tensor::full<float>({1000}, value)));
  }
}

TEST_F(CudaCopy, ThatTheSourcesDeviceCouldNotBeToldOfIsNotMade) {
  if (!test::runs_alone({})) return;
  if (!fake_.is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  const auto source = tensor::ones<float>({1000}, one);
  const auto target = tensor::zeros<float>({1000}, other);
  fake_.fail("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY, 1);
  expect_error(errc::out_of_memory, [&] { target.copy_from(source); }, "cuEventCreate");
  expect_copies(0, 0);
  EXPECT_TRUE(equal(target, tensor::zeros<float>({1000})));
  target.copy_from(source);
  EXPECT_TRUE(equal(target, tensor::ones<float>({1000})));
}

// The source may be given back then, to a device that knows nothing of the copy.
TEST_F(CudaCopy, HasBeenMadeWhenTheSourcesDeviceCannotBeToldOfIt) {
  if (!test::runs_alone({})) return;
  if (!fake_.is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  const auto source = tensor::ones<float>({1000}, one);
  const auto target = tensor::zeros<float>({1000}, other);
  static std::atomic<bool> is_passed = false;
  const auto copies = cuda_device::open(other);
  {
    const cuda_device::scope current(*copies);
    const auto pass_late = [](void*) {
      for (int times = 0; times < 2000; ++times) std::this_thread::yield();
      is_passed = true;
    };
    copies->driver().stream_host_function(copies->compute().handle(), pass_late, nullptr);
  }
  fake_.fail("cuEventRecord", CUDA_ERROR_OUT_OF_MEMORY, 1);
  expect_error(errc::out_of_memory, [&] { target.copy_from(source); }, "cuEventRecord");
  EXPECT_TRUE(is_passed);
  const cuda_device::scope current(*copies);
  EXPECT_TRUE(copies->compute().is_idle());
}

TEST_F(CudaCopy, OfAnotherLibrarysMemoryIsMadeWhateverReachesIt) {
  const auto there = from_dlpack(to_dlpack(tensor::arange<float>(100).to(one)));
  EXPECT_TRUE(equal(there.to(other).to(cpu), tensor::arange<float>(100)));
}

}  // namespace
}  // namespace muster::cuda_copy_test
