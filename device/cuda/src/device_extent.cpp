// SPDX-License-Identifier: BSL-1.0
#include "device_extent.hpp"

#include <unistd.h>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/system_call.hpp>

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

bool has(const cuda_driver& driver, CUdevice device, CUdevice_attribute what) {
  int found = 0;
  driver.device_attribute(&found, what, device);
  return found != 0;
}

[[noreturn]] void throw_corrupted(const unique_fd& descriptor, std::size_t bytes, const std::string& why) {
  throw error(errc::corrupted, text("descriptor ", descriptor.get(), " was sent as ", text_of_bytes(bytes),
                                    " of a device's memory, but ", why, "; whoever sent it misbehaves"));
}

std::string says_not(CUresult result) {
  return text("the driver says that it is not (code ", static_cast<int>(result), ")");
}

// Read once: others can write there.
CUipcMemHandle read_handle(const unique_fd& file, std::size_t bytes) {
  CUipcMemHandle found{};
  const auto read = [](int fd, void* to, std::size_t count, off_t offset) { return ::pread(fd, to, count, offset); };
  const auto got = system_call("pread", read, file.get(), static_cast<void*>(&found), sizeof found, off_t{0});
  if (got != static_cast<ssize_t>(sizeof found)) throw_corrupted(file, bytes, text("it holds ", got, " bytes"));
  return found;
}

}  // namespace

sharing_means sharing_means_of(const cuda_driver& driver, CUdevice device) {
  if (has(driver, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
      has(driver, device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)) {
    return sharing_means::descriptor;
  }
  return has(driver, device, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED) ? sharing_means::handle : sharing_means::none;
}

// What the driver gives as a whole has pages of 2 MiB from that size on, and then shares them with nothing else.
std::size_t device_extent::granularity(const cuda_driver& driver, CUdevice device, sharing_means means) {
  if (means != sharing_means::descriptor) return std::size_t{2} << 20U;
  const auto wanted = shareable_memory(device);
  std::size_t found = 0;
  driver.memory_granularity(&found, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  return found;
}

device_extent::device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes, sharing_means means)
    : driver_(driver), bytes_(bytes), means_(means) {
  if (means != sharing_means::descriptor) {
    driver.block_allocate(&address_, bytes);
    return;
  }
  const auto wanted = shareable_memory(device);
  driver.memory_create(&handle_, bytes, &wanted, 0);
  has_handle_ = true;
  map(device);
}

device_extent::device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes, sharing_means means,
                             const unique_fd& descriptor)
    : driver_(driver), bytes_(bytes), means_(means) {
  if (means == sharing_means::handle) {
    open(descriptor);
  } else {
    import(descriptor);
    map(device);
  }
}

void device_extent::import(const unique_fd& descriptor) {
  const auto value = static_cast<std::intptr_t>(descriptor.get());
  auto* const number = reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr): as the driver takes it
  const auto result = driver_.memory_import.attempt(&handle_, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE) {
    throw_corrupted(descriptor, bytes_, says_not(result));
  }
  if (result != CUDA_SUCCESS) {
    driver_.memory_import(&handle_, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);  // throws what it means
  }
  has_handle_ = true;
}

// Of a process that has ended, the driver does not say the same everywhere: who asks knows whether it has.
void device_extent::open(const unique_fd& file) {
  const auto handle = read_handle(file, bytes_);
  const auto result = driver_.block_open.attempt(&address_, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  switch (result) {
    case CUDA_SUCCESS: is_opened_ = true; return;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE: throw_corrupted(file, bytes_, says_not(result));
    case CUDA_ERROR_MAP_FAILED:
      throw error(errc::peer_lost, text(text_of_bytes(bytes_), " of another process's memory cannot be opened: ",
                                        "the driver says that they are not there any more"));
    default: driver_.block_open(&address_, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);  // throws what it means
  }
  is_opened_ = true;
}

// The destructor is not called when a constructor throws.
void device_extent::map(CUdevice device) {
  try {
    driver_.address_reserve(&address_, bytes_, 0, 0, 0);
    driver_.memory_map(address_, bytes_, 0, handle_, 0);
    is_mapped_ = true;
    let_reach(device);
  } catch (...) {
    release();
    throw;
  }
}

void device_extent::let_reach(CUdevice device) const {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  driver_.memory_set_access(address_, bytes_, &access, 1);
}

device_extent::~device_extent() { release(); }

// What fails here, failed because the context is gone, and all of this with it.
void device_extent::release() noexcept {
  if (means_ != sharing_means::descriptor) {
    if (address_ == 0) return;
    static_cast<void>(is_opened_ ? driver_.block_close.attempt(address_) : driver_.block_free.attempt(address_));
    return;
  }
  if (is_mapped_) static_cast<void>(driver_.memory_unmap.attempt(address_, bytes_));
  if (address_ != 0) static_cast<void>(driver_.address_free.attempt(address_, bytes_));
  if (has_handle_) static_cast<void>(driver_.memory_release.attempt(handle_));
}

unique_fd device_extent::descriptor() const {
  if (means_ == sharing_means::descriptor) {
    int descriptor = -1;
    driver_.memory_export(&descriptor, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return unique_fd(descriptor);
  }
  CUipcMemHandle handle{};
  driver_.block_handle(&handle, address_);
  auto file = make_memfd("muster-device-memory", sizeof handle);
  const auto write = [](int fd, const void* from, std::size_t count, off_t offset) {
    return ::pwrite(fd, from, count, offset);
  };
  system_call("pwrite", write, file.get(), static_cast<const void*>(&handle), sizeof handle, off_t{0});
  return file;
}

// What is mapped is opened piece by piece; what is allocated as a whole, all of the device's at once.
void device_extent::open_to(CUdevice peer, CUcontext own) const {
  const scoped_lock lock(mutex_);
  if (!open_to_.insert(peer).second) return;
  try {
    if (means_ == sharing_means::descriptor)
      let_reach(peer);
    else
      static_cast<void>(driver_.context_reach.attempt(own, 0));
  } catch (const error& failure) {
    if (failure.code() == errc::device_lost) throw;
  }
}

}  // namespace muster::detail
