// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nccl.h>

#include <muster/collectives/device_transport.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/nccl/nccl_library.hpp>

namespace muster::detail {

/// What a rank tells the others before they join.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct nccl_offer {
  std::int32_t version = 0;  ///< of the library
  std::int32_t pid = 0;
  std::array<std::byte, 16> device{};  ///< UUID
  std::uint64_t host = 0;              ///< of NCCL_HOSTID, by which ranks on one device take each other for remote
  std::uint32_t shares_device = 0;     ///< NCCL_MULTI_RANK_GPU_ENABLE
  std::uint32_t has_id = 0;
  ncclUniqueId id{};  ///< of rank 0

  /// Throws muster::error where NCCL cannot give an id.
  [[nodiscard]] static nccl_offer of(const nccl_library& library, const cuda_device& where, std::size_t rank);
  [[nodiscard]] std::vector<std::byte> pack() const;
  /// Nothing for what can be no offer.
  [[nodiscard]] static std::optional<nccl_offer> unpack(std::span<const std::byte> bytes);
};

/// Those of all ranks. Throws errc::invalid_argument where they do not go together: the library's versions differ, or
/// ranks share a device in a way that NCCL refuses.
[[nodiscard]] std::vector<nccl_offer> unpack_all(std::span<const std::vector<std::byte>> offers);

}  // namespace muster::detail
