// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/memory/detail/block.hpp>

namespace muster {

/// What a reply that is too long for its slot's line has in its block: the frame, and from the next multiple of eight
/// on the names of the holds that go with it. The reference in the slot says how long the frame is, and above that (16
/// bits) how many holds there are. Layout: docs/formats/frame.md.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct reply_block {
  std::size_t frame_bytes = 0;
  std::size_t attachments = 0;

  static constexpr std::size_t most_attachments = 0xffff;
  static constexpr std::size_t most_frame_bytes = (std::size_t{1} << 48U) - 1;

  [[nodiscard]] static constexpr reply_block of(const block_ref& sent) noexcept {
    return {.frame_bytes = sent.size_bytes & most_frame_bytes, .attachments = sent.size_bytes >> 48U};
  }
  [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
    return std::uint64_t{attachments} << 48U | frame_bytes;
  }
  [[nodiscard]] constexpr std::size_t names_offset() const noexcept { return (frame_bytes + 7) / 8 * 8; }
  [[nodiscard]] constexpr std::size_t total_bytes() const noexcept {
    return attachments == 0 ? frame_bytes : names_offset() + attachments * sizeof(std::uint64_t);
  }
};

}  // namespace muster
