// SPDX-License-Identifier: BSL-1.0
// Functions of the driver: memory and addresses.
#include "call.hpp"

using namespace fake_cuda;

namespace {

void require_pinned(const CUmemAllocationProp& properties) {
  require(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE,
          CUDA_ERROR_INVALID_VALUE);
}

bool is_whole(std::size_t bytes) { return bytes != 0 && bytes % granularity == 0; }

void write_attribute(void* to, CUpointer_attribute which, const address_space::range& found, CUdeviceptr pointer) {
  const bool is_device = found.where == address_space::place::device;
  const auto write = [to](auto value) { *static_cast<decltype(value)*>(to) = value; };
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return write(static_cast<unsigned>(is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return write(pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(!is_device, CUDA_ERROR_INVALID_VALUE);
      return write(reinterpret_cast<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return write(is_device ? the_machine().devices().seen_as(found.physical) : current_context()->device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return write(static_cast<CUdeviceptr>(found.first));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return write(found.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED: return write(true);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return write(false);
    case CU_POINTER_ATTRIBUTE_CONTEXT: return write(CUcontext{});  // memory that is mapped belongs to none
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return write(static_cast<std::uint64_t>(is_device ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0));
    default: throw failure{CUDA_ERROR_NOT_SUPPORTED};
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetInfo(std::size_t* free, std::size_t* total) {
  return call_in_context("cuMemGetInfo", [&](const std::shared_ptr<context>& here) {
    auto& all = the_machine();
    *total = all.devices().memory_bytes();
    const auto used = all.ledger().used(here->physical);
    *free = used < *total ? *total - used : 0;
  });
}

CUresult CUDAAPI cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags) {
  return call("cuMemGetAllocationGranularity", [&] {
    require_pinned(*properties);
    static_cast<void>(the_machine().devices().physical(properties->location.id));
    *bytes = granularity;
  });
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                             const CUmemAllocationProp* properties, unsigned long long flags) {
  return call("cuMemCreate", [&] {
    auto& all = the_machine();
    require_pinned(*properties);
    require(is_whole(bytes) && flags == 0, CUDA_ERROR_INVALID_VALUE);
    const bool exportable = properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    require(all.devices().has_virtual_memory() && (!exportable || all.devices().has_descriptors()),
            CUDA_ERROR_NOT_SUPPORTED);
    require(exportable || properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
    const auto physical = all.devices().physical(properties->location.id);
    *handle = all.allocations.add(
        std::make_shared<allocation>(all.ledger(), physical, bytes, all.devices().memory_bytes(), exportable));
  });
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call("cuMemRelease", [&] { the_machine().allocations.remove(handle, CUDA_ERROR_INVALID_VALUE); });
}

CUresult CUDAAPI cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type, unsigned long long flags) {
  return call("cuMemExportToShareableHandle", [&] {
    const auto found = the_machine().allocations.find(handle, CUDA_ERROR_INVALID_VALUE);
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && found->is_exportable() && flags == 0,
            CUDA_ERROR_INVALID_VALUE);
    *static_cast<int*>(shared) = found->duplicate();
  });
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                                CUmemAllocationHandleType type) {
  return call("cuMemImportFromShareableHandle", [&] {
    auto& all = the_machine();
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_INVALID_VALUE);
    require(all.devices().has_descriptors(), CUDA_ERROR_NOT_SUPPORTED);
    const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(shared));
    auto imported = std::make_shared<allocation>(all.ledger(), descriptor);
    static_cast<void>(all.devices().seen_as(imported->physical()));
    *handle = all.allocations.add(std::move(imported));
  });
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* first, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                                     unsigned long long flags) {
  return call("cuMemAddressReserve", [&] {
    require(the_machine().devices().has_virtual_memory(), CUDA_ERROR_NOT_SUPPORTED);
    require(is_whole(bytes) && flags == 0 && (alignment & (alignment - 1)) == 0, CUDA_ERROR_INVALID_VALUE);
    *first = the_machine().space.reserve(bytes, alignment > granularity ? alignment : granularity);
  });
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr first, std::size_t bytes) {
  return call("cuMemAddressFree", [&] { the_machine().space.free(first, bytes); });
}

CUresult CUDAAPI cuMemMap(CUdeviceptr first, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
  return call("cuMemMap", [&] {
    require(is_whole(bytes) && first % granularity == 0 && offset == 0 && flags == 0, CUDA_ERROR_INVALID_VALUE);
    the_machine().space.map(first, bytes, the_machine().allocations.find(handle, CUDA_ERROR_INVALID_VALUE));
  });
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr first, std::size_t bytes) {
  return call("cuMemUnmap", [&] { the_machine().space.unmap(first, bytes); });
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr first, std::size_t bytes, const CUmemAccessDesc* whom, std::size_t count) {
  return call("cuMemSetAccess", [&] {
    auto& all = the_machine();
    for (std::size_t at = 0; at < count; ++at) {
      require(whom[at].location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
      const auto physical = all.devices().physical(whom[at].location.id);
      all.space.set_access(first, bytes, physical, whom[at].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                           all.devices().are_peers());
    }
  });
}

CUresult CUDAAPI cuMemHostRegister(void* first, std::size_t bytes, unsigned int) {
  return call_in_context("cuMemHostRegister", [&](const auto&) {
    require(first != nullptr && bytes != 0, CUDA_ERROR_INVALID_VALUE);
    the_machine().space.register_host(reinterpret_cast<std::uintptr_t>(first), bytes);
  });
}

CUresult CUDAAPI cuMemHostUnregister(void* first) {
  return call_in_context("cuMemHostUnregister", [&](const auto&) {
    the_machine().space.unregister_host(reinterpret_cast<std::uintptr_t>(first));
  });
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* found, void* host, unsigned int flags) {
  return call_in_context("cuMemHostGetDevicePointer", [&](const std::shared_ptr<context>& here) {
    const auto address = reinterpret_cast<CUdeviceptr>(host);
    const auto range = the_machine().space.find(address, 1, here->physical);
    require(flags == 0 && range.where == address_space::place::registered, CUDA_ERROR_INVALID_VALUE);
    *found = address;
  });
}

CUresult CUDAAPI cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return call_in_context("cuPointerGetAttribute", [&](const auto&) {
    const auto found = the_machine().space.find(pointer, 1, address_space::any_device);
    require(found.where != address_space::place::elsewhere, CUDA_ERROR_INVALID_VALUE);
    write_attribute(value, attribute, found, pointer);
  });
}
}
