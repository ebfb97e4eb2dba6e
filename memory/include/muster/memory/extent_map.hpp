// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/memory/ownership.hpp>

namespace muster {

/// The arena is divided into extents of this size; a process claims whole extents and divides them privately.
inline constexpr std::size_t extent_bytes = std::size_t{64} * 1024;

[[nodiscard]] constexpr std::size_t extents_for(std::size_t bytes) noexcept {
  return bytes / extent_bytes + (bytes % extent_bytes != 0 ? 1 : 0);
}

/// `shared`: belongs to a block that everybody owns; the word's generation is that block's descriptor.
enum class extent_state : std::uint16_t { free, held, shared };

/// A run of neighbouring extents.
struct extent_run {
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] constexpr std::size_t offset_bytes() const noexcept { return first * extent_bytes; }
  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return count * extent_bytes; }
  friend constexpr bool operator==(const extent_run&, const extent_run&) noexcept = default;
};

/// Who holds which part of the arena: one ownership word per extent, claimed by compare-and-swap, no lock and no
/// free list. A process that dies between claiming and using a run leaves words with its name, which `reclaim` frees.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all participants use it at once.
/// Cost: one compare-and-swap per extent; a claim looks at every word at most once.
class extent_map {
public:
  using word = std::atomic<std::uint64_t>;

  /// Lifetime: borrows the shared words and their mark.
  extent_map(std::span<word> words, table_mark used) noexcept : words_(words), used_(used) {}

  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  /// No extent from here on was ever claimed.
  [[nodiscard]] std::size_t used_count() const noexcept;

  /// Claims `count` neighbouring free extents, looking from `hint` on and around; nothing when there is no such run.
  [[nodiscard]] std::optional<extent_run> claim(participant_id owner, std::size_t count, std::size_t hint) noexcept;

  /// Frees a run. Requires: `owner` holds all of it.
  void release(participant_id owner, extent_run run) noexcept;

  /// Hands a run over; extents that `from` does not hold stay as they are.
  void transfer(participant_id from, participant_id to, extent_run run) noexcept;

  /// Makes what `from` holds of the run part of a block that everybody owns.
  void share(participant_id from, std::uint32_t descriptor, extent_run run) noexcept;
  /// Gives those extents of the run that are part of that block to `to`; none: frees them.
  /// Requires: nobody else does so.
  void unshare(std::uint32_t descriptor, participant_id to, extent_run run) noexcept;
  /// How many extents of the run are part of that block.
  [[nodiscard]] std::size_t shared_count(std::uint32_t descriptor, extent_run run) const noexcept;

  [[nodiscard]] participant_id owner_of(std::size_t extent) const noexcept;
  [[nodiscard]] std::size_t held_count() const noexcept;

private:
  bool try_claim(participant_id owner, std::size_t extent) noexcept;
  bool try_claim_all(participant_id owner, extent_run run) noexcept;
  [[nodiscard]] std::optional<std::size_t> find_free(extent_run where, std::size_t count) const noexcept;

  std::span<word> words_;
  table_mark used_;
};

}  // namespace muster
