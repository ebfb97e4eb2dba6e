// SPDX-License-Identifier: BSL-1.0
#pragma once

// Where a thread runs, told to those that wait for it. A waiter that looks again and again keeps its processor busy; if
// the thread that it waits for is to run on that very processor, it cannot. So each side tells where it runs, and a
// waiter sleeps at once when its partner is there too.
//
// A place is one word: 1 + the number of the processor, 0 for not known. It is a hint: a thread may be moved between
// telling and being asked, and a participant may write what it likes. A wrong one costs a wake-up, or a spin in vain.
//
// Thread safety: safe. Process safety: any participant may die before or after any step.

#include <atomic>
#include <cstdint>

#include <muster/base/current_cpu.hpp>

namespace muster {

using place_word = std::atomic<std::uint32_t>;

/// Tells where the calling thread runs. Cost: two loads; a store only when it has moved, so that waiters keep the line.
inline void tell_place(place_word& own) noexcept {
  const auto here = current_cpu() + 1;
  if (own.load(std::memory_order_relaxed) != here) own.store(here, std::memory_order_relaxed);
}

/// Whether that thread, when it last told, ran on the processor of the calling one.
[[nodiscard]] inline bool shares_processor(const place_word& with) noexcept {
  return with.load(std::memory_order_relaxed) == current_cpu() + 1;
}

}  // namespace muster
