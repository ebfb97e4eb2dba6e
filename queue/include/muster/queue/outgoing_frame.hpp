// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <muster/memory/arena.hpp>
#include <muster/queue/board.hpp>
#include <muster/serialize/codec.hpp>

namespace muster {

/// The encoded arguments of a call on their way to a slot: inline when they are short, else in a block.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class outgoing_frame {
public:
  outgoing_frame() noexcept = default;

  /// Encodes `values` outside of any lock. By-value payloads are copied once more by the receiver; that copy is
  /// admitted here too.
  /// Throws errc::out_of_memory, errc::not_serializable, and whatever serialize functions throw.
  template <class... Ts>
  static outgoing_frame of(arena& memory, const Ts&... values) {
    outgoing_frame frame(memory, codec<Ts...>::size(values...));
    codec<Ts...>::encode(frame.room(), values...);
    return frame;
  }

  /// Room for `bytes` bytes, which the caller fills.
  outgoing_frame(arena& memory, std::size_t bytes) : size_(bytes) {
    if (bytes > inline_argument_bytes) payload_ = memory.allocate(bytes, 1);
  }

  /// A frame that is in a block already.
  explicit outgoing_frame(block payload) noexcept : size_(payload.size()), payload_(std::move(payload)) {}

  [[nodiscard]] bool is_inline() const noexcept { return !payload_; }
  [[nodiscard]] std::span<std::byte> room() noexcept {
    return is_inline() ? std::span(line_).first(size_) : payload_.bytes();
  }
  /// What goes into the slot's line: the frame, or the reference to its block.
  [[nodiscard]] const std::array<std::byte, inline_argument_bytes>& line() noexcept;
  [[nodiscard]] block take_payload() noexcept { return std::move(payload_); }

private:
  alignas(frame_alignment) std::array<std::byte, inline_argument_bytes> line_;  // indeterminate beyond size_
  std::size_t size_ = 0;
  block payload_;
};

inline const std::array<std::byte, inline_argument_bytes>& outgoing_frame::line() noexcept {
  if (!is_inline()) {
    const auto ref = payload_.ref();
    std::memcpy(line_.data(), &ref, sizeof ref);
  }
  return line_;
}

}  // namespace muster
