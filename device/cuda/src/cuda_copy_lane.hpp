// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <optional>

#include <muster/cuda/cuda_device.hpp>
#include <muster/device/copy_lane.hpp>

namespace muster::detail {

/// Copies on cuda_device::copies(), beside cuda_device::compute().
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class cuda_copy_lane final : public copy_lane {
public:
  explicit cuda_copy_lane(std::shared_ptr<cuda_device> of);
  ~cuda_copy_lane() override;

  [[nodiscard]] bool takes(const tensor& here) const override;
  void begin() override;
  void copy(const tensor& to, const tensor& from) override;
  void await() override;
  void wait() override;

private:
  [[nodiscard]] CUdeviceptr address_of(const tensor& which);

  const std::shared_ptr<cuda_device> of_;
  // A stream that waits for a mark waits for what it was when that was asked for: both are used again and again.
  std::optional<cuda_event> computed_;
  std::optional<cuda_event> copied_;
};

}  // namespace muster::detail
