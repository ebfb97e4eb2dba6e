// SPDX-License-Identifier: BSL-1.0
#pragma once

// Where a thread runs, told to those that wait for it. A waiter that looks again and again keeps its processor busy; if
// the thread that it waits for is to run on that very processor, it cannot. So each side tells where it runs, and a
// waiter sleeps at once when its partner is there too.
//
// A place is one word: 1 + the number of the processor, 0 for not known, and a bit for a thread that is on its way
// there, or that was woken and has not told anew. It is a hint: a thread may be moved between telling and being asked,
// and a participant may write what it likes. A wrong one costs a wake-up, or some looking in vain.
//
// Thread safety: safe. Process safety: any participant may die before or after any step.

#include <atomic>
#include <cstdint>

#include <muster/base/detail/current_cpu.hpp>

namespace muster {

using place_word = std::atomic<std::uint32_t>;

namespace place_parts {
inline constexpr std::uint32_t on_its_way = 1U << 31U;
inline constexpr std::uint32_t woken = 1U << 30U;
inline constexpr std::uint32_t processor = woken - 1;
}  // namespace place_parts

/// Tells where the calling thread runs. Cost: two loads; a store only when it has moved, so that waiters keep the line.
inline void tell_place(place_word& own) noexcept {
  const auto here = current_cpu() + 1;
  if (own.load(std::memory_order_relaxed) != here) own.store(here, std::memory_order_relaxed);
}
/// Tells that the calling thread is about to move to that processor.
inline void tell_move(place_word& own, unsigned cpu) noexcept {
  own.store((cpu + 1) | place_parts::on_its_way, std::memory_order_relaxed);
}
/// By the thread that wakes another: where that one slept, it is mostly to run; but it has not told so.
inline void note_woken(place_word& whose) noexcept {
  whose.store(whose.load(std::memory_order_relaxed) | place_parts::woken, std::memory_order_relaxed);
}

/// What can be expected of looking, in the order of weight: where one waits for several, the greatest counts.
enum class prospect : std::uint8_t {
  usual,   ///< what is waited for may come at any time
  woken,   ///< the same; it was woken just now, and may have been put where nothing says so
  coming,  ///< it is on its way to another processor, which takes as long as a wake-up
  futile   ///< it is to run on this processor
};

/// For a waiter: of the thread that tells this place.
[[nodiscard]] inline prospect prospect_of(const place_word& partner) noexcept {
  const auto place = partner.load(std::memory_order_relaxed);
  if ((place & place_parts::processor) == current_cpu() + 1) {
    return (place & place_parts::on_its_way) == 0 ? prospect::futile : prospect::coming;
  }
  if ((place & place_parts::on_its_way) != 0) return prospect::coming;
  return (place & place_parts::woken) != 0 ? prospect::woken : prospect::usual;
}

/// Whether that thread, when it last told, ran on the processor of the calling one.
[[nodiscard]] inline bool shares_processor(const place_word& with) noexcept {
  return prospect_of(with) == prospect::futile;
}

}  // namespace muster
