// SPDX-License-Identifier: BSL-1.0
#pragma once

// The truth about one call under way: a word in shared memory, `{generation:32, flags:8, state:8}`, one for each call
// that a member may have under way at once.
//
//     free   -> queued      the caller, before it sends the request
//     queued -> begun       the member that serves it, by compare-and-swap: from here on it may have had effects
//     queued -> free        the caller, by compare-and-swap: it is withdrawn, and will never begin
//     begun  -> free        the caller: it has the reply, or does not want it any more
//
// A request and a reply name the generation, which grows with each use; those of an earlier one are dropped.
//
// `Word` is std::atomic<std::uint64_t>, or what a model checker puts in its place.
//
// Thread safety: safe. Process safety: caller and server may die before or after any step: what is left is the
// caller's word, which its next incarnation goes on from.

#include <atomic>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster::detail::call_word {

enum class state : std::uint8_t { free, queued, begun };

inline constexpr std::uint64_t stop = 1U << 8U;  ///< the call is asked to stop

[[nodiscard]] constexpr std::uint64_t pack(std::uint32_t generation, state now) noexcept {
  return std::uint64_t{generation} << 32U | static_cast<std::uint64_t>(now);
}
[[nodiscard]] constexpr std::uint32_t generation_of(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32U);
}
[[nodiscard]] constexpr state state_of(std::uint64_t word) noexcept { return static_cast<state>(word & 0xffU); }
[[nodiscard]] constexpr bool is_stopped(std::uint64_t word) noexcept { return (word & stop) != 0; }

/// By the caller, of a word that is free. Returns the generation of the call.
template <class Word>
[[nodiscard]] std::uint32_t queue(Word& word) noexcept {
  const auto generation = generation_of(word.load(std::memory_order_relaxed)) + 1;
  word.store(pack(generation, state::queued), std::memory_order_release);
  return generation;
}

/// From `queued`, unless another was first.
template <class Word>
[[nodiscard]] bool leave_queue(Word& word, std::uint32_t generation, state next) noexcept {
  auto expected = pack(generation, state::queued);
  return word.compare_exchange_strong(expected, pack(generation, next), std::memory_order_acq_rel,
                                      std::memory_order_relaxed);
}

/// By the member that is about to serve it. False: the caller does not wait for it any more.
template <class Word>
[[nodiscard]] bool try_begin(Word& word, std::uint32_t generation) noexcept {
  return leave_queue(word, generation, state::begun);
}

/// By the caller: true when the call had not begun, and never will.
template <class Word>
[[nodiscard]] bool withdraw(Word& word, std::uint32_t generation) noexcept {
  return leave_queue(word, generation, state::free);
}

/// By the caller: asks what has begun to stop.
template <class Word>
void ask_to_stop(Word& word) noexcept {
  word.fetch_or(stop, std::memory_order_acq_rel);
}

/// By the caller: the call is over for it, and the word is free for another.
template <class Word>
void release(Word& word, std::uint32_t generation) noexcept {
  word.store(pack(generation, state::free), std::memory_order_release);
}

}  // namespace muster::detail::call_word
