// SPDX-License-Identifier: BSL-1.0
// Workers that leave in good order have a successor: a process with the same index that has been started, accepted and
// initialized while they still work, and then waits. When the old one is buried the new one takes its place, whatever
// the old one died of. A successor that comes to nothing does no harm: the old one leaves all the same, and another is
// started then, whose failures count.
#include <sys/socket.h>

#include <utility>

#include <muster/base/text.hpp>

#include "crew_impl.hpp"

namespace muster {

bool crew::impl::has_successor(const worker& who) const {
  const auto& next = successors_[who.index];
  return next && next->pid != 0;
}

// It is to leave, by order or by itself.
void crew::impl::succeed(worker& who) {
  if (who.life.now() != worker_lifecycle::state::working || order_ != worker_order::work) return;
  if (options_.early_successors && who.index < size_ && !replacing_ && !has_successor(who)) prepare_successor(who);
  const auto& next = successors_[who.index];
  if (!has_successor(who) || next->ready) retire(who);
}

void crew::impl::prepare_successor(const worker& who) {
  auto& next = successors_[who.index];
  if (!next) next = std::make_unique<worker>(who.index, options_.start_tries, hub().loop());
  client_.repair_start();
  next->incarnation = who.incarnation;
  next->too_old = next->too_big = next->unfit = next->leaves = false;
  next->stands_by = true;
  static_cast<void>(next->life.start());
  try {
    start_process(*next);
  } catch (const std::exception&) {  // there may be room when the old one is gone
    end_preparation(*next);
  }
}

void crew::impl::end_preparation(worker& next) {
  static_cast<void>(next.life.stop());
  static_cast<void>(next.life.ended(exit_status::lost()));
}

// It runs nothing more, whatever it is told; nobody is prepared for its place, because what it has (of a device's
// memory, say) may be what the next one needs.
void crew::impl::note_unfit(worker& who, const std::string& why) {
  if (std::exchange(who.unfit, true)) return;
  log(log_level::warning,
      text(name_of(who.index), " (process ", who.pid, ") is replaced after the task that it is at: ", why));
}

// Who leaves by itself is not told, unless it may sleep.
void crew::impl::retire(worker& who) {
  if (!who.too_old && !who.too_big && !who.unfit) return;
  who.leaves = true;
  give_orders();
}

void crew::impl::be_ready(worker& who) {
  who.start_timer.cancel();
  who.ready = clock::now();
  perform(who, who.life.ready());
  if (who.stands_by) return retire(*workers_[who.index]);
  note_ready(who);
  begin_to_age(who);
}

void crew::impl::bury_successor(worker& next) {
  const bool failed = !next.life.is_excused();
  if (failed) {
    const auto why = next.life.has_failed() ? next.life.failure().describe() : text("it ", to_string(next.how));
    log(log_level::warning, text("who was to follow ", name_of(next.index), " came to nothing: ", why));
  }
  {
    const scoped_lock lock(mutex_);
    if (!next.lost) --standing_by_;
    if (failed) count(next, &crew_statistics::failed_starts);
  }
  end_preparation(next);
  next.stands_by = false;
  changed_.notify_all();
  retire(*workers_[next.index]);
}

// One that was dismissed, or has failed, only has to die.
bool crew::impl::may_hand_over(const worker& before) const {
  if (!has_successor(before) || order_ != worker_order::work || replacing_ || giving_up_) return false;
  if (before.index >= size_ || before.life.now() == worker_lifecycle::state::stopping) return false;
  const auto& next = successors_[before.index]->life;
  return !next.is_excused() && !next.has_failed();
}

// True when the successor has taken the place of `before`, whose process is gone.
bool crew::impl::hand_over(const worker& before) {
  if (!may_hand_over(before)) return false;
  const auto index = before.index;
  end_preparation(*workers_[index]);
  std::swap(workers_[index], successors_[index]);
  auto& now = *workers_[index];
  now.stands_by = false;
  board_.line(index).order.store(static_cast<std::uint32_t>(worker_order::work), std::memory_order_release);
  {
    const scoped_lock lock(mutex_);
    --standing_by_;
  }
  client_.worker_started(index, now.pid);
  tell_to_begin(now);
  if (now.ready) {
    note_ready(now);
    begin_to_age(now);
  }
  publish(now);
  return true;
}

// One that has not been welcomed yet learns then that it need not wait.
void crew::impl::tell_to_begin(worker& who) {
  if (who.clerk) who.clerk->say(detail::message_kind::begin);
}

// It hears that nobody will call it, runs its finalizer and leaves.
void crew::impl::dismiss(worker& next) {
  if (next.pid == 0) return;
  next.life.excuse();
  static_cast<void>(::shutdown(next.control->native_handle(), SHUT_WR));
}

void crew::impl::dismiss_all() {
  for (const auto& each : successors_) {
    if (each) dismiss(*each);
  }
}

}  // namespace muster
