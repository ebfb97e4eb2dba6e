// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a worker falls asleep and is woken, so that no news is lost between its last look and its sleep:
//
//     worker: parked = 1, enter the set, look; nothing? sleep while parked == 1; leave the set
//     others: write the news, take it out of the set; was it there? parked = 0, wake
//
// All that touch the set do so by a read-modify-write (see idle_set): either the worker's entry comes first, then it is
// found and woken; or the other's look comes first, then the worker's last look sees the news.
//
// `Word` is std::atomic<std::uint32_t>, or what a model checker puts in its place; `Set` a basic_idle_set. The system
// calls are passed in: `sleep()` sleeps while parked == 1 and may return for no reason, `rouse(parked)` wakes who
// sleeps there.
//
// Thread safety: safe; a worker's word is parked on by that worker alone.
// Process safety: any participant may die before or after any step. One that dies between taking a worker out of the
// set and waking it owes that wake: recovery wakes everybody.

#include <atomic>
#include <cstddef>

namespace muster::parking {

/// Sleeps until woken, or not at all if `is_wanted()` says that there is something to do.
template <class Word, class Set, class IsWanted, class Sleep>
void park(Word& parked, Set sleeping, std::size_t self, IsWanted is_wanted, Sleep sleep) {
  parked.store(1, std::memory_order_relaxed);  // published by the insertion
  sleeping.insert(self);
  if (is_wanted()) {
    parked.store(0, std::memory_order_relaxed);
  } else {
    while (parked.load(std::memory_order_acquire) == 1) sleep();
  }
  // Also after a late wake that was meant for an earlier sleep: nobody may waste a wake on a worker that is awake.
  sleeping.remove(self);
}

/// Wakes whoever sleeps on the word. Requires: the caller took it out of the set, or tried to.
template <class Word, class Rouse>
void unpark(Word& parked, Rouse rouse) {
  parked.store(0, std::memory_order_release);
  rouse(parked);
}

/// Wakes that worker if it sleeps; true when it did.
template <class Word, class Set, class Rouse>
bool wake(Word& parked, Set sleeping, std::size_t worker, Rouse rouse) {
  if (!sleeping.remove(worker)) return false;
  unpark(parked, rouse);
  return true;
}

/// Wakes the first who sleeps; true when somebody did. `parked_of(worker)` is the address of that worker's word, or
/// nullptr when the bit is nobody's: somebody has overwritten the set.
template <class Set, class ParkedOf, class Rouse>
bool wake_any(Set sleeping, ParkedOf parked_of, Rouse rouse) {
  while (const auto worker = sleeping.remove_first()) {
    auto* const parked = parked_of(*worker);
    if (parked == nullptr) continue;
    unpark(*parked, rouse);
    return true;
  }
  return false;
}

/// Calls `spin()` while others may rely on this worker to find what they publish; returns its answer. They relied on it
/// until it left the set: so a worker that goes to sleep looks once more after this, as park() does. One worker at a
/// time: where another one spins, false.
template <class Set, class Spin>
bool spin_alone(Set spinning, std::size_t self, Spin spin) {
  if (!spinning.insert_alone(self)) return false;
  const bool found = spin();
  spinning.remove(self);
  return found;
}

}  // namespace muster::parking
