// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/memory/ownership.hpp>

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
///     hold     -> hold      the new holder, by compare-and-swap: receives it
///     hold     -> dropping  the holder: about to count itself out; then it unbinds the descriptor
enum class block_state : std::uint16_t { free, cached, live, returned, shared, adding, hold, dropping };

using block_ownership = ownership<block_state>;

/// One shared block: who owns it and where it lies; or a hold on one. Layout: docs/formats/domain.md.
struct alignas(64) block_descriptor {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> offset;    ///< bytes from the start of the arena; written by home while cached
  std::atomic<std::uint64_t> capacity;  ///< bytes; written by home while cached
  std::atomic<std::uint16_t> home;      ///< whose allocator the memory belongs to; written by home, and when adopted
  std::atomic<std::uint64_t> count;     ///< of a shared block: how many holds there are, see share_protocol.hpp
  std::atomic<std::uint64_t> target;    ///< of a hold: the handle of the block
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
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all participants use it at once.
class block_table {
public:
  /// Lifetime: borrows the shared descriptors and their mark.
  block_table(std::span<block_descriptor> descriptors, table_mark used) noexcept
      : descriptors_(descriptors), used_(used) {}

  [[nodiscard]] std::size_t size() const noexcept { return descriptors_.size(); }
  /// No descriptor from here on was ever bound.
  [[nodiscard]] std::size_t used_count() const noexcept;
  [[nodiscard]] block_descriptor& at(std::size_t index) noexcept { return descriptors_[index]; }
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
  std::span<block_descriptor> descriptors_;
  table_mark used_;
};

}  // namespace muster
