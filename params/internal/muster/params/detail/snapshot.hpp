// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/memory/detail/shared_block.hpp>

namespace muster::detail {

/// What a version in a block begins with. But for `previous` it does not change once the version is published.
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

/// A version in a block, as one process sees it.
///
/// Thread safety: as a shared_block. Lifetime: keeps the block.
class snapshot {
public:
  snapshot() noexcept = default;
  explicit snapshot(shared_block block) noexcept : block_(std::move(block)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(block_); }
  /// Requires: there is one, of at least sizeof(snapshot_head).
  [[nodiscard]] snapshot_head& head() const noexcept { return *reinterpret_cast<snapshot_head*>(block_.data()); }
  [[nodiscard]] std::span<std::byte> value() const noexcept {
    return block_.bytes().subspan(sizeof(snapshot_head)).first(static_cast<std::size_t>(head().bytes));
  }
  /// Whether what its head says lies in the block.
  [[nodiscard]] bool is_possible() const noexcept {
    return block_.size() >= sizeof(snapshot_head) && head().bytes <= block_.size() - sizeof(snapshot_head);
  }
  [[nodiscard]] const shared_block& block() const noexcept { return block_; }

private:
  shared_block block_;
};

}  // namespace muster::detail
