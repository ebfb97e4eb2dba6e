// SPDX-License-Identifier: BSL-1.0
#pragma once

// The steps that change the cells of a message queue. Each is one atomic operation on the cell's word, so at every
// instant either nobody has a cell, or the one whose name is in it:
//
//     empty(lap)   -> writing(lap)   a producer, by compare-and-swap
//     writing(lap) -> ready(lap)     the same: the message is whole
//     ready(lap)   -> reading(lap)   a consumer, by compare-and-swap
//     reading(lap) -> empty(lap+1)   the same: the message is taken
//     reading(lap) -> ready(lap)     the same: puts it back in its place; or the host, of a dead one
//     writing(lap) -> empty(lap+1)   the same: gives up; or the host, of a dead one. Whoever looks there finds the lap
//                                    over, and goes on to the next cell
//
// Head and tail are hints from which on one looks: what a cell is in its lap decides, and whoever finds a hint behind
// helps it on. They may lag behind and never run ahead, because a position is passed only when its cell is beyond it.
//
// Whoever overwrites words cannot make these loop: only words that are exactly right are claimed, and every look is
// bounded. That a look found nothing may be his doing, and find_damage_at_tail() and find_damage_at_head() tell.
//
// `Ring` gives the words: capacity(), cell(index), head(), tail(), and pass_head(at), pass_tail(at), which move a hint
// from `at` to the next position unless somebody else has. The operations are sequentially consistent because whoever
// sleeps relies on it: wait_protocol.hpp.
//
// Thread safety: safe, that is their purpose.
// Process safety: any participant may die before or after any step.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <muster/queue/detail/message_word.hpp>

namespace muster::message_protocol {

/// How many cells one look comes over: a bound, for a ring whose words somebody has overwritten.
template <class Ring>
[[nodiscard]] std::size_t most_looks(const Ring& ring) noexcept {
  return 2 * ring.capacity() + 64;
}

/// Where the next message can be written; nothing when the ring is full.
template <class Ring>
[[nodiscard]] std::optional<ring_position> find_empty(Ring& ring) noexcept {
  auto at = ring.tail();
  for (auto looks = most_looks(ring); looks > 0; --looks) {
    const message_word found(ring.cell(at.index()).load(std::memory_order_seq_cst));
    if (found.bits() == message_word::empty(at.lap()).bits()) return at;
    const auto ahead = laps_ahead(found.lap(), at.lap());
    if (ahead < 0) return std::nullopt;  // what was written there a lap ago is still there
    if (ahead == 0 && !found.is_possible()) return std::nullopt;
    ring.pass_tail(at);
    at = ring.tail();
  }
  return std::nullopt;
}

/// What a look for a message found.
struct look {
  enum class finding : std::uint8_t {
    ready,
    nothing,  ///< no message, except those that the looker itself is reading
    pending   ///< one is being written, or read by somebody else who may put it back
  };
  finding what = finding::nothing;
  ring_position at = {};
};

/// The first message that nobody reads, unless one before it is being written.
template <class Ring>
[[nodiscard]] look find_ready(Ring& ring, participant_id self) noexcept {
  auto at = ring.head();
  bool leads = true;  // nothing between the head and here
  auto otherwise = look::finding::nothing;
  for (auto looks = most_looks(ring); looks > 0; --looks) {
    const message_word found(ring.cell(at.index()).load(std::memory_order_seq_cst));
    if (found.bits() == message_word::ready(at.lap()).bits()) return {.what = look::finding::ready, .at = at};
    const auto ahead = laps_ahead(found.lap(), at.lap());
    if (ahead < 0) break;  // once around: all are being read
    if (ahead == 0 && found.state() != message_state::reading) {
      if (found.state() != message_state::empty) otherwise = look::finding::pending;
      break;
    }
    if (ahead > 0 && leads) {
      ring.pass_head(at);
      at = ring.head();
      continue;
    }
    if (ahead == 0) leads = false;
    if (ahead == 0 && found.owner() != self) otherwise = look::finding::pending;
    at = at.next(ring.capacity());
  }
  return {.what = otherwise, .at = at};
}

/// Claims the next empty cell for a message; nothing when the ring is full.
template <class Ring>
[[nodiscard]] std::optional<ring_position> claim_empty(Ring& ring, participant_id self) noexcept {
  for (;;) {
    const auto found = find_empty(ring);
    if (!found) return std::nullopt;
    const auto at = *found;
    auto expected = message_word::empty(at.lap()).bits();
    const message_word mine(at.lap(), self, message_state::writing);
    if (ring.cell(at.index()).compare_exchange_strong(expected, mine.bits(), std::memory_order_seq_cst)) {
      ring.pass_tail(at);
      return at;
    }
  }
}

/// Claims the first message that can be read: `ready` and where it is, or why there is none.
template <class Ring>
[[nodiscard]] look claim_ready(Ring& ring, participant_id self) noexcept {
  for (;;) {
    const auto found = find_ready(ring, self);
    if (found.what != look::finding::ready) return found;
    auto expected = message_word::ready(found.at.lap()).bits();
    const message_word mine(found.at.lap(), self, message_state::reading);
    if (ring.cell(found.at.index()).compare_exchange_strong(expected, mine.bits(), std::memory_order_seq_cst)) {
      return found;
    }
  }
}

/// The message in a cell that the caller writes or reads can be read by anybody.
template <class Ring>
void make_ready(Ring& ring, ring_position at) noexcept {
  ring.cell(at.index()).exchange(message_word::ready(at.lap()).bits(), std::memory_order_seq_cst);
}

/// A cell that the caller writes or reads is free for the next lap.
template <class Ring>
void make_empty(Ring& ring, ring_position at) noexcept {
  ring.cell(at.index()).exchange(message_word::empty(at.next_lap()).bits(), std::memory_order_seq_cst);
  ring.pass_head(at);
}

/// Where the tail is, if its cell is as nobody can have left it. The tail is read again, so that the cell was so while
/// the tail was there: it is a lap behind and in use, or in its lap, or emptied for the next one.
template <class Ring>
[[nodiscard]] std::optional<ring_position> find_damage_at_tail(const Ring& ring) noexcept {
  const auto at = ring.tail();
  const message_word found(ring.cell(at.index()).load(std::memory_order_seq_cst));
  const auto ahead = laps_ahead(found.lap(), at.lap());
  const bool is_empty = found.state() == message_state::empty;
  const bool fits = ahead == 0 || (ahead == 1 && is_empty) || (ahead == -1 && !is_empty);
  if ((fits && found.is_possible()) || ring.tail() != at) return std::nullopt;
  return at;
}

/// The same of the head, and of what a look for a message comes over. The cell at the head is in the head's lap, or
/// ahead of it: whoever emptied it may not have passed the head yet, while another's look, which had begun there, went
/// on over cells that were being read, as far as a look goes.
template <class Ring>
[[nodiscard]] std::optional<ring_position> find_damage_at_head(const Ring& ring) noexcept {
  const auto most_ahead = static_cast<std::int64_t>(most_looks(ring) / ring.capacity()) + 2;
  const auto head = ring.head();
  auto at = head;
  for (std::size_t looks = ring.capacity(); looks > 0; --looks) {
    const message_word found(ring.cell(at.index()).load(std::memory_order_seq_cst));
    const auto ahead = laps_ahead(found.lap(), at.lap());
    if (!found.is_possible()) return at;
    if (at == head && (ahead < 0 || ahead > most_ahead)) return ring.head() == head ? std::optional(at) : std::nullopt;
    if (ahead < 0 || (ahead == 0 && !found.has_message())) break;
    at = at.next(ring.capacity());
  }
  return std::nullopt;
}

/// Takes a cell from a dead participant, if it has it. A message that it was writing was never pushed; one that it was
/// reading is there again. Requires: called in the host, after the kernel confirmed the death.
template <class Word>
void recover(Word& cell, participant_id dead) noexcept {
  const message_word found(cell.load(std::memory_order_seq_cst));
  if (found.owner() != dead) return;
  auto expected = found.bits();
  const auto repaired = found.state() == message_state::writing ? message_word::empty((found.lap() + 1) & lap_mask)
                                                                : message_word::ready(found.lap());
  if (found.state() != message_state::writing && found.state() != message_state::reading) return;
  static_cast<void>(cell.compare_exchange_strong(expected, repaired.bits(), std::memory_order_seq_cst));
}

}  // namespace muster::message_protocol
