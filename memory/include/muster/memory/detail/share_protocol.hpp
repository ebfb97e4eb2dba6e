// SPDX-License-Identifier: BSL-1.0
#pragma once

// How often a block is held, counted so that a death at any instruction leaves no doubt. A holder that dies between
// two steps may or may not have changed the count; adding and subtracting are not idempotent, so somebody must be able
// to tell. Therefore every change signs the word with the participant and the number of its change; and whoever
// overwrites a signature confirms it first, in a word of the signer's own. A change happened if its signature is in the
// count's word or was confirmed. (After the eras of CXL-SHM, Zhang et al., SOSP 2023.)
//
// A participant makes one change at a time (under its arena's lock) and numbers them consecutively. The numbers have 64
// bits and do not wrap; a signature has room for the lower 32. Which number that is follows from the signer's latest,
// which it writes down before it signs: the last with that half that it has come to. Where the signature is 2^32
// changes old or more, that is a later one. It happened as well, unless it is the one that the signer is about to make:
// of two that are a multiple of 2^32 apart to the one, and only while it is about to make it.
//
// `Word` is std::atomic<std::uint64_t>, or what a model checker puts in its place. `Entry` is a participant's: a `Word`
// `change`, the number of its latest, and another, `confirmed`, up to which they are known to have happened.
//
// Thread safety: safe.
// Process safety: any participant may die before or after any step.

#include <atomic>
#include <cstdint>
#include <optional>

#include <muster/memory/detail/participant.hpp>

namespace muster {

/// The decoded count: `{change:32, last:16, count:16}`, of the number of the change its lower half. Nobody has ever
/// held the block: 0.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class share_word {
public:
  static constexpr unsigned most = 0xffff;

  constexpr share_word() noexcept = default;
  constexpr explicit share_word(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr share_word(std::uint64_t change, participant_id last, unsigned count) noexcept
      : bits_(change << 32U | std::uint64_t{static_cast<std::uint16_t>(last)} << 16U | count) {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr unsigned count() const noexcept { return bits_ & 0xffffU; }
  /// Who changed it last, and the lower half of which of its changes that was.
  [[nodiscard]] constexpr participant_id last() const noexcept {
    return static_cast<participant_id>(bits_ >> 16U & 0xffffU);
  }
  [[nodiscard]] constexpr std::uint32_t change() const noexcept { return static_cast<std::uint32_t>(bits_ >> 32U); }

private:
  std::uint64_t bits_ = 0;
};

namespace share_protocol {

/// Notes that the signer's changes up to the one with this lower half happened.
template <class Entry>
void confirm(Entry& signer, std::uint32_t half) noexcept {
  // Whoever has read the signature sees a number that is at least as late: it was written first.
  const std::uint64_t latest = signer.change.load(std::memory_order_relaxed);
  const std::uint32_t since = static_cast<std::uint32_t>(latest) - half;
  if (since > latest) return;  // nobody has signed so: somebody has overwritten one of them
  const auto change = latest - since;
  auto found = signer.confirmed.load(std::memory_order_relaxed);
  while (found < change &&
         !signer.confirmed.compare_exchange_weak(found, change, std::memory_order_acq_rel, std::memory_order_relaxed))
    continue;
}

/// Adds `by`, 1 or -1, and returns the new word. Nothing when nobody holds the block (then nobody may begin to), or
/// when it is held too often. `entry_of(participant)` is the address of that one's; nullptr: there is none.
/// The count does not say whose it is: the block may have ended, and another may be counted there by now. Who has added
/// keeps the one that it is, and then looks which.
template <class Word, class EntryOf>
[[nodiscard]] std::optional<share_word> change_count(Word& count, int by, participant_id self, std::uint64_t change,
                                                     EntryOf entry_of) noexcept {
  share_word found(count.load(std::memory_order_acquire));
  for (;;) {
    if (found.count() == 0 || (by > 0 && found.count() == share_word::most)) return std::nullopt;
    if (auto* const signer = found.last() != self ? entry_of(found.last()) : nullptr) confirm(*signer, found.change());
    const share_word changed(change, self, found.count() + static_cast<unsigned>(by));
    auto expected = found.bits();
    if (count.compare_exchange_weak(expected, changed.bits(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return changed;
    }
    found = share_word(expected);
  }
}

/// Whether a change of somebody who is dead took place. The count is read first: whoever overwrites the signature after
/// that has confirmed it before.
template <class Word>
[[nodiscard]] bool took_place(const Word& count, const Word& confirmed, participant_id who,
                              std::uint64_t change) noexcept {
  const share_word found(count.load(std::memory_order_acquire));
  if (found.last() == who && found.change() == static_cast<std::uint32_t>(change)) return true;
  return change <= confirmed.load(std::memory_order_acquire);
}

}  // namespace share_protocol

}  // namespace muster
