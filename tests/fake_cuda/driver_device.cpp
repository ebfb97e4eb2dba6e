// SPDX-License-Identifier: BSL-1.0
// Functions of the driver: start, devices, contexts, errors.
#include <cstring>

#include "call.hpp"

using namespace fake_cuda;

extern "C" {

CUresult CUDAAPI cuInit(unsigned int flags) {
  try {
    require(!is_forked() && flags == 0, is_forked() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_INVALID_VALUE);
    if (const auto code = the_machine().failures.next("cuInit"); code != CUDA_SUCCESS) return code;
    the_machine().initialize();
    return CUDA_SUCCESS;
  } catch (const failure& found) {
    return found.code;
  }
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
  switch (error) {
    case CUDA_SUCCESS: *text = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    default: *text = "CUDA_ERROR_OF_THE_FAKE"; break;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  switch (error) {
    case CUDA_SUCCESS: *text = "no error"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "out of memory"; break;
    case CUDA_ERROR_NO_DEVICE: *text = "no CUDA-capable device is detected"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; break;
    default: *text = "an error of the fake driver"; break;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&] { *count = the_machine().devices().count(); });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", [&] {
    static_cast<void>(the_machine().devices().physical(ordinal));
    *device = ordinal;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return call("cuDeviceGetName", [&] {
    require(length > 0, CUDA_ERROR_INVALID_VALUE);
    const auto text = the_machine().devices().name(device);
    std::strncpy(name, text.c_str(), static_cast<std::size_t>(length));
    name[length - 1] = '\0';
  });
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return call("cuDeviceGetUuid", [&] { *uuid = the_machine().devices().uuid(device); });
}

CUresult CUDAAPI cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  return call("cuDeviceTotalMem", [&] {
    static_cast<void>(the_machine().devices().physical(device));
    *bytes = the_machine().devices().memory_bytes();
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call("cuDeviceGetAttribute", [&] {
    static_cast<void>(the_machine().devices().physical(device));
    *value = the_machine().devices().attribute(device, attribute);
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* made, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", [&] { *made = the_machine().retain(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return call("cuDevicePrimaryCtxRelease", [&] { the_machine().release(device); });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext which) {
  return call("cuCtxSetCurrent", [&] {
    if (which != nullptr) {
      const auto found = the_machine().contexts.find(which, CUDA_ERROR_INVALID_CONTEXT);
      require(!found->is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    set_current(which);
  });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* found) {
  return call("cuCtxGetCurrent", [&] { *found = current_handle(); });
}
}
