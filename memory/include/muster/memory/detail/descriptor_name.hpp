// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/memory/detail/participant.hpp>

namespace muster {

/// Names a file descriptor in a domain: who has deposited it, and which of that process's it is. A name is never used
/// again: `{participant:16, incarnation:20, number:28}`, where the incarnation is the lowest bits of the participant's.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class descriptor_name {
public:
  static constexpr unsigned number_bits = 28;
  static constexpr unsigned incarnation_bits = 20;
  static constexpr std::uint32_t most_number = (1U << number_bits) - 1;

  /// Names nothing.
  constexpr descriptor_name() noexcept = default;
  constexpr explicit descriptor_name(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr descriptor_name(participant_id depositor, std::uint32_t incarnation, std::uint32_t number) noexcept
      : bits_(std::uint64_t{static_cast<std::uint16_t>(depositor)} << (number_bits + incarnation_bits) |
              std::uint64_t{shortened(incarnation)} << number_bits | (number & most_number)) {}

  /// As a word of shared memory or of a message.
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr participant_id depositor() const noexcept {
    return static_cast<participant_id>(bits_ >> (number_bits + incarnation_bits));
  }
  [[nodiscard]] constexpr std::uint32_t incarnation() const noexcept { return shortened(bits_ >> number_bits); }
  [[nodiscard]] constexpr std::uint32_t number() const noexcept {
    return static_cast<std::uint32_t>(bits_) & most_number;
  }
  /// Whether it is of the process that has, or had, its participant's number in that incarnation.
  [[nodiscard]] constexpr bool is_of(std::uint32_t incarnation) const noexcept {
    return this->incarnation() == shortened(incarnation);
  }

  /// In the order of depositors, and among those of one as they were made.
  friend constexpr auto operator<=>(const descriptor_name&, const descriptor_name&) noexcept = default;

private:
  static constexpr std::uint32_t shortened(std::uint64_t incarnation) noexcept {
    return static_cast<std::uint32_t>(incarnation) & ((1U << incarnation_bits) - 1);
  }

  std::uint64_t bits_ = 0;
};

}  // namespace muster
