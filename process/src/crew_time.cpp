// SPDX-License-Identifier: BSL-1.0
// Workers that are at a task for too long, or at one that nobody wants any more. Who they are is for the client to say
// (queue/src/dispatcher_time.cpp).
#include <muster/base/text.hpp>

#include "crew_impl.hpp"

namespace muster {

void crew::impl::watch_time(clock::time_point when) noexcept {
  const auto wanted = when.time_since_epoch().count();
  auto earliest = wanted_check_.load(std::memory_order_relaxed);
  while (wanted < earliest && !wanted_check_.compare_exchange_weak(earliest, wanted, std::memory_order_relaxed))
    continue;
  clock::rep none = 0;
  check_asked_.compare_exchange_strong(none, clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  hub().ask_for(time_call_);
}

void crew::impl::watch_earlier() noexcept {
  const clock::time_point asked(clock::duration(check_asked_.exchange(0, std::memory_order_relaxed)));
  const clock::time_point when(
      clock::duration(wanted_check_.exchange(clock::duration::max().count(), std::memory_order_relaxed)));
  guard([this, when, asked] {
    if (when >= next_check_) return;
    // Whatever else is watched may be of longer steps, or nothing.
    const auto now = clock::now();
    if (now - asked > detail::pause_watch::slack) client_.host_paused({asked, asked, now});
    next_check(when);
  });
}

void crew::impl::next_check(clock::time_point when) {
  note_pause();  // which the timer, in whose place another comes, has not told yet
  next_check_ = when;
  if (when == clock::time_point::max()) return pause_watch_.end();
  pause_watch_.begin(clock::now(), when);
  sleep_a_step();
}

void crew::impl::sleep_a_step() {
  time_timer_.expires_at(pause_watch_.next_step(clock::now()));  // cancels what was asked for before
  time_timer_.async_wait(handler([this] {
    note_pause();
    if (clock::now() < next_check_) return sleep_a_step();
    check_times();
  }));
}

// The client hears of it before it is asked who is overdue: after SIGCONT all timers are.
void crew::impl::note_pause() {
  if (const auto found = pause_watch_.look(clock::now())) client_.host_paused(*found);
}

// The client may ask for an earlier time while it is being asked: that arrives behind this.
void crew::impl::check_times() {
  const auto found = client_.check_times();
  for (const auto& each : found.workers) {
    if (each.index < workers_.size()) kill_for_task(*workers_[each.index], each.cancelled);
  }
  next_check(found.next);
}

void crew::impl::kill_for_task(worker& who, bool cancelled) {
  if (who.pid == 0) return;
  log(cancelled ? log_level::info : log_level::warning,
      text(name_of(who.index), " (process ", who.pid, ") is killed: its task ",
           cancelled ? "was cancelled" : "has run for longer than its timeout"));
  who.life.excuse();
  kill(who);
  const scoped_lock lock(mutex_);
  count(who, cancelled ? &crew_statistics::cancelled : &crew_statistics::overdue);
}

}  // namespace muster
