// SPDX-License-Identifier: BSL-1.0
#include "device_extent.hpp"

#include <cstdint>

#include <muster/base/error.hpp>

namespace muster::detail {

namespace {

CUmemAllocationProp shareable_memory(CUdevice device) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device;
  return wanted;
}

}  // namespace

std::size_t device_extent::granularity(const cuda_driver& driver, CUdevice device) {
  const auto wanted = shareable_memory(device);
  std::size_t found = 0;
  driver.memory_granularity(&found, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  return found;
}

device_extent::device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes)
    : driver_(driver), bytes_(bytes) {
  const auto wanted = shareable_memory(device);
  driver.memory_create(&handle_, bytes, &wanted, 0);
  has_handle_ = true;
  map(device);
}

device_extent::device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes, const unique_fd& descriptor)
    : driver_(driver), bytes_(bytes) {
  auto* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get()));
  const auto result = driver.memory_import.attempt(&handle_, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_INVALID_HANDLE) {
    driver.memory_import(&handle_, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);  // throws what it means
  } else if (result != CUDA_SUCCESS) {
    throw error(errc::corrupted, text("descriptor ", descriptor.get(), " was sent as ", text_of_bytes(bytes),
                                      " of a device's memory, but the driver says that it is not (code ",
                                      static_cast<int>(result), "); whoever sent it misbehaves"));
  }
  has_handle_ = true;
  map(device);
}

// The destructor is not called when a constructor throws.
void device_extent::map(CUdevice device) {
  try {
    driver_.address_reserve(&address_, bytes_, 0, 0, 0);
    driver_.memory_map(address_, bytes_, 0, handle_, 0);
    is_mapped_ = true;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver_.memory_set_access(address_, bytes_, &access, 1);
  } catch (...) {
    release();
    throw;
  }
}

device_extent::~device_extent() { release(); }

// What fails here, failed because the context is gone, and all of this with it.
void device_extent::release() noexcept {
  if (is_mapped_) static_cast<void>(driver_.memory_unmap.attempt(address_, bytes_));
  if (address_ != 0) static_cast<void>(driver_.address_free.attempt(address_, bytes_));
  if (has_handle_) static_cast<void>(driver_.memory_release.attempt(handle_));
}

unique_fd device_extent::descriptor() const {
  int descriptor = -1;
  driver_.memory_export(&descriptor, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  return unique_fd(descriptor);
}

}  // namespace muster::detail
