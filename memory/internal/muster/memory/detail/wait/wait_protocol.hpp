// SPDX-License-Identifier: BSL-1.0
#pragma once

// How participants sleep until something can be done, and are woken one at a time. A word `{sequence:31, waiting:1}` is
// the futex of all who wait for the same thing, and works as follows.
//
//     sleeper:   announce(), look again, sleep while the word is what announce() returned
//     waker:     make it possible; if is_awaited(): raise(), wake one, and if nobody slept withdraw()
//
// Nobody sleeps through it. Making it possible, announce(), is_awaited() and the second look are sequentially
// consistent: if the waker does not see the announcement, the sleeper's look comes after what the waker did. If it does
// see it, either the sleeper is in the kernel, and one such is woken, or it is not yet: then raise() keeps it from
// falling asleep. The waiting bit is taken back only from the very value that raise() left: every announcement changes
// the word, so whoever has announced himself since keeps the bit.
//
// One wake may go to somebody who cannot do anything yet, when things become possible in another order than they are
// done in (a message behind one that is being written). Therefore whoever has done something and finds that more can be
// done, and that somebody waits, wakes the next. What a dead participant owed is made up for by the word of the
// domain's deaths, on which all sleep too.
//
// `Word` is std::atomic<std::uint32_t>, or what a model checker puts in its place.
//
// Thread safety: safe.
// Process safety: any participant may die before or after any step.

#include <atomic>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster::wait_protocol {

inline constexpr std::uint32_t waiting = 1;
inline constexpr std::uint32_t step = 2;

/// Says that somebody is about to sleep. Returns the value to sleep on.
template <class Word>
[[nodiscard]] std::uint32_t announce(Word& word) noexcept {
  auto found = word.load(std::memory_order_relaxed);
  for (;;) {
    const auto announced = (found + step) | waiting;
    if (word.compare_exchange_weak(found, announced, std::memory_order_seq_cst, std::memory_order_relaxed)) {
      return announced;
    }
  }
}

template <class Word>
[[nodiscard]] bool is_awaited(const Word& word) noexcept {
  return (word.load(std::memory_order_seq_cst) & waiting) != 0;
}

/// Keeps those who are about to sleep awake. Returns the value that the word has then.
template <class Word>
[[nodiscard]] std::uint32_t raise(Word& word) noexcept {
  return word.fetch_add(step, std::memory_order_seq_cst) + step;
}

/// Nobody slept: the next one to come need not wake anybody, unless somebody has announced himself since.
template <class Word>
void withdraw(Word& word, std::uint32_t raised) noexcept {
  static_cast<void>(word.compare_exchange_strong(raised, raised & ~waiting, std::memory_order_seq_cst));
}

}  // namespace muster::wait_protocol
