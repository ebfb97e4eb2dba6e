// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// A number in a worker's line that only that worker writes: what another process leaves there is far out of range.
/// Thread safety: pure functions; safe.
[[nodiscard]] constexpr std::uint64_t seal_number(std::uint64_t number) noexcept {
  return number * 0x9e3779b97f4a7c15U;
}
[[nodiscard]] constexpr std::uint64_t unseal_number(std::uint64_t sealed) noexcept {
  return sealed * 0xf1de83e19937733dU;  // the inverse modulo 2^64
}
static_assert(unseal_number(seal_number(12345)) == 12345);

}  // namespace muster
