// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <muster/memory/detail/wait/place.hpp>
#include <muster/memory/wait/idle_set.hpp>

// What a caller that waits for a task can expect of looking for its end, where any worker may run the task.
//
// Thread safety: safe.

namespace muster::outlook {

namespace detail {

/// Asks a few of those that are awake, until one says yes.
template <class Ask>
bool ask_awake(const idle_set& sleeping, std::size_t workers, const Ask& ask) noexcept {
  constexpr int most_asked = 4;
  auto awake = ~sleeping.peek_first_64();
  if (workers < 64) awake &= (std::uint64_t{1} << workers) - 1;
  for (int asked = 0; awake != 0 && asked < most_asked; ++asked, awake &= awake - 1) {
    if (ask(static_cast<std::size_t>(std::countr_zero(awake)))) return true;
  }
  return false;
}

}  // namespace detail

/// Where anybody may take it: the worker that looks for tasks; or, where none does, the first that is awake and not to
/// run on this processor. It is futile where all are that are asked. `place_of(worker)` is that worker's place.
/// Cost: two loads, and one for each that is asked.
template <class PlaceOf>
[[nodiscard]] prospect of_any(const idle_set& looking, const idle_set& sleeping, std::size_t workers,
                              const PlaceOf& place_of) noexcept {
  if (const auto next = looking.peek_first(); next && *next < workers) return prospect_of(place_of(*next));
  auto found = prospect::woken;  // where all sleep one is just being woken
  detail::ask_awake(sleeping, workers, [&](std::size_t worker) {
    found = prospect_of(place_of(worker));
    return found != prospect::futile;
  });
  return found;
}

/// For a caller that waits for many tasks: futile where one worker that is awake, of a few that are asked, is to run
/// here.
template <class PlaceOf>
[[nodiscard]] prospect of_many(const idle_set& sleeping, std::size_t workers, const PlaceOf& place_of) noexcept {
  const auto meets = [&](std::size_t worker) { return shares_processor(place_of(worker)); };
  return detail::ask_awake(sleeping, workers, meets) ? prospect::futile : prospect::usual;
}

/// For the worker `self` that waits for a task of another: futile where all others that are awake, of a few that are
/// asked, are to run here.
template <class PlaceOf>
[[nodiscard]] prospect of_others(const idle_set& sleeping, std::size_t workers, std::size_t self,
                                 const PlaceOf& place_of) noexcept {
  auto found = prospect::usual;
  detail::ask_awake(sleeping, workers, [&](std::size_t worker) {
    if (worker == self) return false;
    found = prospect_of(place_of(worker));
    return found != prospect::futile;
  });
  return found;
}

}  // namespace muster::outlook
