// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/memory/detail/shared_block.hpp>

namespace muster::detail {

/// What lies at the end of a version's block. But for `previous` it does not change once the version is published.
struct alignas(64) snapshot_head {
  static constexpr std::size_t most_dimensions = 8;

  std::uint64_t version;
  std::atomic<std::uint64_t> previous;  ///< hold on the version before, which goes along; 0: none is kept
  std::uint64_t type;                   ///< fingerprint
  std::uint64_t bytes;                  ///< of the value
  std::uint32_t is_tensor;              ///< its elements, in row-major order; else a frame
  std::uint32_t dtype;
  std::uint64_t dimensions;
  std::array<std::uint64_t, most_dimensions> sizes;
};
static_assert(sizeof(snapshot_head) == 128);

/// A version in a block, as one process sees it: the value, from the block's beginning on, and the head at its end. So
/// a tensor that has been made before, and leaves that much room, can become a version where it lies.
///
/// Thread safety: as a shared_block. Lifetime: keeps the block.
class snapshot {
public:
  snapshot() noexcept = default;
  /// One that was found: what was received is as long as it is.
  explicit snapshot(shared_block block) noexcept : snapshot(block, block.size()) {}
  /// One that is made; `capacity`: of the block (arena::capacity_of).
  snapshot(shared_block block, std::size_t capacity) noexcept : block_(std::move(block)), capacity_(capacity) {}

  /// Where the head lies in a block of so many bytes. Requires: it is larger.
  [[nodiscard]] static constexpr std::size_t place_of_head(std::size_t block_bytes) noexcept {
    return (block_bytes - sizeof(snapshot_head)) / alignof(snapshot_head) * alignof(snapshot_head);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(block_); }
  /// Requires: there is one, of at least sizeof(snapshot_head).
  [[nodiscard]] snapshot_head& head() const noexcept {
    return *reinterpret_cast<snapshot_head*>(block_.data() + place_of_head(capacity_));
  }
  [[nodiscard]] std::span<std::byte> value() const noexcept {
    return {block_.data(), static_cast<std::size_t>(head().bytes)};
  }
  /// Whether what its head says lies in the block.
  [[nodiscard]] bool is_possible() const noexcept {
    return capacity_ >= sizeof(snapshot_head) && head().bytes <= place_of_head(capacity_);
  }
  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

private:
  shared_block block_;
  std::size_t capacity_ = 0;
};

}  // namespace muster::detail
