// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/detail/wait/contention.hpp>
#include <muster/memory/detail/wait/place.hpp>

namespace muster {

namespace detail {

/// How long to look, with such a prospect.
[[nodiscard]] constexpr std::chrono::nanoseconds time_to_look(prospect how, std::chrono::nanoseconds budget) noexcept {
  constexpr std::chrono::nanoseconds to_come = std::chrono::microseconds(8);  // from another processor
  constexpr int budgets_to_move = 5;
  if (how == prospect::woken) return std::min(budget, to_come);
  return how == prospect::coming ? budgets_to_move * budget : budget;
}

}  // namespace detail

/// Calls `done` that many times, until it answers true; returns its last answer. For what mostly comes at once: it
/// reads no clock between.
///
/// Thread safety: as `done`.
template <class Done>
bool look_often(int looks, const Done& done) {
  const auto start = processor_ticks();
  bool found = false;
  for (int look = 0; look < looks && !found; ++look) {
    relax_processor();
    found = done();
  }
  contention::of_this_thread().note_gap(processor_ticks() - start);
  return found;
}

/// Calls `done` until it answers true, `budget` is used up or `ask`, which gives a prospect and is asked now and then,
/// says that it is futile; returns the last answer of `done`. A thread that was woken just now is looked for only as
/// long as it needs from another processor; one on its way for several budgets: a waiter that slept meanwhile would
/// be woken from there, and mostly be put onto that very processor. With a zero budget, and under contention, `done` is
/// asked once.
///
/// Thread safety: as `done` and `ask`.
template <class Done, class Ask>
bool look_until(std::chrono::nanoseconds budget, const Done& done, const Ask& ask) {
  if (done()) return true;
  if (budget <= std::chrono::nanoseconds::zero() || contention::of_this_thread().is_on()) return false;
  if (ask() == prospect::futile) return done();
  constexpr int looks = 16;                  // a question or a reading of the clock costs as much as several
  if (look_often(looks, done)) return true;  // what comes soon is not held up by a reading of the clock
  const auto start = clock::now();
  for (;;) {
    const auto how = ask();
    if (how == prospect::futile || clock::now() - start >= detail::time_to_look(how, budget)) return done();
    if (look_often(looks, done)) return true;
  }
}

}  // namespace muster
