// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/block_table.hpp>

#include <algorithm>

namespace muster {

std::size_t block_table::used_count() const noexcept {
  return std::min<std::size_t>(used_.count(), descriptors_.size());
}

block_snapshot block_table::read(std::size_t index) const noexcept {
  const auto& found = descriptors_[index];
  return {.owner = block_ownership::unpack(found.word.load(std::memory_order_acquire)),
          .offset = found.offset.load(std::memory_order_relaxed),
          .capacity = found.capacity.load(std::memory_order_relaxed),
          .home = static_cast<participant_id>(found.home.load(std::memory_order_relaxed))};
}

std::optional<std::uint32_t> block_table::bind(participant_id home, std::uint64_t offset, std::uint64_t capacity,
                                               std::size_t hint) noexcept {
  for (std::size_t looked = 0; looked < size(); ++looked) {
    const auto index = static_cast<std::uint32_t>((hint + looked) % size());
    const auto found = block_ownership::unpack(at(index).word.load(std::memory_order_relaxed));
    const block_ownership bound{.generation = found.generation, .owner = home, .state = block_state::cached};
    if (found.state != block_state::free) continue;
    used_.raise_to(index + 1);
    if (!change(index, found, bound)) continue;
    place(index, home, offset, capacity);
    return index;
  }
  return std::nullopt;
}

// Others read these fields only after the block went live, which publishes them.
void block_table::place(std::uint32_t index, participant_id home, std::uint64_t offset,
                        std::uint64_t capacity) noexcept {
  at(index).offset.store(offset, std::memory_order_relaxed);
  at(index).capacity.store(capacity, std::memory_order_relaxed);
  at(index).home.store(static_cast<std::uint16_t>(home), std::memory_order_relaxed);
}

void block_table::unbind(std::uint32_t index) noexcept {
  auto found = block_ownership::unpack(at(index).word.load(std::memory_order_relaxed));
  found.owner = participant_id::none;
  found.state = block_state::free;
  at(index).word.store(found.pack(), std::memory_order_release);
}

bool block_table::change(std::uint32_t index, const block_ownership& expected,
                         const block_ownership& desired) noexcept {
  auto word = expected.pack();
  return at(index).word.compare_exchange_strong(word, desired.pack(), std::memory_order_acq_rel);
}

}  // namespace muster
