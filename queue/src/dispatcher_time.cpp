// SPDX-License-Identifier: BSL-1.0
// Tasks that may only run for so long. The worker says when it begins; the parent looks when the first can be overdue,
// binds the worker to the task (slot_protocol::try_doom) and has it killed. Its recovery then ends the task.
#include <algorithm>

#include <muster/base/text.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "current_task.hpp"
#include "nested_request.hpp"

namespace muster {

void dispatcher::watch_time(const task_record& record) {
  auto& timed = timings_.at(&record);
  timed.posted = clock::now();
  timed.due = timed.posted + timed.limit;
  timed.waited.reset();
  if (timed.due >= next_check_) return;
  next_check_ = timed.due;
  if (options_.watch_time) options_.watch_time(next_check_);
}

overdue_report dispatcher::check_times() {
  overdue_report report;
  const scoped_lock lock(mutex_);
  const auto now = clock::now();
  for (auto& [record, timed] : timings_) {
    if (record->phase() != task_phase::posted) continue;  // it is watched again when it is posted
    auto* const posted = in_slot_[record->where().slot];
    if (timed.due <= now && is_overdue(*posted, timed, now)) {
      const auto doomed = slot_protocol::try_doom(board_.slot(record->where().slot).word, record->generation_);
      if (!doomed || !is_possible(*doomed, *record)) continue;  // done just now; or damage, which the audit finds
      posted->overdue_ = true;
      report.workers.push_back(doomed->owner() - 1);
    } else {
      report.next = std::min(report.next, timed.due);
    }
  }
  next_check_ = report.next;
  return report;
}

// Otherwise says when it may be.
bool dispatcher::is_overdue(const task_record& record, timing& timed, clock::time_point now) {
  const auto slot = record.where().slot;
  const auto found = slot_protocol::read(board_.slot(slot).word);
  if (found.state() == slot_state::done) {
    timed.due = clock::time_point::max();
    return false;
  }
  const bool claimed = found.state() == slot_state::claimed && is_possible(found, record);
  auto since = now;  // it has not begun
  if (claimed) {
    const std::size_t worker = found.owner() - 1;
    const auto current = board_.line(worker).current.load(std::memory_order_acquire);
    const bool begun = current == current_task(slot, found.short_generation());
    if (!begun && !timed.waited) timed.waited = now;
    since = begun ? start_of(timed, worker, now) : *timed.waited;
  }
  timed.due = since + timed.limit;
  return timed.due <= now;
}

// A worker that says something impossible is taken to have begun at once.
clock::time_point dispatcher::start_of(const timing& timed, std::size_t worker, clock::time_point now) {
  const clock::time_point said(
      std::chrono::nanoseconds(static_cast<std::int64_t>(board_.line(worker).started.load(std::memory_order_relaxed))));
  return said < timed.posted || said > now ? timed.posted : said;
}

void dispatcher::fail_after_timeout(task_record& record, finished_list& finished) {
  ++counters_.timed_out;
  const auto limit = timings_.at(&record).limit;
  end_claimed(record,
              error_info(errc::timed_out, text("it ran for longer than its timeout of ",
                                               std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(),
                                               " ms; its worker was killed: raise the timeout, or split the task")),
              finished);
}

}  // namespace muster
