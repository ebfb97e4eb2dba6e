// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <muster/collectives/group_error.hpp>

namespace muster::detail {

/// Why a group is of no more use, and who said so first: `{cause:8, rank:16, sequence:40}`, never 0. Whoever reads it
/// checks that there is such a rank.
struct broken_word {
  enum class cause : std::uint8_t { none = 0, timeout = 1, aborted = 2, lost = 3 };

  cause why = cause::none;
  std::size_t rank = 0;
  std::uint64_t sequence = 0;

  [[nodiscard]] std::uint64_t pack() const noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(why)} << 56U | std::uint64_t{rank & 0xffffU} << 40U |
           (sequence & 0xffffffffffU);
  }
  [[nodiscard]] static broken_word unpack(std::uint64_t word) noexcept {
    return {.why = static_cast<cause>(word >> 56U), .rank = word >> 40U & 0xffffU, .sequence = word & 0xffffffffffU};
  }
};

/// "rank 1 (pid 12) and rank 3 (not joined)".
[[nodiscard]] std::string describe(const std::vector<group_member>& members);

}  // namespace muster::detail
