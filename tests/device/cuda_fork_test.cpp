// SPDX-License-Identifier: BSL-1.0
// What a forked child does with its parent's tensors on a GPU: nothing, and it is told so.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/sanitizer.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/module.hpp>
#include <muster/cuda/pinned_memory.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/copy_lane.hpp>
#include <muster/device/dlpack.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "cuda_support.hpp"
#include "gpu_fixture.hpp"
#include "kernel_image.hpp"
#include "processes.hpp"

namespace muster::cuda_fork_test {
namespace {

constexpr auto gpu = device::cuda(0);

class CudaFork : public test::gpu_test {};

bool holds_in_child(const std::function<bool()>& what) {
  return test::spawn(1, [&](std::size_t) { return what() ? 0 : 1; })->wait(0) == exit_status::exited(0);
}

bool is_refused(const std::function<void()>& call) {
  try {
    call();
    return false;
  } catch (const error& failure) {
    return failure.code() == errc::forked;
  }
}

bool sleeps(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  in >> number >> name >> state;
  return state == "S";
}

TEST_F(CudaFork, AChildIsToldThatTensorsAreItsParents) {
  const auto there = tensor::full<float>({100}, 2, gpu);
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { scale(there, 2); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([&] { static_cast<void>(there.to(device::cpu())); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([] { static_cast<void>(tensor::zeros<float>({1}, gpu)); }); }));
  EXPECT_TRUE(holds_in_child([&] { return is_refused([] { static_cast<void>(cuda_device::count()); }); }));
  EXPECT_TRUE(equal(there, tensor::full<float>({100}, 2.0F)));
}

TEST_F(CudaFork, WhatAChildDropsItDropsWithoutACallOfTheDriver) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the machine's own driver does not say how often it is called";
  const auto device = cuda_device::open(gpu);
  auto there = std::optional(tensor::full<float>({100}, 2, gpu));
  auto lane = device->make_copy_lane();
  auto kernels = std::optional<cuda_module>(std::in_place, *device, detail::kernel_image());
  auto pinned = std::optional<pinned_memory>(std::in_place, *device, tensor::zeros<float>({1U << 16U}));
  EXPECT_TRUE(holds_in_child([&] {
    pinned.reset();
    kernels.reset();
    lane.reset();
    there.reset();
    return fake.forked_calls() == 0;
  }));
}

TEST(CudaForkAlone, AChildOfAProcessThatFoundNoDriverHasDevicesOfItsOwn) {
  if (!test::runs_alone({"FAKE_CUDA_FAIL=cuInit:3:0"})) return;
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  EXPECT_THROW(static_cast<void>(cuda_device::open(gpu)), error);
  EXPECT_TRUE(holds_in_child([] {
    const auto device = cuda_device::open(gpu);
    device->synchronize();
    return cuda_device::open(gpu) == device && cuda_device::count() != 0;
  }));
}

// Sleeps, as the stand-in has it, or asks the device again and again, as drivers do.
bool waits(std::thread& thread, pid_t id) {
  clockid_t clock{};
  timespec used{};
  const auto is_known =
      ::pthread_getcpuclockid(thread.native_handle(), &clock) == 0 && ::clock_gettime(clock, &used) == 0;
  return sleeps(id) || (is_known && (used.tv_sec > 0 || used.tv_nsec > 200'000'000));
}

// The thread has the locks of the device's memory until the device goes on.
TEST_F(CudaFork, AChildDropsThemWithoutTheLocksThatAThreadOfItsParentHad) {
  if (!test::runs_alone({})) return;
  const auto device = cuda_device::open(gpu);
  auto there = std::optional(tensor::full<float>({100}, 2, gpu));
  auto theirs = std::optional(from_dlpack(to_dlpack(*there)));
  static_cast<void>(tensor::empty<float>({std::size_t{1} << 25U}, gpu));  // an extent that can be given back
  const auto gate = tensor::zeros<std::uint64_t>({1U << 15U});
  const pinned_memory pinned(*device, gate);
  {
    const cuda_device::scope current(*device);
    CUdeviceptr where = 0;
    device->driver().host_device_pointer(&where, gate.data(), 0);
    device->driver().stream_wait_value(device->compute().handle(), where, 1, CU_STREAM_WAIT_VALUE_GEQ);
  }
  std::atomic<pid_t> trimming = 0;
  std::thread trims([&] {
    trimming = ::gettid();
    device->trim();
  });
  EXPECT_TRUE(test::eventually([&] { return trimming != 0 && waits(trims, trimming); }));
  EXPECT_TRUE(holds_in_child([&] {
    theirs.reset();
    there.reset();
    return true;
  }));
  if (!is_sanitized) {  // which would take what is left to the parent for leaks
    EXPECT_TRUE(holds_in_child([]() -> bool { std::exit(0); })) << "and ends, with all devices of its parent's";
  }
  std::atomic_ref(*gate.span<std::uint64_t>().data()).store(1);
  trims.join();
  EXPECT_TRUE(equal(*there, tensor::full<float>({100}, 2.0F)));
}

}  // namespace
}  // namespace muster::cuda_fork_test
