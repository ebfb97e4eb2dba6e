// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <muster/base/unique_fd.hpp>
#include <muster/cuda/driver.hpp>

namespace muster::detail {

/// A physical piece of a device's memory, at an address of this process: made here, or by another process that sent a
/// descriptor of it. It is there until all who have mapped it, and all descriptors, are gone.
///
/// Requires, for all members: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
/// Lifetime: borrows the driver. Destroying it while the device works on it breaks the context.
/// Cost: some tens of microseconds of system calls, and one to two megabytes of page tables per GiB.
class device_extent {
public:
  /// Throws errc::out_of_memory. Requires: a multiple of granularity().
  device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes);
  /// One that another process has made, of so many bytes. Throws errc::corrupted when the descriptor is not that.
  device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes, const unique_fd& descriptor);
  device_extent(const device_extent&) = delete;
  device_extent& operator=(const device_extent&) = delete;
  ~device_extent();

  /// What sizes are multiples of.
  [[nodiscard]] static std::size_t granularity(const cuda_driver& driver, CUdevice device);

  [[nodiscard]] CUdeviceptr address() const noexcept { return address_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  /// For another process.
  [[nodiscard]] unique_fd descriptor() const;

private:
  void map(CUdevice device);
  void release() noexcept;

  const cuda_driver& driver_;
  std::size_t bytes_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  bool has_handle_ = false;
  bool is_mapped_ = false;
};

}  // namespace muster::detail
