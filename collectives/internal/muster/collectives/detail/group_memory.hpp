// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/memory/detail/wait/place.hpp>

namespace muster::detail {

/// The figures of a group, which stand in its header.
struct group_shape {
  std::size_t ranks = 0;
  std::size_t inline_bytes = 0;
  std::chrono::nanoseconds timeout{};
  std::chrono::nanoseconds spin{};
  bool is_crowded = false;  ///< more ranks than processors: whoever looks lets the others run meanwhile
  bool is_ordered = false;  ///< group_options::is_ordered_on_devices

  static constexpr std::size_t most_ranks = 4096;
  static constexpr std::size_t most_inline = std::size_t{1} << 20U;

  /// Throws errc::invalid_argument for figures out of their range.
  [[nodiscard]] static group_shape of(std::size_t ranks, std::size_t inline_bytes, std::chrono::nanoseconds timeout,
                                      std::chrono::nanoseconds spin, bool is_crowded);
  [[nodiscard]] std::size_t slot_bytes() const noexcept;
  [[nodiscard]] std::size_t total_bytes() const noexcept;
};

/// What one rank says of the call that it is in: the beginning of a slot. Who reads it has seen its number in
/// `sequence`; it is then the reader's until that one has published his next call but one.
struct call_line {
  using word = std::atomic<std::uint64_t>;

  word sequence;  ///< of the call; published last
  word what;      ///< call_header::pack_what
  word count;
  word fingerprint;
};

/// What a rank tells of itself. Written by the rank, but `bell`, which whoever wakes it writes too.
struct alignas(128) rank_line {
  enum class presence : std::uint32_t { none = 0, joined = 1, left = 2 };
  static constexpr std::uint32_t anybody = 0xffffffff;

  /// Which process: rank_identity::pack; 0: nobody yet. In a group that comes of another it is there from the start,
  /// so that who dies before he joins is missed.
  std::atomic<std::uint64_t> member;
  std::atomic<std::uint32_t> presence_;          ///< published after `member`; whoever makes it `joined` is the rank
  std::atomic<std::uint32_t> survives;           ///< of the group that the survivors make: survival_word
  alignas(64) std::atomic<std::uint32_t> bell;   ///< wait_protocol: where its threads sleep
  std::atomic<std::uint32_t> waits_for;          ///< the rank whose news they want, or anybody
  place_word place;                              ///< where the thread ran that last waited
  alignas(128) std::atomic<std::uint64_t> done;  ///< `{step:56, failed:8}`: how often it has confirmed
  /// A text, before whatever announces it is published.
  template <std::size_t Bytes>
  struct text_area {
    std::uint32_t size;
    std::byte bytes[Bytes - sizeof(std::uint32_t)];
  };
  text_area<504> report;  ///< what failed at the step `done`
  text_area<256> reason;  ///< why this rank aborted the group: apart, since any thread may do that at any time
};
static_assert(sizeof(rank_line) == 896);

/// A group's shared memory: header, a line of each rank, two slots of each rank, and who has sent something to whom.
/// Layout: docs/formats/group.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all members use it at once; the figures were read once and do not change.
/// Lifetime: borrows the memory.
class group_memory {
public:
  using word = std::atomic<std::uint64_t>;

  /// Makes a group in `bytes`. Requires: they are aligned to 128 and as many as shape.total_bytes().
  static group_memory make(std::span<std::byte> bytes, const group_shape& shape) noexcept;
  /// Throws errc::corrupted when `bytes` hold no group.
  static group_memory attach(std::span<std::byte> bytes);

  [[nodiscard]] const group_shape& shape() const noexcept { return shape_; }

  /// 0, or why all operations end: broken_word.
  [[nodiscard]] word& broken() const noexcept { return *broken_; }
  /// Who makes the group of the survivors, and how far he is: succession_word.
  [[nodiscard]] word& succession() const noexcept { return *succession_; }
  /// The block of that group, from when it is offered.
  [[nodiscard]] word& successor() const noexcept { return *successor_; }
  [[nodiscard]] rank_line& line(std::size_t rank) const noexcept { return lines_[rank]; }
  /// The slot that a rank uses for calls of this number.
  [[nodiscard]] call_line& call(std::size_t rank, std::uint64_t sequence) const noexcept {
    return *reinterpret_cast<call_line*>(slot(rank, sequence));
  }
  [[nodiscard]] std::span<std::byte> payload(std::size_t rank, std::uint64_t sequence) const noexcept {
    return {slot(rank, sequence) + sizeof(call_line), shape_.inline_bytes};
  }
  /// 0: `from` has sent nothing to `to` yet. Then the hold on the ring in which it does, written by `from`; and
  /// link_taken once `to` has taken that over, or `from` has taken it back.
  static constexpr std::uint64_t link_taken = std::uint64_t{1} << 63U;  // names nothing
  [[nodiscard]] word& link(std::size_t from, std::size_t to) const noexcept { return links_[from * shape_.ranks + to]; }

private:
  group_memory(std::span<std::byte> bytes, const group_shape& shape) noexcept;
  [[nodiscard]] std::byte* slot(std::size_t rank, std::uint64_t sequence) const noexcept {
    return slots_ + (2 * rank + (sequence & 1U)) * slot_bytes_;
  }

  group_shape shape_;
  std::size_t slot_bytes_;
  word* broken_;
  word* succession_;
  word* successor_;
  rank_line* lines_;
  word* links_;
  std::byte* slots_;
};

}  // namespace muster::detail
