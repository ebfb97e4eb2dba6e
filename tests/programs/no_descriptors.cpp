// SPDX-License-Identifier: BSL-1.0
// To be preloaded (LD_PRELOAD): a machine's own driver, as one that exports no memory by descriptor. muster asks it by
// functions that it has looked up by name, so it is the looking up that is played here.
#include <cuda.h>
#include <dlfcn.h>

#include <string_view>

namespace {

using lookup = void* (*)(void*, const char*);
decltype(&cuDeviceGetAttribute) attribute_of_driver = nullptr;

lookup real_lookup() {
  for (const auto* const version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (auto* const found = ::dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<lookup>(found);
  }
  return nullptr;
}

CUresult CUDAAPI attribute(int* value, CUdevice_attribute what, CUdevice device) {
  const auto result = attribute_of_driver(value, what, device);
  if (what == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) *value = 0;
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlsym(void* library, const char* name) noexcept {
  static const auto find = real_lookup();
  auto* const found = find == nullptr ? nullptr : find(library, name);
  if (found == nullptr || std::string_view(name) != "cuDeviceGetAttribute") return found;
  attribute_of_driver = reinterpret_cast<decltype(&cuDeviceGetAttribute)>(found);
  return reinterpret_cast<void*>(&attribute);
}
