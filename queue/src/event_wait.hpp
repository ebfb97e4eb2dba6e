// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <muster/base/detail/futex.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/event_word.hpp>

namespace muster::detail {

/// One wait for an event or a combined event.
///
/// It works as follows. A *need* is an event that would end the wait, or bring it nearer to its end: every event of an
/// any_of; of an all_of, those of the first part that is not set, since without it nothing else counts. Of events that
/// alone would end the wait it is noted how often they had been set when it began. Before a sleep all needs are marked
/// as awaited, and they are what the thread sleeps on.
///
/// Thread safety: an object belongs to one thread.
class event_wait {
public:
  event_wait() = default;
  event_wait(const event_wait&) = delete;
  event_wait& operator=(const event_wait&) = delete;

  /// False when `until` passed first.
  template <class What>
  static bool run(const What& what, const domain& where, deadline until) {
    const bool is_set = what.is_set();
    if (is_set || until.expired()) {
      note_met(what, where, is_set);
      return is_set;
    }
    event_wait wait;
    wait.note(what);
    return wait.until_over(what, where, until);
  }

private:
  enum class counting : std::uint8_t { level, sets };  // is set; or is set, or was set since the wait began

  // No thread looks for one that waits for an event, so where this one runs is told to none.
  static sleeper make_sleeper(const domain& where, place_word& own);

  template <class What>
  bool until_over(const What& what, const domain& where, deadline until) {
    place_word own = 0;
    const auto here = make_sleeper(where, own);
    const auto is_set = [&] { return is_over(what, nullptr); };
    const auto prepare = [&](sleep_words& words) {
      return is_over(what, &words) ? last_look::over : last_look::nothing;
    };
    return here.wait_on<width_of<What>>(is_set, prepare, [&] { return ask(what); }, until) || is_set();
  }

  template <class What>
  static void note_met(const What& what, const domain& where, bool found) {
    place_word own = 0;
    note_meeting(where.self(), own, ask(what), found);
  }
  // Of the threads that set the events last.
  static prospect ask(const event& what);
  static prospect ask(const combined_event& what);

  void note(const event& what);
  void note(const combined_event& what);

  /// Whether the wait is over; if it is not, and there are `words`, they are those to sleep on.
  template <class What>
  bool is_over(const What& what, sleep_words* words) {
    words_ = words;
    next_ = 0;
    return look(what, counting::sets);
  }
  bool look(const event& what, counting how);
  bool look(const combined_event& what, counting how);
  bool look_at_any(const combined_event& what, counting how);
  bool look_at_all(const combined_event& what);

  template <class What>
  static constexpr std::size_t width_of = std::is_same_v<What, event> ? 1 : combined_event::max_width;
  static_assert(combined_event::max_width + 1 == most_futex_words);

  std::array<std::uint64_t, combined_event::max_width> sets_;  // at the beginning, in the order of look()
  std::size_t noted_ = 0;
  std::size_t next_ = 0;  // of sets_
  sleep_words* words_ = nullptr;
};

}  // namespace muster::detail
