// SPDX-License-Identifier: BSL-1.0
#pragma once

// What lets the parent tell a worker's own words from what others have written over them. A seal is no signature: it
// shows accidents, stale words and words of other tasks; nothing in shared memory can stop a process that forges on
// purpose and knows how.
//
// Thread safety: functions of values.

#include <cstddef>
#include <cstdint>

#include <muster/memory/detail/block.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/detail/seal_number.hpp>
#include <muster/queue/detail/slot_word.hpp>

namespace muster {

/// Beside a reply line: `{generation:32, failed:1, bytes:31}`.
[[nodiscard]] constexpr std::uint64_t seal_of_line(std::uint32_t short_generation, bool failed,
                                                   std::size_t bytes) noexcept {
  return std::uint64_t{short_generation} << 32U | std::uint64_t{failed} << 31U | bytes;
}

/// How many bytes a sealed line has; more than fit into one when the seal is not that of this task.
[[nodiscard]] constexpr std::size_t sealed_line_bytes(std::uint64_t seal, std::uint32_t short_generation,
                                                      bool failed) noexcept {
  return static_cast<std::size_t>(seal ^ seal_of_line(short_generation, failed, 0));
}

/// Beside the reference to a reply's block.
[[nodiscard]] constexpr std::uint64_t seal_of_block(std::uint32_t short_generation, bool failed,
                                                    const block_ref& ref) noexcept {
  const auto mixed = (ref.handle() ^ ref.size_bytes * 0xff51afd7ed558ccdU) * 0x9e3779b97f4a7c15U;
  return (mixed ^ mixed >> 32U) ^ seal_of_line(short_generation, failed, 0);
}

}  // namespace muster
