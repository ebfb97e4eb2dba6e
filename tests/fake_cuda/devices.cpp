// SPDX-License-Identifier: BSL-1.0
#include "devices.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "failure.hpp"

namespace fake_cuda {

namespace {

CUuuid uuid_of(int physical) {
  CUuuid made{};
  std::memcpy(made.bytes, "fake-cuda-gpu\0\0", 15);
  made.bytes[15] = static_cast<char>(physical);
  return made;
}

std::string text_of(const CUuuid& uuid) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t at = 0; at < 16; ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[at]);
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

std::optional<int> find(const std::string& name, int count) {
  for (int each = 0; each < count; ++each) {
    if (name == std::to_string(each)) return each;
    if (name.size() > 4 && text_of(uuid_of(each)).starts_with(name)) return each;
  }
  return std::nullopt;
}

// Up to the first that there is not; a repetition hides all.
std::vector<int> read_seen(int count) {
  std::vector<int> seen;
  const auto* const listed = std::getenv("CUDA_VISIBLE_DEVICES");
  if (listed == nullptr) {
    for (int each = 0; each < count; ++each) seen.push_back(each);
    return seen;
  }
  std::istringstream all(listed);
  for (std::string each; std::getline(all, each, ',');) {
    const auto found = find(each, count);
    if (!found) break;
    if (std::ranges::find(seen, *found) != seen.end()) return {};
    seen.push_back(*found);
  }
  return seen;
}

}  // namespace

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const auto* const value = std::getenv(variable);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

devices::devices()
    : memory_bytes_(number_of("FAKE_CUDA_MEMORY", std::uint64_t{1} << 30U)),
      capability_(static_cast<int>(number_of("FAKE_CUDA_CAPABILITY", 90))),
      has_virtual_memory_(number_of("FAKE_CUDA_VIRTUAL", 1) != 0),
      has_descriptors_(number_of("FAKE_CUDA_DESCRIPTORS", 1) != 0),
      has_ipc_(number_of("FAKE_CUDA_IPC", 1) != 0),
      are_peers_(number_of("FAKE_CUDA_PEERS", 1) != 0),
      seen_(read_seen(static_cast<int>(number_of("FAKE_CUDA_DEVICES", 2)))) {}

int devices::physical(CUdevice which) const {
  require(which >= 0 && which < count(), CUDA_ERROR_INVALID_DEVICE);
  return seen_[static_cast<std::size_t>(which)];
}

CUdevice devices::seen_as(int physical) const {
  const auto found = std::ranges::find(seen_, physical);
  require(found != seen_.end(), CUDA_ERROR_INVALID_DEVICE);
  return static_cast<CUdevice>(found - seen_.begin());
}

std::string devices::name(CUdevice which) const { return "Fake GPU " + std::to_string(physical(which)); }

CUuuid devices::uuid(CUdevice which) const { return uuid_of(physical(which)); }

int devices::attribute(CUdevice which, CUdevice_attribute attribute) const {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return physical(which) + 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return capability_ / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return capability_ % 10;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 4;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: return -1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return has_virtual_memory() ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: return has_descriptors() ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED: return has_ipc() ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR: return 1;
    default: return 0;
  }
}

}  // namespace fake_cuda
