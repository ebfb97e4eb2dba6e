// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// What a message consists of: `{attachments:16, in_block:1, frame_bytes:47}`. Its *body* is the frame, and from the
/// next multiple of eight on the names of the holds that go with it. The body lies in the cell, or in a shared block;
/// then the cell has the name of the hold on that block.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct message_form {
  std::size_t frame_bytes = 0;
  std::size_t attachments = 0;
  bool in_block = false;

  static constexpr std::size_t most_attachments = 0xffff;
  static constexpr std::size_t most_frame_bytes = (std::size_t{1} << 47U) - 1;

  [[nodiscard]] static constexpr message_form unpack(std::uint64_t bits) noexcept {
    return {.frame_bytes = bits & most_frame_bytes, .attachments = bits >> 48U, .in_block = (bits >> 47U & 1U) != 0};
  }
  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{attachments} << 48U | std::uint64_t{in_block ? 1U : 0U} << 47U | frame_bytes;
  }
  /// Whether it is a frame and nothing else, in the cell.
  [[nodiscard]] constexpr bool is_plain() const noexcept { return attachments == 0 && !in_block; }
  [[nodiscard]] constexpr std::size_t names_offset() const noexcept { return (frame_bytes + 7) / 8 * 8; }
  [[nodiscard]] constexpr std::size_t body_bytes() const noexcept {
    return attachments == 0 ? frame_bytes : names_offset() + attachments * sizeof(std::uint64_t);
  }
};

}  // namespace muster
