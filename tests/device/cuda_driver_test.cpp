// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/driver.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

#include <muster/cuda/cuda_error.hpp>

#include "device_support.hpp"

namespace muster::cuda_driver_test {
namespace {

using test::expect_error;
using testing::HasSubstr;

constexpr std::size_t block_bytes = std::size_t{2} << 20U;

// A context, current in this thread; a stream; and memory that is mapped.
class CudaDriver : public testing::Test {
protected:
  void SetUp() override {
    if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
    driver_ = cuda_driver::load();
    driver_->context_retain(&context_, 0);
    driver_->context_set(context_);
    driver_->stream_create(&stream_, CU_STREAM_NON_BLOCKING);
  }

  void TearDown() override {
    if (driver_ == nullptr) return;
    static_cast<void>(driver_->stream_destroy.attempt(stream_));
    driver_->context_set(nullptr);
    driver_->context_release(0);
  }

  static CUmemAllocationProp properties() {
    CUmemAllocationProp made{};
    made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    made.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    made.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return made;
  }

  CUdeviceptr map(CUmemGenericAllocationHandle handle) {
    CUdeviceptr first = 0;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver_->address_reserve(&first, block_bytes, 0, 0, 0);
    driver_->memory_map(first, block_bytes, 0, handle, 0);
    driver_->memory_set_access(first, block_bytes, &access, 1);
    return first;
  }

  void unmap(CUdeviceptr first) {
    driver_->memory_unmap(first, block_bytes);
    driver_->address_free(first, block_bytes);
  }

  std::shared_ptr<const cuda_driver> driver_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(CudaDriver, MemoryIsSharedByDescriptorAndOutlivesItsMaker) {
  CUmemGenericAllocationHandle made = 0;
  CUmemGenericAllocationHandle imported = 0;
  const auto wanted = properties();
  driver_->memory_create(&made, block_bytes, &wanted, 0);
  int descriptor = -1;
  driver_->memory_export(&descriptor, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  driver_->memory_import(&imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  ::close(descriptor);
  const auto one = map(made);
  const auto other = map(imported);
  driver_->set_async_8(one, 42, block_bytes, stream_);
  driver_->stream_synchronize(stream_);
  unmap(one);
  driver_->memory_release(made);
  std::vector<unsigned char> found(block_bytes);
  driver_->copy_async(reinterpret_cast<CUdeviceptr>(found.data()), other, block_bytes, stream_);
  driver_->stream_synchronize(stream_);
  EXPECT_THAT(found, testing::Each(42));
  unmap(other);
  driver_->memory_release(imported);
}

TEST_F(CudaDriver, WhatIsQueuedRunsInOrderAndEventsTellHowFar) {
  std::uint64_t word = 0;
  CUdeviceptr on_device = 0;
  CUevent event = nullptr;
  driver_->host_register(&word, sizeof(word), CU_MEMHOSTREGISTER_PORTABLE);
  driver_->host_device_pointer(&on_device, &word, 0);
  driver_->event_create(&event, CU_EVENT_DISABLE_TIMING);
  driver_->stream_wait_value(stream_, on_device, 7, CU_STREAM_WAIT_VALUE_GEQ);
  driver_->event_record(event, stream_);
  EXPECT_EQ(driver_->event_query.attempt(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver_->stream_query.attempt(stream_), CUDA_ERROR_NOT_READY);
  __atomic_store_n(&word, 7, __ATOMIC_RELEASE);
  driver_->event_synchronize(event);
  driver_->stream_write_value(stream_, on_device, 8, 0);
  driver_->stream_synchronize(stream_);
  EXPECT_EQ(__atomic_load_n(&word, __ATOMIC_ACQUIRE), 8U);
  driver_->event_destroy(event);
  driver_->host_unregister(&word);
}

TEST_F(CudaDriver, AStreamWaitsForAnothersEvent) {
  CUstream other = nullptr;
  CUevent event = nullptr;
  std::vector<int> order;
  driver_->stream_create(&other, CU_STREAM_NON_BLOCKING);
  driver_->event_create(&event, CU_EVENT_DISABLE_TIMING);
  const auto append = [](void* to) { static_cast<std::vector<int>*>(to)->push_back(0); };
  const auto count = [](void* to) { static_cast<std::vector<int>*>(to)->push_back(1); };
  driver_->stream_host_function(stream_, append, &order);
  driver_->event_record(event, stream_);
  driver_->stream_wait_event(other, event, 0);
  driver_->stream_host_function(other, count, &order);
  driver_->stream_synchronize(other);
  EXPECT_THAT(order, testing::ElementsAre(0, 1));
  driver_->event_destroy(event);
  driver_->stream_destroy(other);
}

TEST_F(CudaDriver, AFailedCallNamesItselfItsArgumentsTheProcessAndTheCause) {
  expect_error(
      errc::invalid_argument, [&] { driver_->address_free(4096, 12); }, "cuMemAddressFree(4096, 12)",
      std::to_string(::getpid()).c_str(), "CUDA_ERROR_INVALID_VALUE");
}

TEST_F(CudaDriver, WithoutACurrentContextCallsAreRefused) {
  driver_->context_set(nullptr);
  std::size_t free = 0;
  std::size_t total = 0;
  expect_error(
      errc::invalid_argument, [&] { driver_->memory_info(&free, &total); }, "INVALID_CONTEXT", "no context is current");
  driver_->context_set(context_);
}

TEST(WithoutADriver, LoadingItSaysWhatToDo) {
  if (auto* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    ::dlclose(library);
    GTEST_SKIP() << "there is a driver";
  }
  expect_error(
      errc::no_device, [] { static_cast<void>(cuda_driver::load()); }, "libcuda.so.1", "NVIDIA GPU",
      "use the device cpu");
  EXPECT_THAT(cuda_driver::problem().value_or(""), HasSubstr("libcuda.so.1"));
}

TEST(CudaError, GoesByWhatCanBeDone) {
  EXPECT_EQ(detail::errc_of(CUDA_ERROR_OUT_OF_MEMORY), errc::out_of_memory);
  EXPECT_EQ(detail::errc_of(CUDA_ERROR_ILLEGAL_ADDRESS), errc::device_lost);
  EXPECT_EQ(detail::errc_of(CUDA_ERROR_NO_DEVICE), errc::no_device);
  EXPECT_EQ(detail::errc_of(CUDA_ERROR_INVALID_VALUE), errc::invalid_argument);
  EXPECT_EQ(detail::errc_of(static_cast<CUresult>(998)), errc::invalid_argument);
  EXPECT_EQ(detail::name_of(static_cast<CUresult>(998)), "an unknown error");
  expect_error(
      errc::no_device, [] { detail::throw_cuda_error(CUDA_ERROR_NO_BINARY_FOR_GPU, "cuModuleLoadData", ""); },
      "MUSTER_CUDA_ARCHITECTURES");
}

}  // namespace
}  // namespace muster::cuda_driver_test
