// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <muster/memory/detail/arena.hpp>
#include <muster/memory/detail/block.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/queue/reply_block.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

/// Decodes an error that a worker has encoded; what cannot be decoded is an error too.
///
/// Thread safety: safe.
[[nodiscard]] error_info read_error(std::span<const std::byte> bytes);

/// How a task ended, still encoded: the bytes of its value, or an error.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class task_reply {
public:
  task_reply() noexcept = default;
  /// An error that the program found; its code alone where there is no memory for it.
  explicit task_reply(error_info error) noexcept;
  /// The same, with what the worker had written into its reply line until then.
  task_reply(error_info error, std::span<const std::byte> line) noexcept;
  /// A short reply, copied.
  task_reply(std::span<const std::byte> bytes, bool failed) noexcept;
  /// A reply in a block.
  task_reply(block payload, bool failed) noexcept : failed_(failed), payload_(std::move(payload)) {}
  /// A reply in a block (see reply_block) that a worker has lent: takes it over with all that goes with it.
  /// Throws errc::corrupted when something of it is not there.
  static task_reply adopt(arena& memory, block_ref sent, bool failed);
  /// The same, of a block that is this process's already.
  task_reply(arena& memory, block payload, reply_block what, bool failed);

  [[nodiscard]] bool succeeded() const noexcept { return !failed_; }
  /// The encoded value, or the encoded error.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return payload_ ? payload_.bytes() : std::span<const std::byte>(line_).first(size_);
  }
  /// Requires: !succeeded().
  [[nodiscard]] error_info error() const;
  /// The inline room and the block, for whoever has another use for them while there is no reply.
  [[nodiscard]] std::array<std::byte, inline_reply_bytes>& line() noexcept { return line_; }
  void keep(block payload) noexcept { payload_ = std::move(payload); }
  void keep(attachment_list lent) noexcept { lent_ = std::move(lent); }
  [[nodiscard]] attachment_list take_kept_attachments() noexcept { return std::move(lent_); }
  [[nodiscard]] const block& kept() const noexcept { return payload_; }
  [[nodiscard]] block take_kept() noexcept { return std::move(payload_); }
  /// Takes over the blocks whose handles end the line, while the worker that lent them can still be recovered; those
  /// that are not there (any more) are left out. Throws std::bad_alloc, and may be called again.
  void adopt_attached(arena& memory);
  [[nodiscard]] block take_attached(std::size_t index) noexcept {
    return rest_ != nullptr ? std::move(rest_->attached[index]) : block();
  }

  /// The blocks that came along, under the names that they have in the frame.
  [[nodiscard]] std::span<const shared_block> shared() const noexcept {
    return rest_ != nullptr ? std::span<const shared_block>(rest_->shared) : std::span<const shared_block>();
  }

  /// Nothing where there is no memory for it.
  void set_place(task_place place) noexcept;

private:
  // What only failures and chunks have.
  struct details {
    std::optional<error_info> error;
    std::optional<task_place> place;
    std::array<block, attached_blocks> attached;
    std::vector<shared_block> shared;
  };
  details& rest();
  void keep(error_info error) noexcept;

  alignas(frame_alignment) std::array<std::byte, inline_reply_bytes> line_;  // indeterminate beyond size_
  std::uint8_t size_ = 0;
  bool failed_ = false;
  errc code_ = {};  // of an error of the program's that there was no memory for; else 0
  block payload_;
  std::unique_ptr<details> rest_;  // most replies have none
  attachment_list lent_;           // kept for whoever has another use for the reply while there is none
};

/// For decoding a reply: the names in its frame are the blocks' numbers.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the blocks.
class reply_attachments final : public attachment_source {
public:
  explicit reply_attachments(std::span<const shared_block> blocks) noexcept : blocks_(blocks) {}
  [[nodiscard]] shared_block take(std::uint64_t name) override;

private:
  std::span<const shared_block> blocks_;
};

}  // namespace muster
