// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <muster/memory/detail/shared_block.hpp>
#include <muster/serialize/detail/attachments.hpp>
#include <muster/serialize/detail/frame_stream.hpp>

namespace muster {

/// A message that is out of its queue, whole: its frame, and the blocks that came along, which are this process's own.
/// So it may be decoded at any time, by any thread, and keeps no cell.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the arena that its blocks are of.
/// Cost: a frame that lay in a cell is copied; up to 256 bytes need no allocation.
class taken_message final : public attachment_source {
public:
  taken_message() noexcept = default;
  taken_message(const taken_message&) = delete;
  taken_message& operator=(const taken_message&) = delete;
  taken_message(taken_message&& other) noexcept;
  taken_message& operator=(taken_message&& other) noexcept;
  ~taken_message() = default;

  /// Aligned to frame_alignment. Lifetime: that of this object where it is.
  [[nodiscard]] std::span<const std::byte> frame() const noexcept;
  /// Throws errc::corrupted when none of that number came along.
  [[nodiscard]] shared_block take(std::uint64_t index) override;
  /// How large the blocks are that came along.
  [[nodiscard]] std::size_t attached_bytes() const noexcept;
  /// Lets go of everything.
  void reset() noexcept;

private:
  friend class incoming_message;
  void copy(std::span<const std::byte> frame);

  alignas(frame_alignment) std::array<std::byte, 256> small_;  // indeterminate beyond size_
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> large_;
  shared_block block_;
  std::vector<shared_block> attachments_;
};

}  // namespace muster
