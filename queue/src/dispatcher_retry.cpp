// SPDX-License-Identifier: BSL-1.0
// Further attempts at tasks that have failed. A task that is to be tried again after errors ends only when the parent
// has looked at its reply, so it always notifies, and who waits for it sleeps on the record.
#include <algorithm>
#include <cstdint>

#include <muster/base/detail/retry_delay.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "nested_request.hpp"

namespace muster {

retry_reasons dispatcher::retries_of(const task_record& record) const {
  return record.has_terms_ ? terms_.of(record).asked.retry_on : task_terms().retry_on;
}

bool dispatcher::may_try_again(const task_record& record) const {
  return record.retries_left_ > 0 && !stopped_ && !will_be_killed_;
}

// Requires: it is posted, and its worker dead.
void dispatcher::try_again(task_record& record, finished_list& finished) {
  free_slots_.push_back(record.where().slot);
  take_back(record);
  begin_attempt(record, finished);
}

// Requires: it is in no slot, and keeps its arguments.
void dispatcher::begin_attempt(task_record& record, finished_list& finished) {
  --record.retries_left_;
  if (record.attempt_ < UINT32_MAX) ++record.attempt_;
  ++counters_.retried;
  record.overdue_ = false;
  wait_for(delay_of(record), record, finished);
}

// Before it waits for a slot. Requires: it has terms, unless there is no delay.
void dispatcher::wait_for(std::chrono::nanoseconds delay, task_record& record, finished_list& finished) {
  if (delay.count() == 0) return enter_waiting(record, record.attempt_ > 1, finished);  // it has waited longest
  auto& watched = terms_.of(record);
  watched.delayed = true;
  watched.next_attempt = later(clock::now(), delay);
  set_due(record, std::min(deadline_of(watched.asked), watched.next_attempt));
  if (has_backlog()) feed();  // with the slot that it had
}

std::chrono::nanoseconds dispatcher::delay_of(const task_record& record) {
  if (!record.has_terms_) return {};
  return detail::retry_delay(terms_.of(record).asked.retry_delay, record.attempt_, jitter_);
}

// Not where there is no memory to look at the error.
bool dispatcher::is_reason_to_retry(const task_record& record, const task_reply& reply) const noexcept {
  try {
    return retries_of(record).after(reply.error());
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The task is done, as its slot says: it ends now, or is tried again.
void dispatcher::settle_done(task_record& record, finished_list& finished) {
  const bool may_go_on = record.retries_errors_ && may_try_again(record);
  const auto arguments = may_go_on ? arguments_of(record) : argument_line();
  auto reply = collect(record);
  if (!may_go_on || reply.succeeded() || !is_reason_to_retry(record, reply)) {
    return settle(record, std::move(reply), finished);
  }
  record.keep_arguments(arguments);
  record.move_to({.phase = task_phase::waiting});
  begin_attempt(record, finished);
}

}  // namespace muster
