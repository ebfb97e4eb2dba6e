// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/cuda/driver.hpp>

#include "device_extent.hpp"
#include "range_list.hpp"

namespace muster::detail {

/// A part of an extent that this process has made.
struct device_piece {
  std::shared_ptr<const device_extent> extent;
  std::size_t offset = 0;
  std::size_t bytes = 0;

  [[nodiscard]] CUdeviceptr address() const noexcept { return extent->address() + offset; }
};

/// Cuts a device's memory into pieces.
///
/// It works as follows. Memory comes from the driver in extents of 64 MiB, or as large as the piece that is wanted;
/// pieces are cut from them, and joined again when they are given back. A piece that is given back can be taken again
/// at once, although the device may still work on it: the caller promises that what is given to the device for the
/// next owner is done after that. Extents without pieces are kept up to `keep_bytes`; above that, and when memory runs
/// out, they go back to the driver.
///
/// Requires, for all members: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Cost: a search among free pieces; no call of the driver while extents have room.
class device_heap {
public:
  static constexpr std::size_t piece_alignment = 512;
  static constexpr std::size_t extent_bytes = std::size_t{64} << 20U;
  static constexpr std::size_t keep_bytes = std::size_t{256} << 20U;

  /// Called before memory goes back to the driver.
  struct hooks {
    std::function<void()> quiesce;                     ///< returns when the device has done all that it was given
    std::function<void(const device_extent*)> forget;  ///< lets go of the extent, when nobody else has it open any more
  };

  device_heap(const cuda_driver& driver, CUdevice device, std::string name, sharing_means means, hooks before_dropping);

  /// Throws errc::out_of_memory with what was asked for, what is free on the device and what this process has.
  [[nodiscard]] device_piece allocate(std::size_t bytes) MUSTER_EXCLUDES(mutex_);
  /// Throws std::bad_alloc when the host has no memory to note it in: the piece is lost until the process ends then.
  void release(const device_piece& what) MUSTER_EXCLUDES(mutex_);
  /// Gives extents without pieces back to the driver, until those that are left have `keep` bytes at most.
  void trim(std::size_t keep) MUSTER_EXCLUDES(mutex_);

  /// What this process has from the driver, and how much of that is free.
  [[nodiscard]] std::size_t held_bytes() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t free_bytes() const MUSTER_EXCLUDES(mutex_);

private:
  struct owned_extent {
    std::shared_ptr<const device_extent> memory;
    range_list ranges;
  };

  [[nodiscard]] bool take(std::size_t bytes, device_piece& found) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool grow(std::size_t bytes) MUSTER_REQUIRES(mutex_);
  void drop_unused(std::size_t keep) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::size_t unused_bytes() const MUSTER_REQUIRES(mutex_);
  [[noreturn]] void throw_exhausted(std::size_t bytes) const MUSTER_REQUIRES(mutex_);

  const cuda_driver& driver_;
  const CUdevice device_;
  const std::string name_;
  const sharing_means means_;
  const hooks hooks_;
  const std::size_t granularity_;

  mutable mutex mutex_;
  std::vector<owned_extent> extents_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
