// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sched.h>

#include <cstdint>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>

namespace muster {

/// Tells the processor that this thread spins, so that its sibling and its power budget profit.
///
/// Thread safety: safe.
inline void relax_processor() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// A count that rises steadily, some 1 000 to 5 000 times per microsecond; for telling short from long.
///
/// Thread safety: safe. Cost: less than a reading of the clock.
[[nodiscard]] inline std::uint64_t processor_ticks() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
#endif
}

/// Asks for the cache line of `at` to write to it soon: one transfer instead of two when it is read first.
///
/// Thread safety: safe.
inline void prefetch_for_write(const void* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));  // also where the compiler may not assume it
#else
  __builtin_prefetch(at, 1);
#endif
}

/// Calls `done` until it answers true or `budget` is used up; returns its last answer. For threads that are known to
/// share processors with those that they wait for: it lets others run between its looks. With a zero budget `done` is
/// asked once.
///
/// Thread safety: as `done`.
template <class Done>
bool yield_until(std::chrono::nanoseconds budget, Done done) {
  if (done()) return true;
  if (budget <= std::chrono::nanoseconds::zero()) return false;
  const auto end = clock::now() + budget;
  do {
    ::sched_yield();
    if (done()) return true;
  } while (clock::now() < end);
  return false;
}

}  // namespace muster
