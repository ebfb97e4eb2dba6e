// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/memory/detail/participant.hpp>

namespace muster {

/// What a cell of a message queue is good for. Who may change it: message_protocol.hpp.
enum class message_state : std::uint8_t { empty, writing, ready, reading };

/// Laps are counted in 40 bits and may wrap: they are only ever compared with laps close by.
inline constexpr unsigned lap_bits = 40;
inline constexpr std::uint64_t lap_mask = (std::uint64_t{1} << lap_bits) - 1;

/// How many laps `one` is ahead of `other`; negative when it is behind.
[[nodiscard]] constexpr std::int64_t laps_ahead(std::uint64_t one, std::uint64_t other) noexcept {
  constexpr unsigned unused = 64 - lap_bits;
  return static_cast<std::int64_t>((one - other) << unused) >> unused;
}

/// The decoded word of a cell: `{lap:40, owner:16, state:8}`. Nobody owns an empty or ready one.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class message_word {
public:
  constexpr explicit message_word(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr message_word(std::uint64_t lap, participant_id owner, message_state state) noexcept
      : bits_(lap << 24U | std::uint64_t{static_cast<std::uint16_t>(owner)} << 8U | static_cast<std::uint8_t>(state)) {}

  [[nodiscard]] static constexpr message_word empty(std::uint64_t lap) noexcept {
    return {lap, participant_id::none, message_state::empty};
  }
  [[nodiscard]] static constexpr message_word ready(std::uint64_t lap) noexcept {
    return {lap, participant_id::none, message_state::ready};
  }

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr std::uint64_t lap() const noexcept { return bits_ >> 24U; }
  [[nodiscard]] constexpr participant_id owner() const noexcept {
    return static_cast<participant_id>(bits_ >> 8U & 0xffffU);
  }
  [[nodiscard]] constexpr message_state state() const noexcept { return static_cast<message_state>(bits_ & 0xffU); }
  /// Whether what lies in the cell is whole and stays as it is.
  [[nodiscard]] constexpr bool has_message() const noexcept {
    return state() == message_state::ready || state() == message_state::reading;
  }
  /// Whether anybody writes such a word: a cell that is written or read names somebody, any other nobody.
  [[nodiscard]] constexpr bool is_possible() const noexcept {
    const bool names_one = owner() != participant_id::none && owner() != participant_id::everybody;
    if (state() == message_state::writing || state() == message_state::reading) return names_one;
    return owner() == participant_id::none && state() <= message_state::reading;
  }

private:
  std::uint64_t bits_;
};

/// A place in the endless row of messages: `{lap:40, index:24}`, the index being that of the cell.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class ring_position {
public:
  static constexpr std::size_t most_cells = (std::size_t{1} << 24U) - 1;

  constexpr ring_position() noexcept = default;
  constexpr explicit ring_position(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr ring_position(std::uint64_t lap, std::size_t index) noexcept : bits_(lap << 24U | index) {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr std::uint64_t lap() const noexcept { return bits_ >> 24U; }
  [[nodiscard]] constexpr std::size_t index() const noexcept { return bits_ & most_cells; }
  [[nodiscard]] constexpr std::uint64_t next_lap() const noexcept { return (lap() + 1) & lap_mask; }
  [[nodiscard]] constexpr ring_position next(std::size_t capacity) const noexcept {
    return index() + 1 < capacity ? ring_position(lap(), index() + 1) : ring_position(next_lap(), 0);
  }
  /// How many messages lie between.
  [[nodiscard]] constexpr std::int64_t ahead_of(ring_position other, std::size_t capacity) const noexcept {
    return laps_ahead(lap(), other.lap()) * static_cast<std::int64_t>(capacity) + static_cast<std::int64_t>(index()) -
           static_cast<std::int64_t>(other.index());
  }
  friend constexpr bool operator==(ring_position, ring_position) noexcept = default;

private:
  std::uint64_t bits_ = 0;
};

}  // namespace muster
