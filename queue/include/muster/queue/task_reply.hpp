// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <muster/memory/arena.hpp>
#include <muster/memory/block.hpp>
#include <muster/queue/board.hpp>
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
  /// An error that the parent found.
  explicit task_reply(error_info error);
  /// An error that the parent found, with what the worker had written into its reply line until then.
  task_reply(error_info error, std::span<const std::byte> line);
  /// A short reply, copied.
  task_reply(std::span<const std::byte> bytes, bool failed) noexcept;
  /// A reply in a block.
  task_reply(block payload, bool failed) noexcept : payload_(std::move(payload)), failed_(failed) {}

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
  [[nodiscard]] const block& kept() const noexcept { return payload_; }
  [[nodiscard]] block take_kept() noexcept { return std::move(payload_); }
  /// Takes over the blocks whose handles end the line, while whoever lent them can still be recovered; those that are
  /// not there (any more) are left out.
  void adopt_attached(arena& memory);
  [[nodiscard]] block take_attached(std::size_t index) noexcept {
    return rest_ != nullptr ? std::move(rest_->attached[index]) : block();
  }

  void set_place(task_place place) { rest().place = std::move(place); }

private:
  // What only failures and chunks have.
  struct details {
    std::optional<error_info> error;
    std::optional<task_place> place;
    std::array<block, attached_blocks> attached;
  };
  details& rest();

  alignas(frame_alignment) std::array<std::byte, inline_reply_bytes> line_;  // indeterminate beyond size_
  std::uint8_t size_ = 0;
  block payload_;
  bool failed_ = false;
  std::unique_ptr<details> rest_;  // most replies have none
};

}  // namespace muster
