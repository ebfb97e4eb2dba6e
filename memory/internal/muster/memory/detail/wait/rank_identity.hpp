// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which process a rank is, in one word: `{participant:16, incarnation:16, pid:32}`.
//
// Thread safety: a value and pure functions; safe.

#include <sys/types.h>

#include <cstdint>

#include <muster/memory/domain.hpp>

namespace muster::detail {

struct rank_identity {
  participant_id participant = participant_id::none;
  std::uint16_t incarnation = 0;
  pid_t pid = 0;

  /// Of the participant's present process; all 0 when it has none.
  [[nodiscard]] static rank_identity of(const domain& where, participant_id who) noexcept {
    const auto found = where.occupant(who);
    if (found == 0) return {};
    return {.participant = who,
            .incarnation = static_cast<std::uint16_t>(found >> 32U),
            .pid = static_cast<pid_t>(found & 0xffffffffU)};
  }

  [[nodiscard]] static rank_identity unpack(std::uint64_t word) noexcept {
    return {.participant = static_cast<participant_id>(word >> 48U),
            .incarnation = static_cast<std::uint16_t>(word >> 32U),
            .pid = static_cast<pid_t>(word & 0xffffffffU)};
  }
  [[nodiscard]] std::uint64_t pack() const noexcept {
    return std::uint64_t{index_of(participant)} << 48U | std::uint64_t{incarnation} << 32U |
           static_cast<std::uint32_t>(pid);
  }

  /// Whether that process is still the participant.
  [[nodiscard]] bool is_alive(const domain& where) const noexcept { return of(where, participant) == *this; }

  friend bool operator==(const rank_identity&, const rank_identity&) = default;
};

}  // namespace muster::detail
