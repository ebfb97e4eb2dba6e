// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <muster/device/tensor.hpp>

namespace muster::detail {

/// A message as it lies in an outbox. Short ones go along; of long ones, where they lie in the sender's memory. What
/// there is follows one upon the other, so that of a message of some bytes only the first cache line has to come.
struct message_entry {
  static constexpr std::size_t inline_bytes = 384;
  /// Where a long message lies, and which answer the sender waits for.
  struct place {
    std::uint64_t name;
    std::uint64_t offset;
    std::uint64_t ack;
  };

  std::atomic<std::uint64_t> stamp;      ///< its position and 1, published last
  std::uint64_t tag;                     ///< what the receiver asks for
  std::uint64_t form;                    ///< `{dtype:8, dimensions:8, answered:1}`
  std::array<std::byte, 512 - 24> body;  ///< the sizes of the dimensions, 8 bytes each; then the elements, or a place

  static_assert(sizeof(body) >= tensor::max_dimensions * sizeof(std::uint64_t) + inline_bytes);

  [[nodiscard]] static std::uint64_t pack_form(const tensor& what, bool is_long) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(what.dtype())} | std::uint64_t{what.dimensions()} << 8U |
           std::uint64_t{is_long ? 1U : 0U} << 16U;
  }
  [[nodiscard]] static std::size_t type_in(std::uint64_t form) noexcept { return form & 0xffU; }
  [[nodiscard]] static std::size_t dimensions_in(std::uint64_t form) noexcept { return form >> 8U & 0xffU; }
  [[nodiscard]] static bool is_long(std::uint64_t form) noexcept { return (form >> 16U & 1U) != 0; }

  void set_size(std::size_t dimension, std::uint64_t size) noexcept {
    std::memcpy(&body[dimension * sizeof size], &size, sizeof size);
  }
  [[nodiscard]] std::uint64_t size_of(std::size_t dimension) const noexcept {
    std::uint64_t size = 0;
    std::memcpy(&size, &body[dimension * sizeof size], sizeof size);
    return size;
  }
  /// What follows so many dimensions. Requires: no more than tensor::max_dimensions.
  [[nodiscard]] std::byte* after(std::size_t dimensions) noexcept { return &body[dimensions * sizeof(std::uint64_t)]; }
  [[nodiscard]] const std::byte* after(std::size_t dimensions) const noexcept {
    return &body[dimensions * sizeof(std::uint64_t)];
  }
};
static_assert(sizeof(message_entry) == 512);

/// What one rank sends to one other: a ring of messages, and the receiver's answers to those that lie in the sender's
/// memory. Layout: docs/formats/group.md.
///
/// Thread safety: one thread sends, one receives.
/// Process safety: either may die at any instruction; what has been published stays readable.
class outbox {
public:
  static constexpr std::size_t capacity = 32;
  /// The receiver says what it has taken when it is so many: the line that says it need not come to the sender for
  /// every message.
  static constexpr std::size_t most_untold = 8;
  static constexpr std::size_t most_acks = 256;
  static constexpr std::uint64_t refused = std::uint64_t{1} << 63U;  ///< in an answer: the receiver could not use it
  static constexpr std::uint64_t reading = std::uint64_t{1} << 62U;  ///< instead of one: the receiver is copying it
  static constexpr std::uint64_t unanswered = 0;          ///< instead of a position: of a message without an answer
  static constexpr std::uint64_t withdrawn = UINT64_MAX;  ///< instead of a hold: there is no such message any more

  /// Where a long message lies since its sender has left. The receiver says that it reads before it looks here, and the
  /// sender looks whether it does after it has written this: so one of them sees the other.
  struct handover {
    std::atomic<std::uint64_t> hold;  ///< 0: where the message says; whoever takes it out drops it
    std::atomic<std::uint64_t> offset;
  };

  struct memory {
    std::uint64_t magic;
    std::atomic<std::uint64_t> complaints;    ///< messages that the receiver refused, but those that it answers
    std::atomic<std::uint64_t> reasons;       ///< that the receiver has written: the next one when all have been read
    std::atomic<std::uint64_t> reasons_read;  ///< by the sender
    std::uint64_t reason_of;                  ///< the message's position, as in its answer; 0 for one without
    std::uint32_t reason_bytes;
    std::array<char, 212> reason;
    alignas(
        128) std::atomic<std::uint64_t> taken;  ///< messages that it has taken over; some that it has may be missing
    alignas(
        128) std::array<std::atomic<std::uint64_t>, most_acks> acks;  ///< `{refused:1, reading:1, position:62}`, from 1
    std::array<handover, most_acks> handovers;                        ///< for each of these, the sender's
    alignas(128) std::array<message_entry, capacity> entries;
  };

  static outbox make(std::span<std::byte> bytes) noexcept;
  /// Throws errc::corrupted when `bytes` hold none.
  static outbox attach(std::span<std::byte> bytes);
  outbox() noexcept = default;

  [[nodiscard]] explicit operator bool() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] memory& operator*() const noexcept { return *memory_; }
  [[nodiscard]] memory* operator->() const noexcept { return memory_; }
  [[nodiscard]] message_entry& entry(std::uint64_t position) const noexcept {
    return memory_->entries[position % capacity];
  }

private:
  explicit outbox(memory* where) noexcept : memory_(where) {}
  memory* memory_ = nullptr;
};

}  // namespace muster::detail
