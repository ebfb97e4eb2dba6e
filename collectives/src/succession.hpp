// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::detail {

/// How far the group of the survivors has come, and who makes it: `{phase:8, round:24, leader:32}`. A leader that is
/// gone is followed by another one, in the next round; nobody follows once it is settled. Whoever reads it checks that
/// there is such a rank.
struct succession_word {
  enum class phase : std::uint8_t { none = 0, claimed = 1, offered = 2, settled = 3 };

  phase now = phase::none;
  std::uint32_t round = 0;
  std::size_t leader = 0;

  [[nodiscard]] std::uint64_t pack() const noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(now)} << 56U | std::uint64_t{round & 0xffffffU} << 32U |
           (leader & 0xffffffffU);
  }
  [[nodiscard]] static succession_word unpack(std::uint64_t word) noexcept {
    return {.now = static_cast<phase>(word >> 56U),
            .round = static_cast<std::uint32_t>(word >> 32U & 0xffffffU),
            .leader = word & 0xffffffffU};
  }
};

/// What a rank has to do with that group: `{state:4, round:12, place:16}`. `waits` is written by the rank, `chosen` by
/// the leader of that round, and then `holds` by the rank again: it has the memory.
struct survival_word {
  enum class state : std::uint8_t { none = 0, waits = 1, chosen = 2, holds = 3 };

  state now = state::none;
  std::uint32_t round = 0;
  std::size_t place = 0;  ///< its rank there

  static constexpr std::uint32_t rounds = 0xfff;

  [[nodiscard]] std::uint32_t pack() const noexcept {
    return static_cast<std::uint32_t>(now) << 28U | (round & rounds) << 16U |
           static_cast<std::uint32_t>(place & 0xffffU);
  }
  [[nodiscard]] static survival_word unpack(std::uint32_t word) noexcept {
    return {.now = static_cast<state>(word >> 28U), .round = word >> 16U & rounds, .place = word & 0xffffU};
  }
  [[nodiscard]] bool is_of(std::uint32_t which) const noexcept { return round == (which & rounds); }
};

}  // namespace muster::detail
