// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/base/detail/duration.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/queue/detail/message_form.hpp>
#include <muster/queue/detail/message_word.hpp>

namespace muster {

/// Who may use a queue: any number of producers and consumers, or one of each at a time.
enum class queue_kind : std::uint32_t { shared = 1, p2p = 2 };

/// The figures of a queue, which stand in its header.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct ring_shape {
  queue_kind kind = queue_kind::shared;
  std::size_t capacity = 0;      ///< messages
  std::size_t stride_bytes = 0;  ///< from one cell to the next
  std::chrono::nanoseconds spin{};

  static constexpr std::size_t cell_head_bytes = 16;

  /// The shape of cells with room for at least so much.
  /// Throws errc::invalid_argument, with both numbers and what is possible, for a capacity of 0 or above 2^24 - 1, and
  /// for room of more than 1 GiB less 16 bytes.
  [[nodiscard]] static ring_shape of(queue_kind kind, std::size_t capacity, std::size_t inline_bytes,
                                     std::chrono::nanoseconds spin);
  [[nodiscard]] std::size_t inline_bytes() const noexcept { return stride_bytes - cell_head_bytes; }
  [[nodiscard]] std::size_t total_bytes() const noexcept;
};

/// A queue's shared memory: header and cells, seen as message_protocol and wait_protocol want them. Layout:
/// docs/formats/queue.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all participants use it at once; the figures were read once and do not change.
/// Lifetime: borrows the memory.
class ring_memory {
public:
  using word = std::atomic<std::uint64_t>;
  using wait_word = std::atomic<std::uint32_t>;

  /// Makes a queue in `bytes`. Requires: they are aligned to 64 and as many as shape.total_bytes().
  static ring_memory make(std::span<std::byte> bytes, const ring_shape& shape) noexcept;
  /// Throws errc::corrupted when `bytes` hold no queue of that kind.
  static ring_memory attach(std::span<std::byte> bytes, queue_kind kind);

  [[nodiscard]] const ring_shape& shape() const noexcept { return shape_; }

  // For message_protocol.
  [[nodiscard]] std::size_t capacity() const noexcept { return shape_.capacity; }
  [[nodiscard]] word& cell(std::size_t index) const noexcept { return *reinterpret_cast<word*>(cell_at(index)); }
  [[nodiscard]] ring_position head() const noexcept { return position_in(head_); }
  [[nodiscard]] ring_position tail() const noexcept { return position_in(tail_); }
  void pass_head(ring_position at) const noexcept { pass(head_, at); }
  void pass_tail(ring_position at) const noexcept { pass(tail_, at); }

  /// Of the message in a cell; to be read once.
  [[nodiscard]] message_form form(std::size_t index) const noexcept {
    return message_form::unpack(form_word(index).load(std::memory_order_relaxed));
  }
  void set_form(std::size_t index, const message_form& what) const noexcept {
    form_word(index).store(what.pack(), std::memory_order_relaxed);
  }
  /// Where the message lies, or the name of the hold on its block.
  [[nodiscard]] std::span<std::byte> room(std::size_t index) const noexcept {
    return {cell_at(index) + ring_shape::cell_head_bytes, shape_.inline_bytes()};
  }

  /// Where those sleep who wait for messages, for room; and whether the queue is closed.
  [[nodiscard]] wait_word& items() const noexcept { return *items_; }
  [[nodiscard]] wait_word& space() const noexcept { return *space_; }
  [[nodiscard]] wait_word& closed() const noexcept { return *closed_; }
  /// Where the producer ran that last pushed or waited, and the consumer that last took or waited; of several, one of
  /// the last.
  [[nodiscard]] place_word& producer() const noexcept { return *producer_; }
  [[nodiscard]] place_word& consumer() const noexcept { return *consumer_; }

private:
  ring_memory(std::span<std::byte> bytes, const ring_shape& shape) noexcept;

  [[nodiscard]] std::byte* cell_at(std::size_t index) const noexcept { return cells_ + index * shape_.stride_bytes; }
  [[nodiscard]] word& form_word(std::size_t index) const noexcept {
    return *reinterpret_cast<word*>(cell_at(index) + sizeof(word));
  }
  // An index beyond the cells can only have been written by somebody who has no business there.
  [[nodiscard]] ring_position position_of(std::uint64_t bits) const noexcept {
    const ring_position found(bits);
    return found.index() < shape_.capacity ? found : ring_position(found.lap(), 0);
  }
  [[nodiscard]] ring_position position_in(const word* which) const noexcept {
    return position_of(which->load(std::memory_order_acquire));
  }
  // Between two, only one writes a hint, and a store is enough. (A producer that finds the queue closed behind its
  // claim may pass the head as well, but no further than the consumer: nothing comes behind it.)
  void pass(word* which, ring_position at) const noexcept {
    auto found = at.bits();
    const auto next = at.next(shape_.capacity).bits();
    if (shape_.kind == queue_kind::shared) {
      if (which->compare_exchange_strong(found, next, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
    } else {
      found = which->load(std::memory_order_relaxed);
      if (found == at.bits()) return which->store(next, std::memory_order_release);
    }
    // Beyond the cells: it was taken for this position, and must not stay there for ever.
    if (position_of(found) == at) which->compare_exchange_strong(found, next, std::memory_order_acq_rel);
  }

  ring_shape shape_;
  std::byte* cells_;
  word* head_;
  word* tail_;
  wait_word* items_;
  wait_word* space_;
  wait_word* closed_;
  place_word* producer_;
  place_word* consumer_;
};

}  // namespace muster
