// SPDX-License-Identifier: BSL-1.0
#pragma once

// The one place where CUDA's driver is called: found at run time, so that programs start on machines without one, and
// checked, so that a failure names the call, the device and the cause.
//
// The runtime API is not used at all: it makes contexts by itself, on device 0, wherever it is called first.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <cuda.h>

#include <muster/base/text.hpp>

#include <muster/cuda/cuda_error.hpp>

namespace muster {

namespace detail {

template <class Argument>
void print_cuda_argument(std::ostringstream& out, const char*& separator, const Argument& argument) {
  out << separator;
  separator = ", ";
  if constexpr (std::is_pointer_v<Argument>)
    out << reinterpret_cast<const void*>(argument);  // a function's, too
  else if constexpr (std::is_enum_v<Argument>)
    out << static_cast<int>(argument);
  else if constexpr (std::is_class_v<Argument>)
    out << "{…}";
  else
    out << argument;
}

}  // namespace detail

/// One function of the driver.
///
/// Thread safety: safe, as the driver is.
template <class Function>
class cuda_function;

/// One function of the driver, by the type that cuda.h declares it with.
template <class... Parameters>
class cuda_function<CUresult(Parameters...)> {
public:
  using pointer = CUresult(CUDAAPI*)(Parameters...);

  /// `name`: what the driver's library calls it, such as "cuMemAlloc_v2". `address`: where that library has it.
  cuda_function(const char* name, pointer address) noexcept : name_(name), address_(address) {}

  /// Calls it. Throws muster::error when it fails.
  void operator()(Parameters... arguments) const {
    if (const auto result = address_(arguments...); result != CUDA_SUCCESS) fail(result, arguments...);
  }
  /// Calls it, and says how that went: for failures that are expected, and for destructors.
  [[nodiscard]] CUresult attempt(Parameters... arguments) const noexcept { return address_(arguments...); }

  /// Returns what the driver's library calls the function.
  [[nodiscard]] const char* name() const noexcept { return name_; }

private:
  [[noreturn]] void fail(CUresult cause, const Parameters&... arguments) const {
    detail::text_writer out;
    [[maybe_unused]] const char* separator = "";
    (detail::print_cuda_argument(out, separator, arguments), ...);
    detail::throw_cuda_error(cause, name_, std::move(out).str());
  }

  const char* name_;
  pointer address_;
};

// Name here, name in cuda.h. The latter may be a macro for the version of the function that the Toolkit was made with.
#define MUSTER_CUDA_FUNCTIONS(X)                       \
  X(init, cuInit)                                      \
  X(driver_version, cuDriverGetVersion)                \
  X(device_count, cuDeviceGetCount)                    \
  X(device_get, cuDeviceGet)                           \
  X(device_name, cuDeviceGetName)                      \
  X(device_uuid, cuDeviceGetUuid)                      \
  X(device_memory, cuDeviceTotalMem)                   \
  X(device_attribute, cuDeviceGetAttribute)            \
  X(device_reaches, cuDeviceCanAccessPeer)             \
  X(context_retain, cuDevicePrimaryCtxRetain)          \
  X(context_release, cuDevicePrimaryCtxRelease)        \
  X(context_set, cuCtxSetCurrent)                      \
  X(context_get, cuCtxGetCurrent)                      \
  X(context_reach, cuCtxEnablePeerAccess)              \
  X(memory_info, cuMemGetInfo)                         \
  X(memory_granularity, cuMemGetAllocationGranularity) \
  X(memory_create, cuMemCreate)                        \
  X(memory_release, cuMemRelease)                      \
  X(memory_export, cuMemExportToShareableHandle)       \
  X(memory_import, cuMemImportFromShareableHandle)     \
  X(address_reserve, cuMemAddressReserve)              \
  X(address_free, cuMemAddressFree)                    \
  X(memory_map, cuMemMap)                              \
  X(memory_unmap, cuMemUnmap)                          \
  X(memory_set_access, cuMemSetAccess)                 \
  X(block_allocate, cuMemAlloc)                        \
  X(block_free, cuMemFree)                             \
  X(block_handle, cuIpcGetMemHandle)                   \
  X(block_open, cuIpcOpenMemHandle)                    \
  X(block_close, cuIpcCloseMemHandle)                  \
  X(host_register, cuMemHostRegister)                  \
  X(host_unregister, cuMemHostUnregister)              \
  X(host_device_pointer, cuMemHostGetDevicePointer)    \
  X(copy_async, cuMemcpyAsync)                         \
  X(copy_between_async, cuMemcpyPeerAsync)             \
  X(set_async_8, cuMemsetD8Async)                      \
  X(pointer_attribute, cuPointerGetAttribute)          \
  X(stream_create, cuStreamCreate)                     \
  X(stream_destroy, cuStreamDestroy)                   \
  X(stream_query, cuStreamQuery)                       \
  X(stream_synchronize, cuStreamSynchronize)           \
  X(stream_wait_event, cuStreamWaitEvent)              \
  X(stream_wait_value, cuStreamWaitValue64)            \
  X(stream_write_value, cuStreamWriteValue64)          \
  X(stream_host_function, cuLaunchHostFunc)            \
  X(stream_callback, cuStreamAddCallback)              \
  X(event_create, cuEventCreate)                       \
  X(event_destroy, cuEventDestroy)                     \
  X(event_record, cuEventRecord)                       \
  X(event_query, cuEventQuery)                         \
  X(event_synchronize, cuEventSynchronize)             \
  X(event_elapsed, cuEventElapsedTime)                 \
  X(module_load, cuModuleLoadData)                     \
  X(module_unload, cuModuleUnload)                     \
  X(module_function, cuModuleGetFunction)              \
  X(launch, cuLaunchKernel)                            \
  X(error_name, cuGetErrorName)                        \
  X(error_text, cuGetErrorString)

/// The driver of this machine.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
/// Lifetime: the library stays open until the process ends, since threads of the driver may run until then.
class cuda_driver {
public:
  /// Opens libcuda.so.1 and calls cuInit. Makes no context.
  /// Throws errc::no_device, with why and what to do, where there is no driver, it is older than this build's Toolkit
  /// needs, cuInit fails, or it finds no device.
  [[nodiscard]] static std::shared_ptr<const cuda_driver> load();
  /// Why load() would throw; nothing where it would not. For programs that do without, and for tests that are skipped.
  [[nodiscard]] static std::optional<std::string> problem();

// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name stands in none
#define MUSTER_CUDA_MEMBER(name, function) const cuda_function<decltype(function)> name;
  MUSTER_CUDA_FUNCTIONS(MUSTER_CUDA_MEMBER)
#undef MUSTER_CUDA_MEMBER

private:
  explicit cuda_driver(void* library);

  [[maybe_unused]] void* end_;  // never closed
};

}  // namespace muster
