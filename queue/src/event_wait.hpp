// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/base/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/wait/look.hpp>
#include <muster/memory/wait/sleeper.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/event_word.hpp>

namespace muster::detail {

/// One wait for an event or a combined event.
///
/// It works as follows. A *need* is an event that would end the wait, or bring it nearer to its end: every event of an
/// any_of; of an all_of, those of the first part that is not set, since without it nothing else counts. Of events that
/// alone would end the wait it is noted how often they had been set when it began. Then all needs are marked as
/// awaited, and the thread sleeps on all of them and on the domain's deaths, and looks again.
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
  static_assert(combined_event::max_width + 1 == most_futex_words);

  enum class marking : std::uint8_t { no, yes };
  enum class counting : std::uint8_t { level, sets };  // is set; or is set, or was set since the wait began

  // How long to look before sleeping, on this machine.
  static std::chrono::nanoseconds spin_budget(deadline until);

  template <class What>
  bool until_over(const What& what, const domain& where, deadline until) {
    if (look_long(what, where, until)) return true;
    for (;;) {
      // Read before the events: whoever had died by then set nothing that is not seen now.
      const auto deaths = where.deaths().load(std::memory_order_acquire);
      if (is_over(what, marking::yes)) return true;
      words_[needs_++] = {.word = futex_address(where.deaths()), .expected = deaths};
      if (!where.sleep(std::span(words_).first(needs_), until)) return is_over(what, marking::no);
    }
  }

  // Until it is over, for some time, and not while a thread that set one of the events last is to run on this
  // processor.
  template <class What>
  bool look_long(const What& what, const domain& where, deadline until) {
    const auto look = [&] { return is_over(what, marking::no); };
    const bool found = look_until(spin_budget(until), look, [&] { return ask(what); });
    note_met(what, where, found);
    return found;
  }

  template <class What>
  static void note_met(const What& what, const domain& where, bool found) {
    place_word own = 0;  // no thread looks for one that waits for an event
    note_meeting(where.self(), own, ask(what), found);
  }
  // Of the threads that set the events last.
  static prospect ask(const event& what);
  static prospect ask(const combined_event& what);

  void note(const event& what);
  void note(const combined_event& what);

  /// Whether the wait is over; if it is not, words_ are those to sleep on.
  template <class What>
  bool is_over(const What& what, marking mark) {
    mark_ = mark;
    needs_ = 0;
    next_ = 0;
    return look(what, counting::sets);
  }
  bool look(const event& what, counting how);
  bool look(const combined_event& what, counting how);
  bool look_at_any(const combined_event& what, counting how);
  bool look_at_all(const combined_event& what);

  std::array<std::uint64_t, combined_event::max_width> sets_;  // at the beginning, in the order of look()
  std::array<futex_expectation, most_futex_words> words_;
  std::size_t noted_ = 0;
  std::size_t next_ = 0;  // of sets_
  std::size_t needs_ = 0;
  marking mark_ = marking::no;
};

}  // namespace muster::detail
