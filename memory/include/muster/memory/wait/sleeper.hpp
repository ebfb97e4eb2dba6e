// SPDX-License-Identifier: BSL-1.0
#pragma once

// How participants wait for one another's words: they look for a while, then sleep on a bell of their own, and on the
// word of the domain's deaths, since who owes them a wake may die.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/domain.hpp>
#include <muster/memory/wait/look.hpp>
#include <muster/memory/wait/place.hpp>
#include <muster/memory/wait/wait_protocol.hpp>

namespace muster {

/// Wakes whoever sleeps on a bell. What they are to see was published before, sequentially consistently.
///
/// Thread safety: safe.
/// Cost: where nobody sleeps, a look.
void ring(std::atomic<std::uint32_t>& bell) noexcept;
/// The same, whether or not somebody seems to sleep. Cost: a system call.
void raise_bell(std::atomic<std::uint32_t>& bell) noexcept;

/// For a participant's thread that has waited: whether its partner is to run on this processor. Not only where it has
/// looked in vain: a thread that wakes its partner on its own processor is mostly preempted by it, and finds the answer
/// when it goes on. `own` tells where this thread runs; `found`: what it waited for came, and the partner waits. A
/// worker may step_aside then; the host's threads are the program's, and stay where that has them.
///
/// Thread safety: safe.
void note_meeting(participant_id self, place_word& own, prospect of_partner, bool found) noexcept;

/// One who sleeps on a bell.
///
/// Thread safety: one thread at a time.
/// Lifetime: borrows bell and place, which others see.
class sleeper {
public:
  struct options {
    std::chrono::nanoseconds spin{};  ///< how long it looks before it sleeps
    bool is_crowded = false;          ///< more participants than processors: it lets the others run between its looks
  };

  /// For wait(): where it is not known whose move is the next.
  static constexpr prospect of_nobody() noexcept { return prospect::usual; }

  sleeper(std::shared_ptr<domain> where, const options& how, std::atomic<std::uint32_t>& bell, place_word& own) noexcept
      : domain_(std::move(where)), how_(how), bell_(bell), place_(own) {}

  /// Waits until `done`; false when `until` passed first. `look` is asked often: when it says so, `done` is asked,
  /// which looks at everything, deaths included, and is asked before each sleep too. `ask` gives the
  /// prospect of looking, from the places of those that are waited for: where it is futile, it sleeps at once.
  /// Unblocked by: ring(); the death of a participant.
  template <class Look, class Done, class Ask>
  bool wait(const Look& look, const Done& done, const Ask& ask, deadline until = {}) {
    for (;;) {
      if (look_long(look, ask) && done()) return true;
      const auto deaths = domain_->deaths().load(std::memory_order_acquire);
      const auto announced = wait_protocol::announce(bell_);
      if (done()) return true;
      if (!sleep(announced, deaths, until)) return done();
    }
  }

private:
  template <class Look, class Ask>
  bool look_long(const Look& look, const Ask& ask) {
    if (how_.is_crowded) return yield_until(how_.spin, look);
    const auto tell_and_ask = [&] {
      tell_place(place_);
      return ask();
    };
    const bool found = look_until(how_.spin, look, tell_and_ask);
    note_meeting(domain_->self(), place_, tell_and_ask(), found);
    return found;
  }
  [[nodiscard]] bool sleep(std::uint32_t announced, std::uint32_t deaths, deadline until) const;

  std::shared_ptr<domain> domain_;
  options how_;
  std::atomic<std::uint32_t>& bell_;
  place_word& place_;
};

}  // namespace muster
