// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/cuda/driver.hpp>

namespace muster::detail {

/// How a device's memory goes to other processes, from best to worst. Stable values: they cross processes.
enum class sharing_means : std::uint64_t {
  descriptor = 0,  ///< it has one, and is there as long as anybody has it mapped, or a descriptor of it
  handle = 1,      ///< 64 bytes name it (cudaIpc): it is there as long as the process that has allocated it
  none = 2         ///< not at all
};

/// The best that the device has.
[[nodiscard]] sharing_means sharing_means_of(const cuda_driver& driver, CUdevice device);

/// A physical piece of a device's memory, at an address of this process: made here, or by another process that sent a
/// descriptor for it.
///
/// With sharing_means::descriptor, that is the memory's own, and the memory is there until all who have mapped it, and
/// all descriptors, are gone. Else it is a small file that has the memory's handle, and whoever has opened that has
/// nothing any more when the process that has made the extent has ended, or has destroyed this.
///
/// Requires, for all members: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the driver. Destroying it while the device works on it breaks the context.
/// Cost: some tens of microseconds of system calls, and one to two megabytes of page tables per GiB.
class device_extent {
public:
  /// Throws errc::out_of_memory. Requires: a multiple of granularity().
  device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes, sharing_means means);
  /// One that another process has made, of so many bytes. Throws errc::corrupted when the descriptor is not that, and
  /// with sharing_means::handle errc::peer_lost when that process has ended.
  device_extent(const cuda_driver& driver, CUdevice device, std::size_t bytes, sharing_means means,
                const unique_fd& descriptor);
  device_extent(const device_extent&) = delete;
  device_extent& operator=(const device_extent&) = delete;
  ~device_extent();

  /// What sizes are multiples of.
  [[nodiscard]] static std::size_t granularity(const cuda_driver& driver, CUdevice device, sharing_means means);

  [[nodiscard]] CUdeviceptr address() const noexcept { return address_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  [[nodiscard]] sharing_means means() const noexcept { return means_; }
  /// For another process. Requires: made here, not sharing_means::none.
  [[nodiscard]] unique_fd descriptor() const;

  /// Lets another device reach it, at the same address; where that cannot be, the driver copies by way of the host.
  /// `own`: the context that this is in. Requires: the context that is current is the other device's, and no other.
  /// Throws errc::device_lost.
  void open_to(CUdevice peer, CUcontext own) const MUSTER_EXCLUDES(mutex_);

private:
  void import(const unique_fd& descriptor);
  void open(const unique_fd& file);
  void map(CUdevice device);
  void let_reach(CUdevice device) const;
  void release() noexcept;

  const cuda_driver& driver_;
  const std::size_t bytes_;
  const sharing_means means_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  bool has_handle_ = false;
  bool is_mapped_ = false;
  bool is_opened_ = false;  // it is another process's, by handle
  mutable mutex mutex_;
  mutable std::set<CUdevice> open_to_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
