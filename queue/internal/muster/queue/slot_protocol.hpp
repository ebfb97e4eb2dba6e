// SPDX-License-Identifier: BSL-1.0
#pragma once

// The steps that change a slot's word. Each is one atomic operation on that word, which is why there is no instant at
// which a task is in nobody's hands:
//
//     free    -> queued     parent: publish, after arguments and token were written
//     queued  -> claimed    worker: try_claim, one winner
//     queued  -> free       parent: try_revoke (cancelled)
//     claimed -> done       worker: complete, after the reply was written
//     claimed, doomed       parent: try_doom, before it kills the owner for this task
//     done    -> free       parent: retire, after the reply was read
//     claimed -> free       parent: seize, after the kernel confirmed the owner's death
//
// `Word` is std::atomic<std::uint64_t>, or what a model checker or stepper puts in its place.
//
// Thread safety: safe, that is their purpose.
// Process safety: parent and workers call them on shared memory; a process may die before or after any of them.

#include <atomic>
#include <cstdint>
#include <optional>

#include <muster/queue/detail/slot_word.hpp>

namespace muster::slot_protocol {

template <class Word>
[[nodiscard]] slot_word read(const Word& word) noexcept {
  return slot_word(word.load(std::memory_order_acquire));
}

/// Release: whoever claims the task sees its arguments.
template <class Word>
void publish(Word& word, std::uint64_t generation, slot_flag flags) noexcept {
  word.store(slot_word(generation, 0, flags, slot_state::queued).bits(), std::memory_order_release);
}

/// Claims the task of that generation if it is still queued. Flags may change under way, so a failed exchange looks
/// again; no other change leaves the word claimable.
template <class Word>
[[nodiscard]] std::optional<slot_word> try_claim(Word& word, std::uint32_t short_generation, unsigned owner) noexcept {
  auto found = read(word);
  while (found.state() == slot_state::queued && found.short_generation() == short_generation) {
    const slot_word claimed(found.generation(), owner, found.flags(), slot_state::claimed);
    auto expected = found.bits();
    if (word.compare_exchange_weak(expected, claimed.bits(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return claimed;
    }
    found = slot_word(expected);
  }
  return std::nullopt;
}

/// Takes a queued task back. False when a worker was faster.
template <class Word>
[[nodiscard]] bool try_revoke(Word& word, std::uint64_t generation) noexcept {
  auto found = read(word);
  while (found.state() == slot_state::queued && found.generation() == generation) {
    const slot_word revoked(found.generation(), 0, slot_flag::none, slot_state::free);
    auto expected = found.bits();
    if (word.compare_exchange_weak(expected, revoked.bits(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return true;
    }
    found = slot_word(expected);
  }
  return false;
}

/// Binds the worker that has the task to it: once it sees the flag, at the latest in what complete() returns, it
/// claims nothing more. So whoever kills it for this task kills no other. Returns the word; nothing when the task is
/// not claimed (any more).
template <class Word>
[[nodiscard]] std::optional<slot_word> try_doom(Word& word, std::uint64_t generation) noexcept {
  auto found = read(word);
  while (found.state() == slot_state::claimed && found.generation() == generation) {
    const slot_word doomed(generation, found.owner(), found.flags() | slot_flag::doomed, slot_state::claimed);
    auto expected = found.bits();
    if (word.compare_exchange_weak(expected, doomed.bits(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return doomed;
    }
    found = slot_word(expected);
  }
  return std::nullopt;
}

/// Asks for something; returns the word as it was before, which tells whether it was in time.
template <class Word>
slot_word request(Word& word, slot_flag flag) noexcept {
  return slot_word(word.fetch_or(slot_word::flag_bits(flag), std::memory_order_acq_rel));
}

/// The completion: publishes the reply, and returns the word as it was, with everything that was asked for meanwhile.
template <class Word>
[[nodiscard]] slot_word complete(Word& word, const slot_word& claimed, slot_flag reply) noexcept {
  const slot_word done(claimed.generation(), claimed.owner(), reply, slot_state::done);
  return slot_word(word.exchange(done.bits(), std::memory_order_acq_rel));
}

/// Makes the slot of a task that is done free. Nobody else changes the word now, save for late requests, which are
/// void; so a store is enough, which the processor need not wait for.
template <class Word>
void retire(Word& word, std::uint64_t generation) noexcept {
  word.store(slot_word(generation, 0, slot_flag::none, slot_state::free).bits(), std::memory_order_release);
}

/// Makes the slot free whatever it holds: its worker is dead. An exchange, so that of a waiter that asks to be woken
/// just now and the caller at least one sees the other.
template <class Word>
slot_word seize(Word& word, std::uint64_t generation) noexcept {
  const slot_word freed(generation, 0, slot_flag::none, slot_state::free);
  return slot_word(word.exchange(freed.bits(), std::memory_order_acq_rel));
}

}  // namespace muster::slot_protocol
