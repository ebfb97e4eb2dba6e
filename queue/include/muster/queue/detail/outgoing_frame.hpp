// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <muster/memory/detail/block.hpp>
#include <muster/queue/detail/attachment_list.hpp>
#include <muster/queue/detail/frame_layout.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/transfer.hpp>

namespace muster {

/// Sends blocks along by lending them: keeps them, and tells their names.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows both.
class attachment_lender final : public attachment_sink {
public:
  /// `count`: how many blocks there will be at most.
  attachment_lender(arena& memory, attachment_list& kept, std::size_t count)
      : memory_(memory), kept_(kept), count_(count) {
    if (count > 0) kept_ = attachment_list(count);
  }
  /// Throws errc::not_serializable when there are more than was said.
  std::uint64_t attach(const shared_block& what) override;
  /// Of all blocks that were attached.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  arena& memory_;
  attachment_list& kept_;
  const std::size_t count_;
  std::size_t used_ = 0;
  std::size_t bytes_ = 0;
};

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
    return sent(memory, transfer::reference, values...);
  }
  /// The same; `how` says whether what lies in shared memory is copied too.
  template <class... Ts>
  static outgoing_frame sent(arena& memory, transfer how, const Ts&... values) {
    const bool attaches = how != transfer::copy;
    const auto needed = codec<Ts...>::measure(attaches, values...);
    outgoing_frame frame(memory, needed.bytes);
    attachment_lender attachments(memory, frame.attachments_, needed.attachments);
    codec<Ts...>::encode_with(frame.room(), attaches ? &attachments : nullptr, values...);
    frame.referenced_ = attachments.bytes();
    return frame;
  }

  /// Room for `bytes` bytes, which the caller fills.
  outgoing_frame(arena& memory, std::size_t bytes) : size_(bytes) {
    if (bytes > inline_argument_bytes) payload_ = allocate(memory, bytes, 1);
  }

  /// A frame that is in a block already.
  explicit outgoing_frame(block payload) noexcept : size_(payload.size()), payload_(std::move(payload)) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// How large the blocks are that go along.
  [[nodiscard]] std::size_t referenced_bytes() const noexcept { return referenced_; }
  [[nodiscard]] bool is_inline() const noexcept { return !payload_; }
  [[nodiscard]] std::span<std::byte> room() noexcept {
    return is_inline() ? std::span(line_).first(size_) : payload_.bytes();
  }
  /// What goes into the slot's line: the frame, or the reference to its block.
  [[nodiscard]] const std::array<std::byte, inline_argument_bytes>& line() noexcept;
  [[nodiscard]] block take_payload() noexcept { return std::move(payload_); }
  /// What the receiver borrows: to be kept until he is done.
  [[nodiscard]] attachment_list take_attachments() noexcept { return std::move(attachments_); }

private:
  alignas(frame_alignment) std::array<std::byte, inline_argument_bytes> line_;  // indeterminate beyond size_
  std::size_t size_ = 0;
  std::size_t referenced_ = 0;
  block payload_;
  attachment_list attachments_;
};

inline const std::array<std::byte, inline_argument_bytes>& outgoing_frame::line() noexcept {
  if (!is_inline()) {
    const auto ref = payload_.ref();
    std::memcpy(line_.data(), &ref, sizeof ref);
  }
  return line_;
}

}  // namespace muster
