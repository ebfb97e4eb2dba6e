// SPDX-License-Identifier: BSL-1.0
#pragma once

// One word says who owns a shared resource: {generation, owner, state}. It changes owner by one compare-and-swap,
// and the new owner's name is in the word before the owner touches the resource; so whoever recovers a dead process
// finds all it owned by looking for its name, at whatever instruction it died.

#include <atomic>
#include <cstdint>

#include <muster/memory/detail/participant.hpp>

namespace muster {

/// The decoded word. `State` is an enumeration of 16 bits; layout: docs/formats/domain.md.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
template <class State>
struct ownership {
  static_assert(sizeof(State) == 2);

  std::uint32_t generation = 0;
  participant_id owner = participant_id::none;
  State state = {};

  [[nodiscard]] static constexpr ownership unpack(std::uint64_t word) noexcept {
    return {.generation = static_cast<std::uint32_t>(word >> 32U),
            .owner = static_cast<participant_id>(word >> 16U & 0xffffU),
            .state = static_cast<State>(word & 0xffffU)};
  }

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{generation} << 32U | std::uint64_t{static_cast<std::uint16_t>(owner)} << 16U |
           static_cast<std::uint16_t>(state);
  }

  friend constexpr bool operator==(const ownership&, const ownership&) noexcept = default;
};

/// How much of a shared table has ever been used, so that recovery looks no further. It is raised before the entry is
/// claimed: a process that dies in between leaves no claimed entry beyond the mark.
///
/// `Word` is std::atomic<std::uint64_t>, or what a model checker puts in its place.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Word>
class basic_table_mark {
public:
  /// Lifetime: borrows the shared word.
  explicit basic_table_mark(Word& word) noexcept : word_(&word) {}

  void raise_to(std::uint64_t count) noexcept {
    auto found = word_->load(std::memory_order_relaxed);
    while (found < count && !word_->compare_exchange_weak(found, count, std::memory_order_acq_rel)) continue;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return word_->load(std::memory_order_acquire); }

private:
  Word* word_;
};

using table_mark = basic_table_mark<std::atomic<std::uint64_t>>;

}  // namespace muster
