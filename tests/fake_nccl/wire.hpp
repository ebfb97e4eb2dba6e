// SPDX-License-Identifier: BSL-1.0
#pragma once

// The memory that the ranks of a communicator share.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <nccl.h>

namespace fake_nccl {

inline constexpr std::size_t most_ranks = 32;

/// Bytes on their way from one rank to another.
///
/// Thread safety: one thread puts, one takes; of any process.
class ring {
public:
  /// As many as there is room for; returns how many.
  std::size_t put(const std::byte* from, std::size_t bytes) noexcept;
  /// As many as there are; returns how many.
  std::size_t take(std::byte* to, std::size_t bytes) noexcept;

private:
  static constexpr std::size_t room = std::size_t{16} << 10U;

  alignas(64) std::atomic<std::uint64_t> put_;
  alignas(64) std::atomic<std::uint64_t> taken_;
  alignas(64) std::byte bytes_[room];
};

/// What a rank says of itself. `is_here` is published last.
struct card {
  std::atomic<std::uint32_t> is_here;
  std::int32_t physical;  ///< its device, among all
  std::uint64_t host;
};

/// Zero bytes are a board that nobody has joined yet.
struct board {
  std::uint64_t magic;
  card cards[most_ranks];
  ring rings[most_ranks][most_ranks];  ///< from, to
};

/// A mapping of it.
using board_mapping = std::shared_ptr<board>;

/// A new one, as an id that other processes find it by, while this process lives and nobody has called forget().
/// Throws ncclResult_t.
[[nodiscard]] ncclUniqueId make_board();
[[nodiscard]] board_mapping open_board(const ncclUniqueId& id);
/// Nobody needs to find it any more. Does nothing in processes that have not made it.
void forget_board(const ncclUniqueId& id) noexcept;

}  // namespace fake_nccl
