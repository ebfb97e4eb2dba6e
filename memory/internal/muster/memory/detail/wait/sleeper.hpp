// SPDX-License-Identifier: BSL-1.0
#pragma once

// How participants wait for one another's words: they look for a while, then sleep on what the others wake, and on the
// word of the domain's deaths, since a participant that owes them a wake may die.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/memory/detail/wait/wait_protocol.hpp>
#include <muster/memory/domain.hpp>

namespace muster {

/// Wakes all that sleep on a bell. What they are to see was published before, sequentially consistently.
///
/// Thread safety: safe.
/// Cost: where no thread sleeps, a look.
void ring(std::atomic<std::uint32_t>& bell) noexcept;
/// The same, whether or not a thread seems to sleep. Cost: a system call.
void raise_bell(std::atomic<std::uint32_t>& bell) noexcept;

/// For a participant's thread that has waited: whether its partner is to run on this processor. Not only where it has
/// looked in vain: a thread that wakes its partner on its own processor is mostly preempted by it, and finds the answer
/// when it goes on. `own` tells where this thread runs; `found`: what it waited for came, and the partner waits. A
/// worker may step_aside then; the host's threads are the program's, and stay where that has them.
///
/// Thread safety: safe.
void note_meeting(participant_id self, place_word& own, prospect of_partner, bool found) noexcept;

/// The words that a waiter is about to sleep on, each with the value that it has while there is a reason to.
///
/// Thread safety: an object belongs to one thread. Lifetime: borrows the room.
class sleep_words {
public:
  explicit sleep_words(std::span<futex_expectation> room) noexcept : room_(room) {}

  /// Requires: there is room.
  template <class Integer>
  void add(const std::atomic<Integer>& word, std::uint32_t expected) noexcept {
    room_[size_++] = {.word = futex_address(word), .expected = expected};
  }
  /// Says on a bell that this thread is about to sleep, and adds it.
  void announce(std::atomic<std::uint32_t>& bell) noexcept { add(bell, wait_protocol::announce(bell)); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Keeps the first ones only.
  void cut(std::size_t size) noexcept { size_ = size; }
  [[nodiscard]] std::span<const futex_expectation> all() const noexcept { return room_.first(size_); }

private:
  std::span<futex_expectation> room_;
  std::size_t size_ = 0;
};

/// What a waiter finds that has announced its sleep and looks once more.
enum class last_look : std::uint8_t {
  over,     ///< what it waits for is there
  changed,  ///< not yet, but it has to look anew
  nothing   ///< it can sleep
};

/// A thread that waits. How it learns that it is over, what it sleeps on, and for which threads it waits, is told by
/// three callables; the order of their calls, how long it looks, and whether it moves meanwhile, is decided here.
///
/// Thread safety: several threads may wait at once if the callables allow it: a sleeper does not change.
/// Lifetime: borrows domain and place, which others see.
class sleeper {
public:
  struct options {
    std::chrono::nanoseconds spin{};  ///< how long it looks before it sleeps
    bool is_crowded = false;          ///< more participants than processors: it lets the others run between its looks
  };

  /// For `ask`: where it is not known which thread acts next.
  static constexpr prospect of_unknown() noexcept { return prospect::usual; }

  sleeper(const domain& where, const options& how, place_word& own) noexcept : domain_(where), how_(how), place_(own) {}

  /// Looks for some time, as look_until, but not behind `until`; returns the last answer of `look`. `ask` gives the
  /// prospect, from the places of the threads that are waited for.
  template <class Look, class Ask>
  bool look_long(const Look& look, const Ask& ask, deadline until = {}) const {
    const auto budget = until.left(how_.spin);
    if (how_.is_crowded) return yield_until(budget, look);
    const auto tell_and_ask = [&] {
      tell_place(place_);
      return ask();
    };
    const bool found = look_until(budget, look, tell_and_ask);
    note_meeting(domain_.self(), place_, tell_and_ask(), found);
    return found;
  }

  /// Waits until it is over; false when `until` passed first. `prepare` is asked before each sleep: it announces the
  /// sleep, adds at most `Words` words to the sleep_words that it is given, and looks a last time, also for what `look`
  /// does not see. The word of deaths was read before, and is among them.
  /// Unblocked by: a wake on one of the words; the death of a participant.
  template <std::size_t Words, class Look, class Prepare, class Ask>
  bool wait_on(const Look& look, const Prepare& prepare, const Ask& ask, deadline until = {}) const {
    for (;;) {
      if (look_long(look, ask, until)) return true;
      std::array<futex_expectation, Words + 1> room;
      sleep_words words(room);
      words.add(domain_.deaths(), domain_.deaths().load(std::memory_order_acquire));
      const last_look found = prepare(words);
      if (found == last_look::over) return true;
      if (found == last_look::nothing && !domain_.sleep(words.all(), until)) return false;
    }
  }

  /// The same, on one bell, until `done`. `look` is asked often, and `done` when `look` says so, and before each sleep:
  /// it looks at everything, deaths included.
  /// Unblocked by: ring(bell); the death of a participant.
  template <class Look, class Done, class Ask>
  bool wait(std::atomic<std::uint32_t>& bell, const Look& look, const Done& done, const Ask& ask,
            deadline until = {}) const {
    const auto is_over = [&] { return look() && done(); };
    const auto prepare = [&](sleep_words& words) {
      words.announce(bell);
      return done() ? last_look::over : last_look::nothing;
    };
    return wait_on<1>(is_over, prepare, ask, until) || done();
  }

private:
  const domain& domain_;
  options how_;
  place_word& place_;
};

}  // namespace muster
