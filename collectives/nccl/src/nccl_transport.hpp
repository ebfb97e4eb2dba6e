// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/base/detail/mutex.hpp>
#include <muster/collectives/device_transport.hpp>
#include <muster/nccl/nccl_library.hpp>

namespace muster::detail {

/// What makes NCCL known to groups.
///
/// Thread safety: safe.
class nccl_transport final : public device_transport {
public:
  [[nodiscard]] bool reduces(dtype type, reduction_op op) const noexcept override;
  [[nodiscard]] std::vector<std::byte> offer(device where, std::size_t rank) override;
  [[nodiscard]] std::unique_ptr<device_channel> join(std::span<const std::vector<std::byte>> offers, device where,
                                                     std::size_t rank) override;
  [[nodiscard]] std::string name() override;

private:
  [[nodiscard]] std::shared_ptr<const nccl_library> library() MUSTER_EXCLUDES(mutex_);

  mutex mutex_;
  std::shared_ptr<const nccl_library> library_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
