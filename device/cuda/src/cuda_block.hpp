// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/base/detail/mutex.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/memory/detail/shared_block.hpp>

#include "device_heap.hpp"

namespace muster::detail {

/// All memory of GPUs.
///
/// Thread safety: as device_block.
class cuda_memory_block : public device_block {
public:
  /// Lets another GPU of this process reach it, if that can be. Requires: that one's context is current.
  virtual void open_to(const cuda_device& peer) const = 0;
};

/// Memory that this process has allocated on a device.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: keeps the device.
class cuda_block final : public cuda_memory_block {
public:
  cuda_block(std::shared_ptr<cuda_device> of, device_piece piece, std::size_t bytes)
      : of_(std::move(of)), piece_(std::move(piece)), bytes_(bytes) {}
  ~cuda_block() override;

  [[nodiscard]] device where() const noexcept override { return of_->where(); }
  [[nodiscard]] std::size_t size() const noexcept override { return bytes_; }
  [[nodiscard]] device_operations& operations() const override { return *of_; }
  [[nodiscard]] std::uintptr_t address() const override { return piece_.address(); }
  [[nodiscard]] bool outlives_its_process() const noexcept override {
    return piece_.extent->means() == sharing_means::descriptor;
  }
  [[nodiscard]] bool is_shareable() const noexcept override { return piece_.extent->means() != sharing_means::none; }
  void write_to(frame_writer& out) const override MUSTER_EXCLUDES(mutex_);
  void note_copied() const noexcept override;
  void open_to(const cuda_device& peer) const override;

private:
  void share() const MUSTER_REQUIRES(mutex_);

  const std::shared_ptr<cuda_device> of_;
  const device_piece piece_;
  const std::size_t bytes_;
  mutable mutex mutex_;
  mutable std::shared_ptr<exported_extent> extent_ MUSTER_GUARDED_BY(mutex_);  // once it has been sent
  mutable shared_block tag_ MUSTER_GUARDED_BY(mutex_);
};

/// Memory of a device that somebody else has allocated.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: keeps the device, and its keeper.
class foreign_block final : public cuda_memory_block {
public:
  foreign_block(std::shared_ptr<cuda_device> of, std::uintptr_t address, std::size_t bytes,
                std::shared_ptr<void> keeper)
      : of_(std::move(of)), address_(address), bytes_(bytes), keeper_(std::move(keeper)) {}
  /// Waits until the device has done what it was given: the keeper may give the memory to others.
  ~foreign_block() override;

  [[nodiscard]] device where() const noexcept override { return of_->where(); }
  [[nodiscard]] std::size_t size() const noexcept override { return bytes_; }
  [[nodiscard]] device_operations& operations() const override { return *of_; }
  [[nodiscard]] std::uintptr_t address() const override { return address_; }
  [[nodiscard]] bool is_shareable() const noexcept override { return false; }
  [[nodiscard]] bool outlives_its_process() const noexcept override { return false; }
  void write_to(frame_writer& out) const override;
  void note_copied() const noexcept override;
  // The driver's business, and its maker's.
  void open_to(const cuda_device& /*peer*/) const override {}

private:
  const std::shared_ptr<cuda_device> of_;
  const std::uintptr_t address_;
  const std::size_t bytes_;
  std::shared_ptr<void> keeper_;
};

}  // namespace muster::detail
