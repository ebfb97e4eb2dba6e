// SPDX-License-Identifier: BSL-1.0
// Which sink learns that a task has ended, and how the end comes to be noticed.
#include <utility>

#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

namespace muster {

void dispatcher::subscribe(task_record& record, completion_sink& sink) noexcept {
  finished_list finished;
  completion_sink* observer = nullptr;  // of before
  scoped_lock lock(mutex_);
  if (record.phase() == task_phase::settled) {
    finished.tell(sink, record);
  } else {
    observer = std::exchange(record.sink_, &sink);
  }
  const auto lane = record.lane_;
  const bool unclaimed = listen_for_end(record, finished);
  lock.unlock();
  if (unclaimed) wake_for(lane);
  if (observer != nullptr) observer->abandoned();
  finished.finish();
}

// True when a worker must be woken for it. The record may have been given back when this returns.
bool dispatcher::listen_for_end(task_record& record, finished_list& finished) {
  const bool unclaimed = must_be_woken_for(record);
  if (record.phase() == task_phase::posted && !record.notified_) request_notification(record, finished);
  return unclaimed;
}

// Nobody will wait for it, who would wake a worker before he sleeps.
bool dispatcher::must_be_woken_for(const task_record& record) {
  const auto where = record.where();
  if (!record.unwoken_ || where.phase != task_phase::posted) return false;
  return slot_protocol::read(board_.slot(where.slot).word).state() == slot_state::queued;
}

// Late, but safe: either the worker sees the request when it completes the task, or it has completed it already.
void dispatcher::request_notification(task_record& record, finished_list& finished) {
  const auto where = record.where();
  const auto found = slot_protocol::request(board_.slot(where.slot).word, slot_flag::notify);
  if (found.short_generation() != where.generation || found.state() != slot_state::done) return;
  if (loop() == loop_state::polls && late_.size() < late_.capacity()) return leave_to_loop(where);
  settle_done(record, finished);
}

}  // namespace muster
