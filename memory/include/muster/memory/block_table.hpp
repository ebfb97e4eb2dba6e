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
enum class block_state : std::uint16_t { free, cached, live, returned };

using block_ownership = ownership<block_state>;

/// One shared block: who owns it and where it lies. Layout: docs/formats/domain.md.
struct alignas(64) block_descriptor {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> offset;    ///< bytes from the start of the arena; written by home while cached
  std::atomic<std::uint64_t> capacity;  ///< bytes; written by home while cached
  std::atomic<std::uint16_t> home;      ///< whose allocator the memory belongs to; written by home, and when adopted
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
