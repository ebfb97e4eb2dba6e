// SPDX-License-Identifier: BSL-1.0
// That the fake driver does what tests over it rely on. Nothing here is asked of a real one.
#include "fake_cuda.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <muster/cuda/driver.hpp>

#include "../device/cuda_support.hpp"
#include "../device/device_support.hpp"

namespace muster::fake_cuda_test {
namespace {

using test::cuda_bench;
using test::expect_error;

constexpr std::size_t block_bytes = std::size_t{2} << 20U;

class FakeCuda : public testing::Test {
protected:
  void SetUp() override {
    if (!fake_.is_there()) GTEST_SKIP() << "the driver of this process is a real one, or there is none";
  }

  const test::fake_cuda fake_;
};

std::array<char, 16> uuid_of(const cuda_driver& driver, CUdevice device) {
  CUuuid found{};
  driver.device_uuid(&found, device);
  std::array<char, 16> bytes{};
  std::memcpy(bytes.data(), found.bytes, 16);
  return bytes;
}

TEST_F(FakeCuda, ADeviceKeepsItsIdentityWhereverItIsOnTheListOfThoseSeen) {
  if (!test::runs_alone({"FAKE_CUDA_DEVICES=4", "CUDA_VISIBLE_DEVICES=2,0"})) return;
  const auto driver = cuda_driver::load();
  int count = 0;
  driver->device_count(&count);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(uuid_of(*driver, 0).back(), 2);
  EXPECT_EQ(uuid_of(*driver, 1).back(), 0);
  expect_error(errc::no_device, [&] { uuid_of(*driver, 2); }, "INVALID_DEVICE");
}

TEST_F(FakeCuda, WithoutDevicesTheDriverSaysSoAndMusterWhatToDo) {
  if (!test::runs_alone({"CUDA_VISIBLE_DEVICES="})) return;
  expect_error(
      errc::no_device, [] { static_cast<void>(cuda_driver::load()); }, "no CUDA-capable device", "use the device cpu");
  EXPECT_THAT(cuda_driver::problem().value_or(""), testing::HasSubstr("no CUDA-capable device"));
}

TEST_F(FakeCuda, HasNoMoreMemoryThanItWasGiven) {
  if (!test::runs_alone({"FAKE_CUDA_MEMORY=6291456"})) return;
  cuda_bench bench(2 * block_bytes);
  const auto& driver = bench.driver();
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle memory = 0;
  const auto make = [&](std::size_t bytes) { driver.memory_create(&memory, bytes, &wanted, 0); };
  expect_error(errc::out_of_memory, [&] { make(2 * block_bytes); }, "cuMemCreate", "OUT_OF_MEMORY");
  make(block_bytes);
  std::size_t free = 1;
  std::size_t total = 0;
  driver.memory_info(&free, &total);
  EXPECT_EQ(free, 0U);
  EXPECT_EQ(total, 3 * block_bytes);
  driver.memory_release(memory);
  driver.memory_info(&free, &total);
  EXPECT_EQ(free, block_bytes);
}

TEST_F(FakeCuda, AForkedChildOfAProcessThatUsedItCannot) {
  const auto driver = cuda_driver::load();
  const auto child = ::fork();
  if (child == 0) {
    int count = 0;
    ::_exit(driver->device_count.attempt(&count));
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), CUDA_ERROR_NOT_INITIALIZED);
}

TEST_F(FakeCuda, AFailureOnTheDeviceBreaksTheContextForGood) {
  if (!test::runs_alone({})) return;
  cuda_bench bench;
  const auto& driver = bench.driver();
  const auto where = bench.take(16);
  fake_.fail("memset", CUDA_ERROR_ILLEGAL_ADDRESS, 1);
  driver.set_async_8(where, 1, 16, bench.stream());
  driver.stream_synchronize(bench.stream());
  driver.set_async_8(where, 2, 16, bench.stream());
  expect_error(
      errc::device_lost, [&] { driver.stream_synchronize(bench.stream()); }, "ILLEGAL_ADDRESS", "start a new process");
  expect_error(errc::device_lost, [&] { driver.set_async_8(where, 3, 16, bench.stream()); });
  CUevent event = nullptr;
  EXPECT_EQ(driver.event_create.attempt(&event, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeCuda, ACallThatIsToldToFailDoesSoOnce) {
  cuda_bench bench;
  std::size_t free = 0;
  std::size_t total = 0;
  fake_.fail("cuMemGetInfo", CUDA_ERROR_OUT_OF_MEMORY, 1);
  bench.driver().memory_info(&free, &total);
  expect_error(errc::out_of_memory, [&] { bench.driver().memory_info(&free, &total); });
  bench.driver().memory_info(&free, &total);
}

TEST_F(FakeCuda, KnowsADestroyedContext) {
  if (!test::runs_alone({})) return;
  const auto driver = cuda_driver::load();
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  driver->context_retain(&context, 0);
  driver->context_set(context);
  driver->stream_create(&stream, 0);
  EXPECT_EQ(fake_.live(fake_cuda_streams), 1U);
  driver->context_release(0);
  EXPECT_EQ(fake_.live(fake_cuda_streams), 0U);
  expect_error(errc::device_lost, [&] { driver->stream_synchronize(nullptr); }, "CONTEXT_IS_DESTROYED");
  driver->context_set(nullptr);
}

TEST_F(FakeCuda, TheHostCannotTouchADevicesMemory) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  cuda_bench bench;
  const auto where = bench.take(16);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(where) = 1, "");
}

TEST_F(FakeCuda, KeepsCountOfWhatIsHeld) {
  if (!test::runs_alone({})) return;
  const auto counts = [this] {
    return std::array{fake_.live(fake_cuda_contexts),    fake_.live(fake_cuda_streams),
                      fake_.live(fake_cuda_events),      fake_.live(fake_cuda_modules),
                      fake_.live(fake_cuda_allocations), fake_.live(fake_cuda_reservations),
                      fake_.live(fake_cuda_mappings),    fake_.live(fake_cuda_registrations)};
  };
  using held = std::array<std::size_t, 8>;
  const auto before = counts();
  EXPECT_EQ(before, held{});
  {
    const cuda_bench bench;
    std::uint64_t word = 0;
    bench.driver().host_register(&word, sizeof(word), 0);
    EXPECT_EQ(counts(), (held{1, 1, 0, 1, 0, 1, 1, 1}));
    expect_error(errc::invalid_argument, [&] { bench.driver().host_register(&word, 4, 0); }, "ALREADY_REGISTERED");
    bench.driver().host_unregister(&word);
    expect_error(errc::invalid_argument, [&] { bench.driver().host_unregister(&word); }, "NOT_REGISTERED");
  }
  EXPECT_EQ(counts(), before);
}

TEST_F(FakeCuda, PageableMemoryIsReadBeforeACopyReturnsAndRegisteredMemoryWhenTheStreamIsThere) {
  cuda_bench bench;
  const auto& driver = bench.driver();
  std::array<std::uint64_t, 3> words = {0, 1, 1};
  auto& gate = words[0];
  auto& registered = words[1];
  std::uint64_t pageable = 1;
  driver.host_register(words.data(), sizeof(words), 0);
  const auto where = bench.take(16);
  driver.stream_wait_value(bench.stream(), reinterpret_cast<CUdeviceptr>(&gate), 1, CU_STREAM_WAIT_VALUE_EQ);
  driver.copy_async(where, reinterpret_cast<CUdeviceptr>(&pageable), 8, bench.stream());
  driver.copy_async(where + 8, reinterpret_cast<CUdeviceptr>(&registered), 8, bench.stream());
  pageable = 2;
  registered = 2;
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  std::array<std::uint64_t, 2> found{};
  bench.fetch(std::as_writable_bytes(std::span(found)), where);
  EXPECT_THAT(found, testing::ElementsAre(1, 2));
  driver.host_unregister(words.data());
}

TEST_F(FakeCuda, StreamsCallNoFunctionOfTheDriver) {
  cuda_bench bench;
  struct answer {
    const cuda_driver& driver;
    CUresult found = CUDA_SUCCESS;
  } asked{bench.driver()};
  const auto ask = [](void* argument) {
    auto& what = *static_cast<answer*>(argument);
    int count = 0;
    what.found = what.driver.device_count.attempt(&count);
  };
  bench.driver().stream_host_function(bench.stream(), ask, &asked);
  bench.driver().stream_synchronize(bench.stream());
  EXPECT_EQ(asked.found, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(FakeCuda, ACallbackIsCalledAlsoAfterAFailureAndIsToldOfIt) {
  if (!test::runs_alone({})) return;
  cuda_bench bench;
  std::array<CUresult, 2> told = {CUDA_ERROR_UNKNOWN, CUDA_SUCCESS};
  const auto tell = [](CUstream, CUresult status, void* where) { *static_cast<CUresult*>(where) = status; };
  std::uint64_t gate = 0;
  bench.driver().host_register(&gate, sizeof(gate), 0);
  fake_.fail("memset", CUDA_ERROR_ILLEGAL_ADDRESS);
  bench.driver().stream_callback(bench.stream(), tell, told.data(), 0);
  bench.driver().stream_wait_value(bench.stream(), reinterpret_cast<CUdeviceptr>(&gate), 1, CU_STREAM_WAIT_VALUE_EQ);
  bench.driver().set_async_8(bench.take(16), 1, 16, bench.stream());
  bench.driver().stream_callback(bench.stream(), tell, &told[1], 0);
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  expect_error(errc::device_lost, [&] { bench.driver().stream_synchronize(bench.stream()); });
  EXPECT_THAT(told, testing::ElementsAre(CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_ADDRESS));
}

TEST_F(FakeCuda, WhatADriverDoesNotHaveItRefuses) {
  if (!test::runs_alone({"FAKE_CUDA_DESCRIPTORS=0", "FAKE_CUDA_IPC=0", "FAKE_CUDA_PEERS=0"})) return;
  cuda_bench bench(block_bytes);
  const auto& driver = bench.driver();
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_EQ(driver.memory_create.attempt(&memory, block_bytes, &wanted, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUdeviceptr block = 0;
  CUipcMemHandle handle{};
  driver.block_allocate(&block, 10);
  EXPECT_EQ(fake_.live(fake_cuda_blocks), 1U);
  EXPECT_EQ(driver.block_handle.attempt(&handle, block), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(driver.block_free.attempt(block + 1), CUDA_ERROR_INVALID_VALUE) << "not where it begins";
  driver.block_free(block);
  int reaches = 1;
  driver.device_reaches(&reaches, 0, 1);
  EXPECT_EQ(reaches, 0);
}

TEST_F(FakeCuda, MemoryGoesWithItsContext) {
  if (!test::runs_alone({})) return;
  const auto driver = cuda_driver::load();
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  driver->context_retain(&context, 0);
  driver->context_set(context);
  driver->block_allocate(&block, block_bytes);
  driver->context_release(0);
  EXPECT_EQ(fake_.live(fake_cuda_blocks), 0U);
  EXPECT_EQ(fake_.live(fake_cuda_mappings), 0U);
  driver->context_set(nullptr);
}

TEST_F(FakeCuda, TheDefaultStreamWaitsForBlockingStreamsOnly) {
  cuda_bench bench;
  const auto& driver = bench.driver();
  std::uint64_t gate = 0;
  driver.host_register(&gate, sizeof(gate), 0);
  const auto where = reinterpret_cast<CUdeviceptr>(&gate);
  CUstream blocking = nullptr;
  driver.stream_create(&blocking, CU_STREAM_DEFAULT);
  driver.stream_wait_value(bench.stream(), where, 2, CU_STREAM_WAIT_VALUE_GEQ);
  driver.set_async_8(bench.take(16), 0, 16, nullptr);
  driver.stream_synchronize(nullptr);
  driver.stream_wait_value(blocking, where, 1, CU_STREAM_WAIT_VALUE_GEQ);
  driver.set_async_8(bench.take(16), 0, 16, nullptr);
  EXPECT_EQ(driver.stream_query.attempt(nullptr), CUDA_ERROR_NOT_READY);
  __atomic_store_n(&gate, 2, __ATOMIC_RELEASE);
  driver.stream_synchronize(nullptr);
  driver.stream_synchronize(bench.stream());
  driver.stream_destroy(blocking);
  driver.host_unregister(&gate);
}

}  // namespace
}  // namespace muster::fake_cuda_test
