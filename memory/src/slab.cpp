// SPDX-License-Identifier: BSL-1.0
#include "slab.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace muster::detail {

std::size_t slab::class_of(std::size_t bytes) noexcept {
  const auto rounded = std::bit_ceil(std::max(bytes, smallest_bytes));
  return static_cast<std::size_t>(std::countr_zero(rounded) - std::countr_zero(smallest_bytes));
}

bool slab::cuts(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return std::has_single_bit(bytes) && bytes >= smallest_bytes && bytes <= largest_bytes && offset % bytes == 0;
}

// Borrowers give back roughly in the order in which they got: a few looks at the oldest usually find one, and
// bounded work keeps the allocation's cost flat when the oldest is kept for long.
std::optional<std::uint32_t> slab::take(block_table& blocks, participant_id self) {
  constexpr std::size_t looks = 4;
  if (free_.empty()) collect(blocks, self, looks);
  if (free_.empty() && uncut_.bytes < chunk_bytes_) collect(blocks, self, lent_.size());
  if (free_.empty()) return std::nullopt;
  const auto descriptor = free_.back();
  free_.pop_back();
  return descriptor;
}

void slab::collect(block_table& blocks, participant_id self, std::size_t looks) {
  for (looks = std::min(looks, lent_.size()); looks > 0; --looks) {
    const auto descriptor = lent_.front();
    lent_.pop_front();
    auto found = blocks.read(descriptor).owner;
    if (found.state == block_state::returned && found.owner == self) {
      found.state = block_state::cached;
      blocks.at(descriptor).word.store(found.pack(), std::memory_order_relaxed);  // nobody else changes it now
      free_.push_back(descriptor);
    } else {
      lent_.push_back(descriptor);
    }
  }
}

void slab::make_room() {
  constexpr std::size_t least = 16;
  const auto wanted = std::max(least, 2 * cut_);
  if (free_.capacity() <= cut_) free_.reserve(wanted);
  if (lent_.capacity() <= cut_) lent_.set_capacity(wanted);
}

// One that this slab has not cut came from a dead process: without memory for it, it stays unused.
void slab::put(std::uint32_t descriptor) noexcept {
  try {
    free_.push_back(descriptor);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
}

std::optional<std::size_t> slab::cut() noexcept {
  if (uncut_.bytes < chunk_bytes_) return std::nullopt;
  ++cut_;
  const auto offset = uncut_.offset;
  uncut_.offset += chunk_bytes_;
  uncut_.bytes -= chunk_bytes_;
  return offset;
}

void slab::put_back() noexcept {
  --cut_;
  uncut_.offset -= chunk_bytes_;
  uncut_.bytes += chunk_bytes_;
}

}  // namespace muster::detail
