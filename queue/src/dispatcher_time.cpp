// SPDX-License-Identifier: BSL-1.0
// Tasks that may only run for so long, or must end by some time. The worker says when it begins; the parent looks when
// the first can be overdue, binds the worker to the task (slot_protocol::try_doom) and has it killed. Its recovery then
// ends the task. Pauses of the parent extend both times: a task that was stopped with it has not had its time.
#include <algorithm>

#include <muster/base/room.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "current_task.hpp"
#include "nested_request.hpp"

namespace muster {

namespace {

std::int64_t milliseconds_of(clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

error_info timeout_error(std::chrono::nanoseconds limit) noexcept {
  return error_info::described(errc::timed_out, [&] {
    return text("it ran for longer than its timeout of ", milliseconds_of(limit),
                " ms; its worker was killed: raise the timeout, or split the task");
  });
}

}  // namespace

void dispatcher::begin_terms(task_record& record, const task_request& request) {
  terms_.begin(record, *request.terms);
  record.has_terms_ = true;
  record.retries_errors_ = !request.chunk && request.retries > 0 && request.terms->retry_on.after_exceptions();
}

void dispatcher::end_terms(task_record& record) {
  terms_.end(record);
  record.has_terms_ = false;
}

void dispatcher::set_due(task_record& record, clock::time_point when) {
  terms_.set_due(record, when);
  if (when >= next_check_) return;
  next_check_ = when;
  if (options_.watch_time) options_.watch_time(when);
}

void dispatcher::watch_waiting(task_record& record) {
  auto& watched = terms_.of(record);
  watched.delayed = false;
  set_due(record, deadline_of(watched.asked));
}

void dispatcher::watch_posted(task_record& record) {
  auto& watched = terms_.of(record);
  const auto limit = watched.asked.timeout;
  watched.posted = clock::now();
  watched.waited.reset();
  const auto deadline = deadline_of(watched.asked);
  set_due(record, limit.count() > 0 ? std::min(deadline, later(watched.posted, limit)) : deadline);
}

void dispatcher::note_pause(const host_pause& which) {
  const scoped_lock lock(mutex_);
  pauses_.note(which);
}

bool dispatcher::is_over(const task_terms& terms) {
  const scoped_lock lock(mutex_);
  return deadline_of(terms) <= clock::now();
}

clock::time_point dispatcher::deadline_of(const task_terms& terms) const {
  const auto deadline = terms.deadline;
  if (deadline == clock::time_point::max()) return deadline;
  return later(deadline, pauses_.extension(terms.since, deadline - terms.since));
}

overdue_report dispatcher::check_times() {
  overdue_report report;
  finished_list finished;
  scoped_lock lock(mutex_);
  const auto now = clock::now();
  try {
    for (; auto* const record = terms_.first_due(now); ++report.looked_at) look_at_time(*record, now, report, finished);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is still due, and looked at again at once
  }
  report.next = next_check_ = terms_.next();
  const auto fed = take_fed();
  lock.unlock();
  if (fed != 0) wake_for(1, fed);
  finished.finish();
  return report;
}

// After this it is not due any more.
void dispatcher::look_at_time(task_record& record, clock::time_point now, overdue_report& report,
                              finished_list& finished) {
  const auto& watched = terms_.of(record);
  const auto deadline = deadline_of(watched.asked);
  if (deadline <= now && withdraw(record)) return fail_unbegun(record, finished);
  if (watched.delayed) {
    if (watched.next_attempt <= now) return enter_waiting(record, false, finished);
    return set_due(record, std::min(deadline, watched.next_attempt));
  }
  if (record.phase() == task_phase::waiting) return set_due(record, deadline);  // which was extended meanwhile
  const auto due = due_of(record);
  make_room(report.workers);
  set_due(record, due > now ? due : clock::time_point::max());
  if (due > now) return;
  const auto doomed = slot_protocol::try_doom(board_.slot(record.where().slot).word, generation_of(record));
  if (!doomed || !is_possible(*doomed, record)) return;  // done just now; or damage, which the audit finds
  record.overdue_ = true;
  report.workers.push_back({.index = doomed->owner() - 1U, .cancelled = record.doomed_});
}

void dispatcher::fail_unbegun(task_record& record, finished_list& finished) {
  ++counters_.timed_out;
  record.element_ = 0;
  settle(record, failed(errc::timed_out, "its deadline passed before a worker had begun it"), finished);
}

// When it is overdue, as far as is known now. Requires: it is posted.
clock::time_point dispatcher::due_of(task_record& record) {
  auto& watched = terms_.of(record);
  if (record.doomed_) return clock::time_point::min();
  const auto slot = record.where().slot;
  const auto found = slot_protocol::read(board_.slot(slot).word);
  if (found.state() == slot_state::done) return clock::time_point::max();
  const auto limit = watched.asked.timeout;
  if (limit.count() <= 0) return deadline_of(watched.asked);
  auto since = clock::now();  // it has not begun
  if (found.state() == slot_state::claimed && is_possible(found, record)) {
    const std::size_t worker = found.owner() - 1;
    const auto current = board_.line(worker).current.load(std::memory_order_acquire);
    const bool begun = current == current_task(slot, found.short_generation());
    if (!begun && !watched.waited) watched.waited = since;
    since = begun ? start_of(watched, worker, since) : *watched.waited;
  }
  return std::min(deadline_of(watched.asked), later(later(since, limit), pauses_.extension(since, limit)));
}

// A worker that says something impossible is taken to have begun at once.
clock::time_point dispatcher::start_of(const watched_tasks::entry& watched, std::size_t worker, clock::time_point now) {
  const clock::time_point said(
      std::chrono::nanoseconds(static_cast<std::int64_t>(board_.line(worker).started.load(std::memory_order_relaxed))));
  return said < watched.posted || said > now ? watched.posted : said;
}

// It is overdue from now on: the rest is the same.
void dispatcher::doom(task_record& record) {
  if (!record.has_terms_) terms_.begin(record, {});
  record.doomed_ = true;
  record.has_terms_ = true;
  set_due(record, clock::now());
}

void dispatcher::fail_after_cancelling(task_record& record, finished_list& finished) {
  end_claimed(record, error_of(errc::cancelled, "cancelled while it ran; its worker was killed for that"), finished);
}

void dispatcher::fail_after_timeout(task_record& record, finished_list& finished) {
  const auto& asked = terms_.of(record).asked;
  const bool expired = deadline_of(asked) <= clock::now();
  if (!expired && !record.chunk_ && may_try_again(record) && asked.retry_on.after_timeout()) {
    return try_again(record, finished);
  }
  ++counters_.timed_out;
  end_claimed(record,
              expired ? error_of(errc::timed_out, "its deadline passed while it ran; its worker was killed")
                      : timeout_error(asked.timeout),
              finished);
}

}  // namespace muster
