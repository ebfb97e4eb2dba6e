// SPDX-License-Identifier: BSL-1.0
#pragma once

// The memory of GPUs, and the addresses of this process.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include <cuda.h>

#include "devices.hpp"
#include "ledger.hpp"

namespace fake_cuda {

/// Of all physical memory; what addresses are reserved in, too.
inline constexpr std::size_t granularity = std::size_t{2} << 20U;

/// Physical memory of a GPU: a memfd. Whoever has its descriptor shares it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
class allocation {
public:
  /// Throws CUDA_ERROR_OUT_OF_MEMORY.
  allocation(ledger& counted_by, int physical, std::size_t bytes, std::size_t limit, bool exportable);
  /// Imported. Throws CUDA_ERROR_INVALID_VALUE where that descriptor is no such memory.
  allocation(ledger& counted_by, int descriptor);
  allocation(const allocation&) = delete;
  allocation& operator=(const allocation&) = delete;
  ~allocation();

  [[nodiscard]] int physical() const { return physical_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// The file itself, which stays this object's.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Throws CUDA_ERROR_OPERATING_SYSTEM.
  [[nodiscard]] int duplicate() const;
  [[nodiscard]] bool is_exportable() const { return is_exportable_; }

private:
  ledger& ledger_;
  int descriptor_ = -1;
  int physical_ = 0;
  std::size_t bytes_ = 0;
  ino_t inode_ = 0;
  bool is_exportable_ = true;
};

/// The addresses of devices, and what is registered of the host's.
///
/// Works as follows: device memory is mapped where its address says, but so that the host cannot touch it while
/// nothing runs on a device: code that takes a device's pointer for a host's crashes, as it should.
/// FAKE_CUDA_PROTECT=0 leaves that out.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class address_space {
public:
  [[nodiscard]] CUdeviceptr reserve(std::size_t bytes, std::size_t alignment);
  void free(CUdeviceptr first, std::size_t bytes);
  void map(CUdeviceptr first, std::size_t bytes, std::shared_ptr<const allocation> what);
  void unmap(CUdeviceptr first, std::size_t bytes);
  /// Of devices by their physical numbers. Throws CUDA_ERROR_INVALID_DEVICE for memory of another device that is no
  /// peer.
  void set_access(CUdeviceptr first, std::size_t bytes, int physical, bool allowed, bool are_peers);

  void register_host(std::uintptr_t first, std::size_t bytes);
  void unregister_host(std::uintptr_t first);

  enum class place { device, registered, elsewhere };
  struct range {
    place where = place::elsewhere;
    std::uintptr_t first = 0;
    std::size_t bytes = 0;
    int physical = 0;  // of device memory
  };
  static constexpr int any_device = -1;
  /// What holds all of these bytes, as that device can reach them. Throws CUDA_ERROR_INVALID_VALUE where they are a
  /// device's addresses, but not all of them are mapped, or that device has no access.
  [[nodiscard]] range find(CUdeviceptr first, std::size_t bytes, int physical) const;
  /// Whether that device can reach all of these.
  [[nodiscard]] bool is_reached(CUdeviceptr first, std::size_t bytes, int physical) const;

  [[nodiscard]] std::size_t reservations() const;
  [[nodiscard]] std::size_t mappings() const;
  [[nodiscard]] std::size_t registrations() const;

  /// Something runs on a device while one of these is alive.
  class in_use {
  public:
    explicit in_use(address_space& space) : space_(space) { space_.begin_use(); }
    in_use(const in_use&) = delete;
    in_use& operator=(const in_use&) = delete;
    ~in_use() { space_.end_use(); }

  private:
    address_space& space_;
  };

private:
  struct mapping {
    std::size_t bytes = 0;
    std::shared_ptr<const allocation> memory;
    std::uint64_t accessible_by = 0;  // a bit for each physical device
  };
  using mappings_by_address = std::map<std::uintptr_t, mapping>;

  void begin_use();
  void end_use();
  void protect(std::uintptr_t first, const mapping& which) const;
  [[nodiscard]] bool is_reserved(std::uintptr_t first, std::size_t bytes) const;
  [[nodiscard]] mappings_by_address::const_iterator mapping_at(std::uintptr_t address) const;

  const bool protects_ = number_of("FAKE_CUDA_PROTECT", 1) != 0;
  mutable std::mutex mutex_;
  int users_ = 0;
  std::map<std::uintptr_t, std::size_t> reserved_;
  mappings_by_address mapped_;
  std::map<std::uintptr_t, std::size_t> registered_;
};

}  // namespace fake_cuda
