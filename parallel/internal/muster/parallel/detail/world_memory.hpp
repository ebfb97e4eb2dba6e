// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/base/detail/duration.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

/// The figures of a world, which stand in its header.
struct world_shape {
  std::size_t ranks = 0;
  std::chrono::nanoseconds spin{};
  bool is_crowded = false;  ///< more ranks than processors: whoever looks lets the others run meanwhile
  std::size_t master = 0;   ///< whose replica updates that are reduced begin with

  static constexpr std::size_t most_ranks = 257;  ///< the workers of a pool, and the caller
  [[nodiscard]] std::size_t total_bytes() const noexcept;
};

/// Where a frame lies: here, or in a block. Written before the word that announces it.
template <std::size_t Bytes>
struct frame_area {
  std::uint64_t block;  ///< its name, which the reader borrows; 0: the frame is here
  std::uint64_t bytes;
  alignas(16) std::byte here[Bytes - 16];
};

/// What the caller tells all ranks. Written by the caller only.
struct alignas(128) command_line {
  std::atomic<std::uint64_t> command;      ///< command_word
  alignas(16) frame_area<4080> arguments;  ///< short ones come along with the command
};
static_assert(sizeof(command_line) == 4096);

/// What a rank tells, and what the caller tells it alone.
struct alignas(128) world_line {
  std::atomic<std::uint64_t> answer;  ///< answer_word; written by the rank, and by the caller while there is no process
  std::atomic<std::uint64_t> failed_as;  ///< the number of its failure; written by the rank before it answers `failed`
  alignas(16) frame_area<1008> reply;  ///< of the epoch that it is done with, or has failed at: a short one comes along
  alignas(128) frame_area<1024> exchange;          ///< for the other ranks, from when it has computed
  alignas(128) std::atomic<std::uint64_t> member;  ///< rank_identity::pack, before the first answer
  alignas(128) std::atomic<std::uint32_t> bell;    ///< wait_protocol: where it sleeps; written by whoever wakes it too
  place_word place;                                ///< where its process ran when it last waited; 0: the caller's rank
  alignas(128) frame_area<128> news;               ///< from the caller: what it does not know yet
};
static_assert(sizeof(world_line) == 2432);

/// A world's shared memory: header, modules, command, and a line of each rank. Layout: docs/formats/world.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: caller and ranks use it at once; the figures were read once and do not change.
/// Lifetime: borrows the memory.
class world_memory {
public:
  /// Makes a world in `bytes`. Requires: they are aligned to 128 and as many as shape.total_bytes().
  static world_memory make(std::span<std::byte> bytes, const world_shape& shape) noexcept;
  /// Throws errc::corrupted when `bytes` hold no world.
  static world_memory attach(std::span<std::byte> bytes);

  [[nodiscard]] const world_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] module_directory modules() const noexcept { return modules_; }
  [[nodiscard]] command_line& command() const noexcept { return *command_; }
  /// wait_protocol: where the caller sleeps.
  [[nodiscard]] std::atomic<std::uint32_t>& bell() const noexcept { return *bell_; }
  /// Where the caller's thread ran when it last waited.
  [[nodiscard]] place_word& place() const noexcept { return *place_; }
  /// Counts a failure. Returns its number, from 1: what came because of it gets a greater one.
  [[nodiscard]] std::uint64_t count_failure() const noexcept {
    // Relaxed: all processes see the changes of one word in one order, which follows causes.
    return failures_->fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// Requires: rank < shape().ranks.
  [[nodiscard]] world_line& line(std::size_t rank) const noexcept { return lines_[rank]; }

private:
  world_memory(std::span<std::byte> bytes, const world_shape& shape) noexcept;

  world_shape shape_;
  module_directory modules_;
  std::atomic<std::uint32_t>* bell_;
  place_word* place_;
  std::atomic<std::uint64_t>* failures_;
  command_line* command_;
  world_line* lines_;
};

}  // namespace muster::detail
