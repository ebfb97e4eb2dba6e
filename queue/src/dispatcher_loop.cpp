// SPDX-License-Identifier: BSL-1.0
// Who drains: the supervisor, a thread that helps, or a loop of the program's while somebody listens for
// ends.
// Everything that decides is guarded by the mutex, so that whoever takes over arms his own bell.
#include <utility>

#include <muster/queue/bell.hpp>
#include <muster/queue/dispatcher.hpp>

namespace muster {

// For whoever is to be woken. While somebody looks by himself nobody is.
void dispatcher::arm() {
  const auto state = loop();
  if (helpers_ > 0 || state == loop_state::polls) return;
  bell::arm(board_.bell_armed(), state == loop_state::sleeps ? bell::of_loop : bell::of_supervisor);
}

void dispatcher::arm_bell() {
  {
    const scoped_lock lock(mutex_);
    arm();
  }
  drain();
}

void dispatcher::begin_help() {
  const scoped_lock lock(mutex_);
  if (helpers_++ == 0) bell::disarm(board_.bell_armed());
}

// What was completed while the bell was silent is seen by this last drain or rings the bell.
void dispatcher::end_help() {
  {
    const scoped_lock lock(mutex_);
    if (--helpers_ > 0) return;
    arm();
  }
  drain();
}

// ---- the loop

// A loop that cannot be called for want of memory does not look: the supervisor drains.
void dispatcher::begin_listening() noexcept {
  if (!options_.call_loop || listeners_.fetch_add(1, std::memory_order_seq_cst) > 0) return;
  const scoped_lock lock(mutex_);
  if (loop() != loop_state::none) return;
  loop_.store(loop_state::called, std::memory_order_seq_cst);
  try {
    options_.call_loop();
  } catch (...) {
    loop_.store(loop_state::none, std::memory_order_seq_cst);
  }
}

void dispatcher::end_listening() noexcept {
  if (!options_.call_loop || listeners_.fetch_sub(1, std::memory_order_seq_cst) > 1) return;
  const scoped_lock lock(mutex_);
  if (loop() == loop_state::sleeps || loop() == loop_state::retired) options_.release_loop();
}

// A loop that polls finds it at its next look, and need not be told by way of its queue. It does look, and whoever
// takes its place drains.
void dispatcher::leave_to_loop(task_record::location where) {
  late_.push_back(where);
  some_late_.store(true, std::memory_order_relaxed);
}

void dispatcher::look_at_late(finished_list& finished) {
  if (late_.empty()) return;
  for (std::size_t index = 0; index < late_.size(); ++index) {  // it may grow: an end may have others noticed
    const auto each = late_[index];
    settle_if_done(each.slot, each.generation, finished);
  }
  late_.clear();
  some_late_.store(false, std::memory_order_relaxed);
}

bool dispatcher::begin_poll() {
  if (loop() == loop_state::polls) return false;
  const scoped_lock lock(mutex_);
  loop_.store(loop_state::polls, std::memory_order_seq_cst);
  bell::disarm(board_.bell_armed());
  return true;
}

bool dispatcher::end_poll() {
  bool sleeps = false;
  {
    const scoped_lock lock(mutex_);
    sleeps = listeners_ > 0;
    loop_.store(sleeps ? loop_state::sleeps : loop_state::none, std::memory_order_seq_cst);
    arm();
  }
  drain();
  return sleeps;
}

void dispatcher::retire_loop() {
  if (loop() == loop_state::none) return;
  {
    const scoped_lock lock(mutex_);
    if (loop() != loop_state::polls && loop() != loop_state::sleeps) return;
    loop_.store(loop_state::retired, std::memory_order_seq_cst);
    arm();
    if (listeners_ == 0) options_.release_loop();
  }
  drain();
}

bool dispatcher::ring_both() {
  const scoped_lock lock(mutex_);
  if (loop() != loop_state::sleeps) return false;
  auto armed = bell::of_loop;
  const bool now = board_.bell_armed().compare_exchange_strong(armed, bell::of_loop | bell::of_supervisor);
  return now || (armed & bell::of_supervisor) != 0;
}

}  // namespace muster
