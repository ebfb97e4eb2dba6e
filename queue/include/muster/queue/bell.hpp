// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who rings the bell on which the parent sleeps. `armed` says that the parent wants it rung:
//
//     parent: arm, drain the completion rings once more, sleep
//     worker: push into its ring, must_ring? write to the bell
//
// Arming and looking are sequentially consistent, as are the push and the look at the rings: of parent and worker at
// least one sees the other. One ring per arming is enough, so the workers race for it.
//
// `Word` is std::atomic<std::uint32_t>, or what a model checker puts in its place.
//
// Thread safety: safe.
// Process safety: a worker that dies between must_ring and the ring owes it: recovery arms again, and drains.

#include <atomic>

namespace muster::bell {

/// Asks for a ring. The caller drains once more before it sleeps.
template <class Word>
void arm(Word& armed) noexcept {
  armed.store(1, std::memory_order_seq_cst);
}

/// Nobody needs a ring, for the time being: whoever calls this drains by itself until it arms.
template <class Word>
void disarm(Word& armed) noexcept {
  armed.store(0, std::memory_order_relaxed);
}

/// For a worker that has entered something into its ring: true when it is the one to ring.
template <class Word>
[[nodiscard]] bool must_ring(Word& armed) noexcept {
  return armed.load(std::memory_order_seq_cst) != 0 && armed.exchange(0, std::memory_order_acq_rel) != 0;
}

}  // namespace muster::bell
