// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/memory/detail/ownership.hpp>

namespace muster {

/// A descriptor's states and who may change them:
///
///     free     -> cached    anyone, by compare-and-swap: binds the descriptor to a piece of the claimer's memory
///     cached   -> live      home: allocates; the generation grows
///     live     -> live      the new owner, by compare-and-swap: adopts
///     live     -> cached    owner, being home: releases
///     live     -> returned  owner, not being home: releases; names home as owner again
///     returned -> cached    home: collects
///     any      -> free      home, or the host after home died: unbinds
///
/// A block that several participants may hold at once, each by holds of its own:
///
///     live     -> shared    owner: owned by everybody from now on
///     shared   -> live      whoever has dropped the last hold, by compare-and-swap
///
/// And a descriptor that is no block, but a hold on one:
///
///     cached   -> adding    the holder: about to count itself
///     adding   -> hold      the same: has counted itself
///     hold     -> sent      the holder: it lies in a message
///     sent     -> hold      the new holder, by compare-and-swap: receives it. What somebody has for himself cannot be
///                           taken from him by a message that names it
///     sent     -> sent      the sender, or the host after it died: entrusts it to everybody
///     sent     -> hold      also, where it is everybody's and went with a block that is freed: anybody, to drop it
///     hold     -> dropping  the holder: about to count itself out; then it unbinds the descriptor
enum class block_state : std::uint16_t { free, cached, live, returned, shared, adding, hold, dropping, sent };

using block_ownership = ownership<block_state>;

/// One shared block: who owns it and where it lies; or a hold on one. Layout: docs/formats/domain.md.
struct alignas(64) block_descriptor {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> offset;    ///< bytes from the start of the arena; written by home while cached. Of a hold
                                        ///< that was sent in a block: that block's handle, else 0; the holder's
  std::atomic<std::uint64_t> capacity;  ///< bytes; written by home while cached
  std::atomic<std::uint16_t> home;      ///< whose allocator the memory belongs to; written by home, and when adopted
  std::atomic<std::uint64_t> count;     ///< of a shared block: how many holds there are, see share_protocol.hpp
  std::atomic<std::uint64_t> target;    ///< of a hold: the handle of the block. Of a shared block: whether holds may
                                        ///< go with it; written by those who hold it
  std::atomic<std::uint64_t> change;    ///< of a hold: the number of the change that it is about to make
};
static_assert(sizeof(block_descriptor) == 64);

/// A copy of a descriptor in which every field was read once.
struct block_snapshot {
  block_ownership owner;
  std::uint64_t offset = 0;
  std::uint64_t capacity = 0;
  participant_id home = participant_id::none;
};

/// All descriptors of a domain.
///
/// `Descriptor` and `Word` are block_descriptor and the word of its mark, or what a model checker puts in their place.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all participants use it at once.
template <class Descriptor, class Word>
class basic_block_table {
public:
  /// Lifetime: borrows the shared descriptors and their mark.
  basic_block_table(std::span<Descriptor> descriptors, basic_table_mark<Word> used) noexcept
      : descriptors_(descriptors), used_(used) {}

  [[nodiscard]] std::size_t size() const noexcept { return descriptors_.size(); }
  /// No descriptor from here on was ever bound.
  [[nodiscard]] std::size_t used_count() const noexcept;
  [[nodiscard]] Descriptor& at(std::size_t index) noexcept { return descriptors_[index]; }
  [[nodiscard]] block_snapshot read(std::size_t index) const noexcept;
  /// The word that counts the holds on a shared block.
  [[nodiscard]] std::uint64_t count_of(std::size_t index) const noexcept {
    return descriptors_[index].count.load(std::memory_order_acquire);
  }

  /// Claims a free descriptor for a piece of `home`'s memory, looking from `hint` on and around; it is `cached` then.
  /// Nothing when all are taken.
  [[nodiscard]] std::optional<std::uint32_t> bind(participant_id home, std::uint64_t offset, std::uint64_t capacity,
                                                  std::size_t hint) noexcept;
  /// Says where the block lies. Requires: the caller is its home, and it is cached.
  void place(std::uint32_t index, participant_id home, std::uint64_t offset, std::uint64_t capacity) noexcept;
  /// Makes the descriptor free again.
  void unbind(std::uint32_t index) noexcept;

  /// Moves the word from `expected` to `desired` if it still holds `expected`.
  bool change(std::uint32_t index, const block_ownership& expected, const block_ownership& desired) noexcept;

private:
  std::span<Descriptor> descriptors_;
  basic_table_mark<Word> used_;
};

template <class Descriptor, class Word>
std::size_t basic_block_table<Descriptor, Word>::used_count() const noexcept {
  return std::min<std::size_t>(used_.count(), descriptors_.size());
}

template <class Descriptor, class Word>
block_snapshot basic_block_table<Descriptor, Word>::read(std::size_t index) const noexcept {
  const auto& found = descriptors_[index];
  return {.owner = block_ownership::unpack(found.word.load(std::memory_order_acquire)),
          .offset = found.offset.load(std::memory_order_relaxed),
          .capacity = found.capacity.load(std::memory_order_relaxed),
          .home = static_cast<participant_id>(found.home.load(std::memory_order_relaxed))};
}

template <class Descriptor, class Word>
std::optional<std::uint32_t> basic_block_table<Descriptor, Word>::bind(participant_id home, std::uint64_t offset,
                                                                       std::uint64_t capacity,
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
template <class Descriptor, class Word>
void basic_block_table<Descriptor, Word>::place(std::uint32_t index, participant_id home, std::uint64_t offset,
                                                std::uint64_t capacity) noexcept {
  at(index).offset.store(offset, std::memory_order_relaxed);
  at(index).capacity.store(capacity, std::memory_order_relaxed);
  at(index).home.store(static_cast<std::uint16_t>(home), std::memory_order_relaxed);
}

template <class Descriptor, class Word>
void basic_block_table<Descriptor, Word>::unbind(std::uint32_t index) noexcept {
  auto found = block_ownership::unpack(at(index).word.load(std::memory_order_relaxed));
  found.owner = participant_id::none;
  found.state = block_state::free;
  at(index).word.store(found.pack(), std::memory_order_release);
}

template <class Descriptor, class Word>
bool basic_block_table<Descriptor, Word>::change(std::uint32_t index, const block_ownership& expected,
                                                 const block_ownership& desired) noexcept {
  auto word = expected.pack();
  return at(index).word.compare_exchange_strong(word, desired.pack(), std::memory_order_acq_rel);
}

using block_table = basic_block_table<block_descriptor, std::atomic<std::uint64_t>>;

}  // namespace muster
