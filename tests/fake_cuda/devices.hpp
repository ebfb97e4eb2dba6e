// SPDX-License-Identifier: BSL-1.0
#pragma once

// The GPUs of the machine that is played, and those that this process sees.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda.h>

namespace fake_cuda {

/// Reads FAKE_CUDA_DEVICES (how many there are; 2), FAKE_CUDA_MEMORY (bytes of each; 1 GiB), FAKE_CUDA_CAPABILITY
/// (90), what it can (FAKE_CUDA_DESCRIPTORS, FAKE_CUDA_VIRTUAL, FAKE_CUDA_IPC, FAKE_CUDA_PEERS; all), and
/// CUDA_VISIBLE_DEVICES (numbers or UUIDs, as the real driver reads it).
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
class devices {
public:
  devices();

  /// Of those that are seen.
  [[nodiscard]] int count() const { return static_cast<int>(seen_.size()); }
  /// Its number among all. Throws CUDA_ERROR_INVALID_DEVICE.
  [[nodiscard]] int physical(CUdevice which) const;
  /// Which one of those seen that is. Throws CUDA_ERROR_INVALID_DEVICE.
  [[nodiscard]] CUdevice seen_as(int physical) const;

  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }
  /// 90 is 9.0.
  [[nodiscard]] int capability() const { return capability_; }
  /// Memory is made apart from the addresses that it is mapped at; and can be exported by descriptor then.
  [[nodiscard]] bool has_virtual_memory() const { return has_virtual_memory_; }
  [[nodiscard]] bool has_descriptors() const { return has_descriptors_ && has_virtual_memory_; }
  /// Memory that is allocated as a whole can be sent as a whole.
  [[nodiscard]] bool has_ipc() const { return has_ipc_; }
  /// Each reaches the memory of all others.
  [[nodiscard]] bool are_peers() const { return are_peers_; }
  [[nodiscard]] std::string name(CUdevice which) const;
  [[nodiscard]] CUuuid uuid(CUdevice which) const;
  [[nodiscard]] int attribute(CUdevice which, CUdevice_attribute attribute) const;

private:
  std::size_t memory_bytes_;
  int capability_;
  bool has_virtual_memory_;
  bool has_descriptors_;
  bool has_ipc_;
  bool are_peers_;
  std::vector<int> seen_;
};

/// A number in the environment.
[[nodiscard]] std::uint64_t number_of(const char* variable, std::uint64_t otherwise);

}  // namespace fake_cuda
