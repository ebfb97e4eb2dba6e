// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/base/assert.hpp>

namespace muster {

/// What a lane's entry says: which slot to look at, for a task of which generation. `{lap:16, generation:32, slot:16}`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct lane_hint {
  std::uint32_t generation = 0;
  std::uint16_t slot = 0;

  friend constexpr bool operator==(const lane_hint&, const lane_hint&) noexcept = default;
};

/// A ring of hints from the parent to workers.
///
/// An entry is only a hint: the slot's word decides. So an entry may be stale, a task may have entries in several
/// lanes, and every worker that finds the entry at the head used up helps the head past it: a worker that dies between
/// claiming a task and moving the head holds nobody up. The lap number in the entry is also the doorbell: there is no
/// shared tail.
///
/// Thread safety: one thread at a time pushes; any number look and advance.
/// Process safety: the parent pushes, workers look; a worker may die at any instruction.
template <class Word>
class basic_lane {
public:
  /// An entry with the ticket it was found under.
  struct found {
    std::uint64_t ticket = 0;
    lane_hint hint;
    bool some = false;
  };

  /// Lifetime: borrows the shared words. Requires: the number of entries is a power of two.
  basic_lane(Word& head, std::span<Word> entries) noexcept
      : head_(&head), entries_(entries), lap_shift_(static_cast<unsigned>(std::countr_zero(entries.size()))) {
    MUSTER_ASSERT(std::has_single_bit(entries.size()));
  }

  /// The oldest entry, if there is one.
  [[nodiscard]] found look() const noexcept {
    for (;;) {
      const auto ticket = head_->load(std::memory_order_acquire);
      const auto entry = entry_of(ticket).load(std::memory_order_acquire);
      if (lap_in(entry) == lap_of(ticket)) return {.ticket = ticket, .hint = hint_in(entry), .some = true};
      if (head_->load(std::memory_order_acquire) == ticket) return {};
    }
  }

  [[nodiscard]] bool has_entry() const noexcept { return look().some; }

  /// Moves the head past an entry that was found; it is no failure that somebody else did.
  void advance(const found& entry) noexcept {
    auto ticket = entry.ticket;
    // Those who lost the entry to another look first: a failed exchange takes the line away from everybody.
    if (head_->load(std::memory_order_relaxed) != ticket) return;
    head_->compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  /// Whether the pusher, whose private count is `ticket`, may push.
  [[nodiscard]] bool has_room(std::uint64_t ticket) const noexcept {
    return ticket - head_->load(std::memory_order_acquire) < entries_.size();
  }

  /// How many entries have been used up. They lie on a line that workers write to: looking costs a miss.
  [[nodiscard]] std::uint64_t head() const noexcept { return head_->load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t capacity() const noexcept { return entries_.size(); }

  /// Enters a hint under `ticket`. Requires: has_room(ticket).
  void put(std::uint64_t ticket, lane_hint hint) noexcept {
    // Release: whoever sees the entry sees the slot's word of that generation.
    entry_of(ticket).store(pack(ticket, hint), std::memory_order_release);
  }

  /// The entry under `ticket`, if it is there. For the pusher, who looks whether what it pushed is intact.
  [[nodiscard]] found peek(std::uint64_t ticket) const noexcept {
    const auto entry = entry_of(ticket).load(std::memory_order_relaxed);
    return {.ticket = ticket, .hint = hint_in(entry), .some = lap_in(entry) == lap_of(ticket)};
  }

  /// Makes it empty, whatever others have written over it; the pusher goes on with `ticket`. Requires: `ticket` is not
  /// less than the count of what was pushed, so that nobody who is just looking moves the head.
  void reset(std::uint64_t ticket) noexcept {
    const auto round = entries_.size();
    for (auto each = ticket; each != ticket + round; ++each) {
      entry_of(each).store(pack(each - round, {}), std::memory_order_relaxed);
    }
    head_->store(ticket, std::memory_order_release);
  }

  /// The same, if there is room.
  [[nodiscard]] bool push(std::uint64_t ticket, lane_hint hint) noexcept {
    if (!has_room(ticket)) return false;
    put(ticket, hint);
    return true;
  }

private:
  static constexpr std::uint64_t lap_mask = 0xffff;

  [[nodiscard]] Word& entry_of(std::uint64_t ticket) const noexcept { return entries_[ticket & (entries_.size() - 1)]; }
  [[nodiscard]] std::uint64_t lap_of(std::uint64_t ticket) const noexcept {
    return ((ticket >> lap_shift_) + 1) & lap_mask;  // an entry that was never written has lap 0
  }
  [[nodiscard]] static std::uint64_t lap_in(std::uint64_t entry) noexcept { return entry >> 48U; }
  [[nodiscard]] static lane_hint hint_in(std::uint64_t entry) noexcept {
    return {.generation = static_cast<std::uint32_t>(entry >> 16U), .slot = static_cast<std::uint16_t>(entry)};
  }
  [[nodiscard]] std::uint64_t pack(std::uint64_t ticket, lane_hint hint) const noexcept {
    return lap_of(ticket) << 48U | std::uint64_t{hint.generation} << 16U | hint.slot;
  }

  Word* head_;
  std::span<Word> entries_;
  unsigned lap_shift_;
};

using lane = basic_lane<std::atomic<std::uint64_t>>;

}  // namespace muster
