// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

/// What a worker writes into its line while it runs the task of that slot and generation.
constexpr std::uint64_t current_task(std::size_t slot, std::uint32_t short_generation) noexcept {
  return std::uint64_t{1} << 63U | std::uint64_t{slot} << 32U | short_generation;
}

}  // namespace muster
