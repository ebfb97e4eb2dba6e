// SPDX-License-Identifier: BSL-1.0
#pragma once

// Sleeping on a word of memory and waking who sleeps there: the only way muster's processes wait for one another.
//
// A futex sleeps only if the word still holds the value that the caller saw, so a wake between looking and sleeping
// is never lost. std::atomic::wait cannot serve: it uses process-private futexes and process-local waiter pools.
//
// Thread safety: all functions are safe to call from any thread.
// Process safety: with futex_scope::shared the word may lie in memory that several processes map.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/base/clock.hpp>

namespace muster {

enum class futex_scope {
  shared,         ///< sleepers and wakers may be in different processes
  within_process  ///< all are threads of this process: 0.1 µs cheaper
};

/// Sleeps while `word == expected`, until woken or until `until`. May wake for no reason: look at the word again.
/// Returns false when the deadline passed.
/// Unblocked by: futex_wake on the same word; a signal handled by this thread.
bool futex_wait(const std::uint32_t* word, std::uint32_t expected, futex_scope scope, deadline until = {}) noexcept;

/// A word, and the value that it has while there is a reason to sleep on it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct futex_expectation {
  const std::uint32_t* word = nullptr;
  std::uint32_t expected = 0;
};

/// The most words of one futex_wait_any.
inline constexpr std::size_t most_futex_words = 128;

/// Sleeps while every word has its expected value, until one of them is woken or until `until`. May wake for no reason:
/// look at the words again. Returns false when the deadline passed.
/// Throws what system_call throws: ENOSYS before Linux 5.16. Requires: 1 to most_futex_words words.
/// Unblocked by: futex_wake on any of the words; a signal handled by this thread.
/// Cost: a system call, 0.1 µs more with each word.
bool futex_wait_any(std::span<const futex_expectation> words, futex_scope scope, deadline until = {});

/// Wakes at most `count` sleepers of `word`; returns how many. Cost: one system call, also when nobody sleeps.
int futex_wake(const std::uint32_t* word, int count, futex_scope scope) noexcept;

/// The 32 bits that the kernel compares, for an atomic of 32 bits or for the low half of one of 64 bits.
template <class Integer>
[[nodiscard]] const std::uint32_t* futex_address(const std::atomic<Integer>& word) noexcept {
  static_assert(sizeof(Integer) == 4 || sizeof(Integer) == 8);
  static_assert(sizeof(word) == sizeof(Integer) && std::atomic<Integer>::is_always_lock_free);
  static_assert(std::endian::native == std::endian::little, "the low half of a 64-bit word must come first");
  return reinterpret_cast<const std::uint32_t*>(&word);
}

}  // namespace muster
