// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/cuda_error.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

struct known_error {
  CUresult code;
  errc kind;
  std::string_view name;
};

#define MUSTER_CUDA_ERROR(name, kind) \
  known_error { CUDA_ERROR_##name, errc::kind, "CUDA_ERROR_" #name }

// What is not here is an invalid_argument. By number: what the headers of CUDA 12.4 do not have yet.
constexpr std::array known = {
    MUSTER_CUDA_ERROR(INVALID_VALUE, invalid_argument),
    MUSTER_CUDA_ERROR(OUT_OF_MEMORY, out_of_memory),
    MUSTER_CUDA_ERROR(NOT_INITIALIZED, no_device),
    MUSTER_CUDA_ERROR(DEINITIALIZED, no_device),
    MUSTER_CUDA_ERROR(STUB_LIBRARY, no_device),
    MUSTER_CUDA_ERROR(DEVICE_UNAVAILABLE, no_device),
    MUSTER_CUDA_ERROR(NO_DEVICE, no_device),
    MUSTER_CUDA_ERROR(INVALID_DEVICE, no_device),
    MUSTER_CUDA_ERROR(DEVICE_NOT_LICENSED, no_device),
    MUSTER_CUDA_ERROR(INVALID_IMAGE, invalid_argument),
    MUSTER_CUDA_ERROR(INVALID_CONTEXT, invalid_argument),
    MUSTER_CUDA_ERROR(MAP_FAILED, invalid_argument),
    MUSTER_CUDA_ERROR(UNMAP_FAILED, invalid_argument),
    MUSTER_CUDA_ERROR(ALREADY_MAPPED, invalid_argument),
    MUSTER_CUDA_ERROR(NO_BINARY_FOR_GPU, no_device),
    MUSTER_CUDA_ERROR(NOT_MAPPED, invalid_argument),
    MUSTER_CUDA_ERROR(ECC_UNCORRECTABLE, device_lost),
    MUSTER_CUDA_ERROR(PEER_ACCESS_UNSUPPORTED, invalid_argument),
    MUSTER_CUDA_ERROR(INVALID_PTX, no_device),
    MUSTER_CUDA_ERROR(NVLINK_UNCORRECTABLE, device_lost),
    MUSTER_CUDA_ERROR(JIT_COMPILER_NOT_FOUND, no_device),
    MUSTER_CUDA_ERROR(UNSUPPORTED_PTX_VERSION, no_device),
    MUSTER_CUDA_ERROR(JIT_COMPILATION_DISABLED, no_device),
    known_error{static_cast<CUresult>(226), errc::device_lost, "CUDA_ERROR_CONTAINED"},
    MUSTER_CUDA_ERROR(SHARED_OBJECT_INIT_FAILED, no_device),
    MUSTER_CUDA_ERROR(OPERATING_SYSTEM, invalid_argument),
    MUSTER_CUDA_ERROR(INVALID_HANDLE, invalid_argument),
    MUSTER_CUDA_ERROR(ILLEGAL_STATE, invalid_argument),
    MUSTER_CUDA_ERROR(NOT_FOUND, invalid_argument),
    MUSTER_CUDA_ERROR(NOT_READY, timed_out),
    MUSTER_CUDA_ERROR(ILLEGAL_ADDRESS, device_lost),
    MUSTER_CUDA_ERROR(LAUNCH_OUT_OF_RESOURCES, invalid_argument),
    MUSTER_CUDA_ERROR(LAUNCH_TIMEOUT, device_lost),
    MUSTER_CUDA_ERROR(PRIMARY_CONTEXT_ACTIVE, invalid_argument),
    MUSTER_CUDA_ERROR(CONTEXT_IS_DESTROYED, device_lost),
    MUSTER_CUDA_ERROR(ASSERT, device_lost),
    MUSTER_CUDA_ERROR(HOST_MEMORY_ALREADY_REGISTERED, invalid_argument),
    MUSTER_CUDA_ERROR(HOST_MEMORY_NOT_REGISTERED, invalid_argument),
    MUSTER_CUDA_ERROR(HARDWARE_STACK_ERROR, device_lost),
    MUSTER_CUDA_ERROR(ILLEGAL_INSTRUCTION, device_lost),
    MUSTER_CUDA_ERROR(MISALIGNED_ADDRESS, device_lost),
    MUSTER_CUDA_ERROR(INVALID_ADDRESS_SPACE, device_lost),
    MUSTER_CUDA_ERROR(INVALID_PC, device_lost),
    MUSTER_CUDA_ERROR(LAUNCH_FAILED, device_lost),
    known_error{static_cast<CUresult>(721), errc::device_lost, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
    MUSTER_CUDA_ERROR(NOT_PERMITTED, invalid_argument),
    MUSTER_CUDA_ERROR(NOT_SUPPORTED, invalid_argument),
    MUSTER_CUDA_ERROR(SYSTEM_NOT_READY, no_device),
    MUSTER_CUDA_ERROR(SYSTEM_DRIVER_MISMATCH, no_device),
    MUSTER_CUDA_ERROR(COMPAT_NOT_SUPPORTED_ON_DEVICE, no_device),
    MUSTER_CUDA_ERROR(MPS_CONNECTION_FAILED, no_device),
    MUSTER_CUDA_ERROR(MPS_RPC_FAILURE, device_lost),
    MUSTER_CUDA_ERROR(MPS_SERVER_NOT_READY, no_device),
    MUSTER_CUDA_ERROR(MPS_MAX_CLIENTS_REACHED, no_device),
    MUSTER_CUDA_ERROR(MPS_MAX_CONNECTIONS_REACHED, no_device),
    MUSTER_CUDA_ERROR(MPS_CLIENT_TERMINATED, device_lost),
    MUSTER_CUDA_ERROR(TIMEOUT, timed_out),
    MUSTER_CUDA_ERROR(EXTERNAL_DEVICE, device_lost),
    MUSTER_CUDA_ERROR(UNKNOWN, device_lost),
};

#undef MUSTER_CUDA_ERROR

// The driver's current context is the thread's, too; it is not asked, since a broken one answers nothing.
thread_local constinit device called_device;

known_error find(CUresult cause) noexcept {
  const auto* const found = std::ranges::find(known, cause, &known_error::code);
  return found != known.end() ? *found : known_error{cause, errc::invalid_argument, "an unknown error"};
}

// Where it is known better than from the kind.
std::string_view advice_on(CUresult cause) noexcept {
  switch (cause) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "this build has no code for the device: build with its compute capability in MUSTER_CUDA_ARCHITECTURES, "
             "or renew the driver";
    case CUDA_ERROR_NOT_INITIALIZED:
      return "cuInit did not succeed in this process; after a fork CUDA cannot be used in the child";
    case CUDA_ERROR_INVALID_CONTEXT: return "no context is current in this thread";
    case CUDA_ERROR_NOT_SUPPORTED: return "this machine or its driver does not support it";
    default: return {};
  }
}

std::string_view advice_on(errc kind) noexcept {
  switch (kind) {
    case errc::out_of_memory: return "the device has no room: free memory on it, or ask for less";
    case errc::no_device:
      return "this process cannot use the device: see that nvidia-smi shows it, or use the device cpu";
    case errc::device_lost: return "the context is broken, and nothing in it can be used any more: start a new process";
    case errc::timed_out: return "the device is still busy: wait longer";
    default: return "the call is wrong";
  }
}

}  // namespace

errc errc_of(CUresult cause) noexcept { return find(cause).kind; }

std::string_view name_of(CUresult cause) noexcept { return find(cause).name; }

device exchange_called_device(device now) noexcept { return std::exchange(called_device, now); }

void throw_cuda_error(CUresult cause, std::string_view name, const std::string& arguments) {
  const auto found = find(cause);
  const auto advice = advice_on(cause);
  const auto where = called_device.is_cpu() ? std::string() : text(" on ", called_device);
  throw error(found.kind,
              text(name, '(', arguments, ')', where, " failed in process ", ::getpid(), ": ", static_cast<int>(cause),
                   ", ", found.name, ": ", advice.empty() ? advice_on(found.kind) : advice));
}

}  // namespace muster::detail
