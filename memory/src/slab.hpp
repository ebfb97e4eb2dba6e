// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <boost/circular_buffer.hpp>

#include <muster/memory/detail/block_table.hpp>
#include <muster/memory/detail/extent_map.hpp>

namespace muster::detail {

/// One process's blocks of one size class, all of them in private memory: the descriptors at hand, those that were
/// lent and may come back, and how far the newest extent has been cut.
///
/// Thread safety: guarded by the arena's mutex.
class slab {
public:
  static constexpr std::size_t smallest_bytes = 256;
  static constexpr std::size_t largest_bytes = std::size_t{16} * 1024;

  /// The index of the smallest class that holds `bytes`. Requires: bytes <= largest_bytes.
  static std::size_t class_of(std::size_t bytes) noexcept;
  /// Whether it cuts such a piece: one of a class's size, at a place for one.
  static bool cuts(std::uint64_t offset, std::uint64_t bytes) noexcept;
  static std::size_t class_count() noexcept { return class_of(largest_bytes) + 1; }

  explicit slab(std::size_t class_index) noexcept : chunk_bytes_(smallest_bytes << class_index) {}

  [[nodiscard]] std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }

  /// A cached descriptor, after a look whether lent ones have come back.
  std::optional<std::uint32_t> take(block_table& blocks, participant_id self);
  // Releasing and lending must not fail: there is room for all pieces that were cut.
  void put(std::uint32_t descriptor) noexcept;
  void remember_lent(std::uint32_t descriptor) noexcept { lent_.push_back(descriptor); }
  /// Has that room for one piece more. Throws std::bad_alloc.
  void make_room();

  /// The offset of the next uncut piece; nothing when a new extent is needed.
  std::optional<std::size_t> cut() noexcept;
  /// The piece that was cut last is uncut again. Requires: nothing was added since.
  void put_back() noexcept;
  void add_extent(extent_run run) noexcept { uncut_ = {.offset = run.offset_bytes(), .bytes = run.size_bytes()}; }

private:
  struct piece {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  void collect(block_table& blocks, participant_id self, std::size_t looks);

  std::size_t chunk_bytes_;
  std::vector<std::uint32_t> free_;
  boost::circular_buffer<std::uint32_t> lent_;  // oldest first
  std::size_t cut_ = 0;                         // pieces
  piece uncut_;
};

}  // namespace muster::detail
