// SPDX-License-Identifier: BSL-1.0
#pragma once

// How often a block is held, counted so that a death at any instruction leaves no doubt. A holder that dies between
// two steps may or may not have changed the count; adding and subtracting are not idempotent, so somebody must be able
// to tell. Therefore every change signs the word with the participant and the number of its change; and whoever
// overwrites a signature confirms it first, in a word of the signer's own. A change happened if its signature is in the
// count's word or was confirmed. (After the eras of CXL-SHM, Zhang et al., SOSP 2023.)
//
// A participant makes one change at a time (under its arena's lock) and numbers them consecutively.
//
// `Word` is std::atomic<std::uint64_t>, or what a model checker puts in its place.
//
// Thread safety: safe.
// Process safety: any participant may die before or after any step.

#include <atomic>
#include <cstdint>
#include <optional>

#include <muster/memory/participant.hpp>

namespace muster {

/// The decoded count: `{change:32, last:16, count:16}`. Nobody has ever held the block: 0.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class share_word {
public:
  static constexpr unsigned most = 0xffff;

  constexpr share_word() noexcept = default;
  constexpr explicit share_word(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr share_word(std::uint32_t change, participant_id last, unsigned count) noexcept
      : bits_(std::uint64_t{change} << 32U | std::uint64_t{static_cast<std::uint16_t>(last)} << 16U | count) {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr unsigned count() const noexcept { return bits_ & 0xffffU; }
  /// Who changed it last, and which of its changes that was.
  [[nodiscard]] constexpr participant_id last() const noexcept {
    return static_cast<participant_id>(bits_ >> 16U & 0xffffU);
  }
  [[nodiscard]] constexpr std::uint32_t change() const noexcept { return static_cast<std::uint32_t>(bits_ >> 32U); }

private:
  std::uint64_t bits_ = 0;
};

namespace share_protocol {

/// Notes that the owner's changes up to this one happened. Numbers may wrap.
template <class Word>
void confirm(Word& confirmed, std::uint32_t change) noexcept {
  const auto is_later = [change](std::uint64_t than) {
    return static_cast<std::int32_t>(change - static_cast<std::uint32_t>(than)) > 0;
  };
  auto found = confirmed.load(std::memory_order_relaxed);
  while (is_later(found)) {
    if (confirmed.compare_exchange_weak(found, std::uint64_t{change}, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      return;
    }
  }
}

/// Adds `by`, 1 or -1, and returns the new word. Nothing when nobody holds the block (then nobody may begin to), or
/// when it is held too often. `confirmed_of(participant)` is the address of that one's word; nullptr: there is none.
template <class Word, class ConfirmedOf>
[[nodiscard]] std::optional<share_word> change_count(Word& count, int by, participant_id self, std::uint32_t change,
                                                     ConfirmedOf confirmed_of) noexcept {
  share_word found(count.load(std::memory_order_acquire));
  for (;;) {
    if (found.count() == 0 || (by > 0 && found.count() == share_word::most)) return std::nullopt;
    if (auto* const word = found.last() != self ? confirmed_of(found.last()) : nullptr) confirm(*word, found.change());
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
                              std::uint32_t change) noexcept {
  const share_word found(count.load(std::memory_order_acquire));
  if (found.last() == who && found.change() == change) return true;
  const auto up_to = static_cast<std::uint32_t>(confirmed.load(std::memory_order_acquire));
  return static_cast<std::int32_t>(change - up_to) <= 0;
}

}  // namespace share_protocol

}  // namespace muster
