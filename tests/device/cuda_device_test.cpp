// SPDX-License-Identifier: BSL-1.0
// What a device says that cannot be used, and which one it is that a failed call was made on.
#include <muster/cuda/cuda_device.hpp>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/device/tensor.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "cuda_devices.hpp"
#include "cuda_support.hpp"
#include "device_support.hpp"
#include "gpu_fixture.hpp"

namespace muster::cuda_device_test {
namespace {

using test::expect_error;

constexpr auto first = device::cuda(0);
constexpr auto second = device::cuda(1);

void use(device where) {
  static_cast<void>(tensor::full<float>({1000}, 1, where));
  cuda_device::open(where)->trim();
}

// By what needs no memory of its, which could not be given back then.
void break_down(const cuda_device& which) {
  static int from = 1;
  static int to = 0;
  const cuda_device::scope current(which);
  test::fake_cuda().fail("copy", CUDA_ERROR_ILLEGAL_ADDRESS);
  static_cast<void>(which.driver().copy_async.attempt(
      reinterpret_cast<CUdeviceptr>(&to), reinterpret_cast<CUdeviceptr>(&from), sizeof to, which.compute().handle()));
}

TEST(CudaDeviceAlone, WhateverCuInitSaysMeansThatThereIsNone) {
  if (!test::runs_alone({"FAKE_CUDA_FAIL=cuInit:999:0"})) return;
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  expect_error(errc::no_device, [] { use(first); }, "cuInit says", "999", "use the device cpu");
  use(first);  // it has failed once
}

TEST(CudaDeviceAlone, OnceThereIsADriverDevicesHaveTheirNamesAlthoughThereWasNoneBefore) {
  if (!test::runs_alone({"FAKE_CUDA_FAIL=cuInit:3:0"})) return;
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  auto& all = detail::cuda_devices::of_program();
  EXPECT_FALSE(all.find({}));
  const auto uuid = cuda_device::open(second)->uuid();
  EXPECT_EQ(all.find(uuid), second);
}

TEST(CudaDeviceAlone, OneThatIsTooOldIsRefusedWithWhatItHasAndWhatIsNeeded) {
  if (!test::runs_alone({"FAKE_CUDA_CAPABILITY=35"})) return;
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the machine's own devices are as they are";
  constexpr unsigned least = MUSTER_CUDA_LEAST_CAPABILITY;
  const auto needed = text(least / 10, '.', least % 10, " or newer");
  expect_error(
      errc::no_device, [] { use(second); }, "cuda:1 has compute capability 3.5", needed.c_str(),
      "MUSTER_CUDA_ARCHITECTURES");
  EXPECT_EQ(fake.live(fake_cuda_contexts), 0U) << "its memory is others'";
}

TEST(CudaDeviceAlone, OneWithoutRoomForAContextIsNamedWithWhatItHas) {
  if (!test::runs_alone({"FAKE_CUDA_FAIL=cuDevicePrimaryCtxRetain:2:0", "FAKE_CUDA_MEMORY=1073741824"})) return;
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "a real device is not full when it is to be";
  expect_error(errc::out_of_memory, [] { use(second); }, "cuda:1", "1.0 GiB", "no room for this process's context");
  use(second);  // there is room now
}

TEST(CudaDeviceAlone, OneThatCannotBeOpenedLeavesNothingBehindAndIsOpenedOnceItCan) {
  if (!test::runs_alone({"FAKE_CUDA_FAIL=cuModuleLoadData:2:0"})) return;
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  expect_error(errc::out_of_memory, [] { use(first); }, "cuModuleLoadData");
  EXPECT_EQ(fake.stale(), 0U) << "its streams go before its context does";
  EXPECT_EQ(fake.live(fake_cuda_streams), 0U);
  EXPECT_EQ(fake.live(fake_cuda_contexts), 0U);
  const auto driver = cuda_driver::load();
  CUcontext left = nullptr;
  driver->context_get(&left);
  EXPECT_EQ(left, nullptr) << "the thread has the context that it had: none";
  use(first);
}

// The second's stream waits for a gate that is opened a while after the first one's failure is known.
TEST(CudaDeviceAlone, AllAreWaitedForAlthoughOneIsLost) {
  if (!test::runs_alone({})) return;
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  struct gate {
    std::atomic<bool> is_open = false;
    std::atomic<bool> is_passed = false;
  };
  static gate the_gate;
  use(first);
  use(second);
  const auto well = cuda_device::open(second);
  {
    const cuda_device::scope current(*well);
    const auto pass = [](void*) {
      the_gate.is_open.wait(false);
      the_gate.is_passed = true;
    };
    well->driver().stream_host_function(well->compute().handle(), pass, nullptr);
  }
  break_down(*cuda_device::open(first));
  const std::jthread opener([] {
    for (int times = 0; times < 2000; ++times) std::this_thread::yield();
    the_gate.is_open = true;
    the_gate.is_open.notify_all();
  });
  expect_error(errc::device_lost, [] { detail::cuda_devices::of_program().synchronize(); }, " on cuda:0 failed");
  EXPECT_TRUE(the_gate.is_passed);
}

class CudaDevice : public test::gpu_test {};

TEST_F(CudaDevice, AFailedCallNamesTheDeviceInWhoseContextItWasMade) {
  const auto here = cuda_device::open(first);
  const auto fails_on = [&](const char* where) {
    expect_error(
        errc::invalid_argument, [&] { here->driver().address_free(4096, 12); }, "cuMemAddressFree(4096, 12)", where,
        " failed in process ");
  };
  const cuda_device::scope current(*here);
  fails_on(" on cuda:0 failed");
  if (cuda_device::count() > 1) {
    const cuda_device::scope other(*cuda_device::open(second));
    fails_on(" on cuda:1 failed");
  }
  fails_on(" on cuda:0 failed");
}

TEST_F(CudaDevice, OutsideOfAnyContextNoneIsNamed) {
  const auto here = cuda_device::open(first);
  try {
    here->driver().address_free(4096, 12);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& found) {
    EXPECT_THAT(found.what(), testing::Not(testing::HasSubstr("cuda:")));
  }
}

}  // namespace
}  // namespace muster::cuda_device_test
