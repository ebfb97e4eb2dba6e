// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who rings the bells on which the parent sleeps: the supervisor's and, for a pool with a loop of the program's, that
// loop's. `armed` says which of them the parent wants rung:
//
//     parent: arm, drain the completion rings once more, sleep
//     worker: push into its ring, take_armed, write to those bells
//
// Arming and looking are sequentially consistent, as are the push and the look at the rings: of parent and worker at
// least one sees the other. One ring per arming is enough, so the workers race for it.
//
// `Word` is std::atomic<std::uint32_t>, or what a model checker puts in its place.
//
// Thread safety: safe.
// Process safety: a worker that dies between take_armed and the ring owes it: recovery arms again, and drains.

#include <atomic>
#include <cstdint>

namespace muster::bell {

/// Whose bell: bits of `armed`.
inline constexpr std::uint32_t of_supervisor = 1;
inline constexpr std::uint32_t of_loop = 2;

/// Asks for a ring. The caller drains once more before it sleeps.
template <class Word>
void arm(Word& armed, std::uint32_t whose = of_supervisor) noexcept {
  armed.store(whose, std::memory_order_seq_cst);
}

/// Nobody needs a ring, for the time being: whoever calls this drains by itself until it arms.
template <class Word>
void disarm(Word& armed) noexcept {
  armed.store(0, std::memory_order_relaxed);
}

/// For a worker that has entered something into its ring: the bells that it is to ring, mostly none.
template <class Word>
[[nodiscard]] std::uint32_t take_armed(Word& armed) noexcept {
  if (armed.load(std::memory_order_seq_cst) == 0) return 0;
  return static_cast<std::uint32_t>(armed.exchange(0, std::memory_order_acq_rel));
}

}  // namespace muster::bell
