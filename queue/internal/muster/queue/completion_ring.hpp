// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace muster {

/// A ring in which a worker enters the tasks that it completed and of which the parent wants to be told.
///
/// Like a lane's, an entry is a hint, `{generation:32, slot:16}`: the parent compares it with what it knows and with
/// the slot's word. A worker may overtake a parent that does not look for long; then the parent looks at all slots.
///
/// Thread safety: one thread pushes, one at a time pops.
/// Process safety: the worker pushes, the parent pops; either may die at any instruction.
template <class Word>
class basic_completion_ring {
public:
  struct entry {
    std::uint32_t generation = 0;
    std::uint16_t slot = 0;
  };

  /// Lifetime: borrows the shared words. Requires: the number of entries is a power of two.
  basic_completion_ring(Word& tail, std::span<Word> entries) noexcept : tail_(&tail), entries_(entries) {}

  /// Sequentially consistent: the worker looks at the bell's `armed` word next, the parent wrote that word before it
  /// looks here a last time; one of the two sees the other.
  void push(entry what) noexcept {
    const auto position = tail_->load(std::memory_order_relaxed);  // only this worker writes it
    // Release: whoever reads this in place of an entry that it overwrites sees how far the tail was then.
    at(position).store(std::uint64_t{what.generation} << 16U | what.slot, std::memory_order_release);
    tail_->store(position + 1, std::memory_order_seq_cst);
  }

  [[nodiscard]] std::uint64_t tail() const noexcept { return tail_->load(std::memory_order_seq_cst); }
  [[nodiscard]] entry read(std::uint64_t position) const noexcept {
    const auto word = at(position).load(std::memory_order_acquire);  // with push: an overtaking is seen in the tail
    return {.generation = static_cast<std::uint32_t>(word >> 16U), .slot = static_cast<std::uint16_t>(word)};
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return entries_.size(); }

private:
  [[nodiscard]] Word& at(std::uint64_t position) const noexcept { return entries_[position & (entries_.size() - 1)]; }

  Word* tail_;
  std::span<Word> entries_;
};

using completion_ring = basic_completion_ring<std::atomic<std::uint64_t>>;

}  // namespace muster
