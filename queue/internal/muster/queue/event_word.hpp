// SPDX-License-Identifier: BSL-1.0
#pragma once

// The word of an event, and how somebody who waits for it falls asleep and is woken, so that no set() is lost:
//
//     sleeper: look; not set? mark the word as awaited by compare-and-swap; sleep while it stays as it is
//     setter:  {one more set, set, not awaited} by compare-and-swap; was it awaited? wake all who sleep on it
//
// All touch the one word by read-modify-writes: either the mark comes first, then the setter finds it; or the setter
// comes first, then the mark fails and the sleeper looks again. Sets are counted, so that whoever waits notices a set()
// that was undone before he looked.
//
// `Word` is std::atomic<std::uint64_t>, or what a model checker puts in its place. Layout: docs/formats/event.md.
//
// Thread safety: safe.
// Process safety: any participant may die before or after any step. A setter that dies before its wake owes it: who
// sleeps on this word sleeps on domain::deaths() too. A sleeper that dies leaves at most the mark, which costs the next
// setter a wake that nobody needs.

#include <atomic>
#include <cstdint>
#include <optional>

namespace muster::event_protocol {

inline constexpr std::uint64_t set_bit = 1;
inline constexpr std::uint64_t awaited_bit = 2;  ///< somebody may sleep on the word
inline constexpr std::uint64_t one_set = 4;      ///< the bits above count the sets

[[nodiscard]] constexpr bool is_set(std::uint64_t found) noexcept { return (found & set_bit) != 0; }
[[nodiscard]] constexpr std::uint64_t sets(std::uint64_t found) noexcept { return found / one_set; }

/// True when somebody may sleep on the word: wake all.
/// Release: what was done before is visible to whoever sees this set, or a later one.
template <class Word>
[[nodiscard]] bool set(Word& word) noexcept {
  auto found = word.load(std::memory_order_relaxed);
  const auto after = [&found] { return ((found | awaited_bit) - awaited_bit + one_set) | set_bit; };
  while (!word.compare_exchange_weak(found, after(), std::memory_order_release, std::memory_order_relaxed)) continue;
  return (found & awaited_bit) != 0;
}

/// Acquire: whoever clears sees what was done before the sets that he undoes.
template <class Word>
void clear(Word& word) noexcept {
  constexpr auto acquire = std::memory_order_acquire;
  constexpr auto relaxed = std::memory_order_relaxed;
  auto found = word.load(relaxed);
  while (is_set(found) && !word.compare_exchange_weak(found, found & ~set_bit, acquire, relaxed)) continue;
}

/// Marks the word as awaited. Returns the value to sleep on, or nothing when there is no reason to sleep, because
/// `is_over(value)` holds.
template <class Word, class IsOver>
[[nodiscard]] std::optional<std::uint64_t> prepare_sleep(Word& word, IsOver is_over) {
  auto found = word.load(std::memory_order_acquire);
  while (!is_over(found)) {
    if ((found & awaited_bit) != 0) return found;
    if (word.compare_exchange_weak(found, found | awaited_bit, std::memory_order_acquire, std::memory_order_acquire)) {
      return found | awaited_bit;
    }
  }
  return std::nullopt;
}

}  // namespace muster::event_protocol
