// SPDX-License-Identifier: BSL-1.0
// When tasks ran. The worker writes it beside the slot, if its line asks for it; the parent reads it when it learns of
// the end, and believes only what is possible: a worker may have been killed on the way, or have written anything.
#include <cstring>
#include <ctime>
#include <utility>

#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

namespace muster {

namespace {

clock::time_point time_said(const std::atomic<std::uint64_t>& word) noexcept {
  return clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(word.load(std::memory_order_relaxed))));
}

// Not before it, and at most some milliseconds after: what a worker says is believed up to then. A reading of the exact
// clock for every task would cost as much as all else that is kept of it.
clock::time_point about_now() noexcept {
  constexpr auto tick = std::chrono::milliseconds(20);
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return clock::time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)) + tick;
}

errc code_of(const task_reply& reply) noexcept {
  try {
    return reply.error().code();
  } catch (const std::bad_alloc&) {
    return errc::out_of_memory;
  }
}

task_outcome outcome_of(const task_reply& reply) {
  if (reply.succeeded()) return task_outcome::ok;
  const auto code = code_of(reply);
  if (code == errc::cancelled) return task_outcome::cancelled;
  if (code == errc::timed_out) return task_outcome::timed_out;
  if (code == errc::corrupted) return task_outcome::corrupted;
  return task_outcome::refused;
}

// A chunk whose element has failed is a success with the handle of an error.
bool has_failed(const task_reply& reply, bool chunk) {
  if (!reply.succeeded()) return true;
  if (!chunk || reply.bytes().size() != inline_reply_bytes) return false;
  std::uint64_t error = 0;
  std::memcpy(&error, reply.bytes().last(sizeof error).data(), sizeof error);
  return error != 0;
}

}  // namespace

void dispatcher::time_statistics(bool on) {
  const scoped_lock lock(mutex_);
  timing_.set_statistics(on);
  ask_for_times();
}

void dispatcher::begin_events(std::function<void()> some) {
  const scoped_lock lock(mutex_);
  timing_.begin_events(std::move(some));
  ask_for_times();
}

void dispatcher::end_events() {
  const scoped_lock lock(mutex_);
  timing_.end_events();
  ask_for_times();
}

std::uint64_t dispatcher::take_events(std::vector<task_event>& events) {
  const scoped_lock lock(mutex_);
  return timing_.take_events(events);
}

// Again whenever a worker starts: somebody may have overwritten it.
void dispatcher::ask_for_times() {
  for (std::size_t worker = 0; worker < board_.used(); ++worker) ask_for_times(worker);
}

void dispatcher::ask_for_times(std::size_t worker) {
  board_.line(worker).timing.store(timing_.is_on() ? 1 : 0, std::memory_order_relaxed);
}

void dispatcher::begin_timing(task_record& record, const task_request& request) {
  if (timing_.is_full()) return;
  record.timing_ = timing_.begin(request.elements) & (task_timing::most_entries - 1);
  record.timed_ = true;
}

task_event dispatcher::event_of(const task_record& record) {
  const auto& known = timing_.of(record.timing_);
  return {.task = record.id_,
          .attempt = static_cast<std::uint16_t>(std::min<std::uint32_t>(record.attempt_, UINT16_MAX)),
          .label = record.label_,
          .function = record.function_,
          .elements = known.elements,
          .chunk = record.chunk_,
          .submitted = known.submitted};
}

// It cannot begin before this. A later attempt is submitted by the dispatcher.
void dispatcher::note_posted(task_record& record) {
  auto& known = timing_.of(record.timing_);
  if (std::exchange(known.is_new, false)) return;  // then it was submitted just now
  known.posted = clock::now();
  if (std::exchange(known.reported, false)) known.submitted = known.posted;
}

// Requires: it is in its slot, and a worker was at it.
void dispatcher::note_run(task_record& record, task_outcome outcome) {
  auto& known = timing_.of(record.timing_);
  const auto latest = about_now();
  const auto& said = board_.times(record.where().slot);
  const bool replied = outcome == task_outcome::ok || outcome == task_outcome::failed;
  auto event = event_of(record);
  event.outcome = outcome;
  event.worker = record.worker_;
  event.pid = record.pid_;
  event.begin = time_said(said.begin);
  const bool begun = event.begin >= known.posted && event.begin <= latest;
  if (!begun) event.begin = known.posted;
  if (replied) event.end = time_said(said.end);
  const bool ended = replied && event.end >= event.begin && event.end <= latest;
  if (!ended) event.end = clock::now();
  event.told = begun && (ended || !replied);
  known.reported = true;
  timing_.ran(event, was_called_by(record, static_cast<std::size_t>(record.worker_)));
}

void dispatcher::note_reply(task_record& record, const task_reply& reply) {
  note_run(record, has_failed(reply, record.chunk_) ? task_outcome::failed : task_outcome::ok);
}

// The end of it all. One that no worker was at has not been told of yet.
void dispatcher::end_timing(task_record& record, const task_reply& reply) {
  if (!timing_.of(record.timing_).reported) {
    auto event = event_of(record);
    event.outcome = outcome_of(reply);
    event.begin = event.end = clock::now();
    timing_.ended_unbegun(event);
  }
  forget_timing(record);
}

void dispatcher::forget_timing(task_record& record) {
  timing_.end(record.timing_);
  record.timed_ = false;
}

std::vector<dispatcher::worker_counts> dispatcher::read_worker_counts() const {
  const scoped_lock lock(mutex_);
  std::vector<worker_counts> counts(done_.size());
  for (std::size_t worker = 0; worker < counts.size(); ++worker) {
    counts[worker] = {.done = done_[worker], .working = timing_.working()[worker]};
  }
  const auto now = clock::now();
  for (const auto* record : in_slot_) {  // what workers are at
    if (record == nullptr || !record->timed_) continue;
    const auto where = record->where();
    const auto worker = slot_protocol::read(board_.slot(where.slot).word).owner() - std::size_t{1};
    const auto begin = time_said(board_.times(where.slot).begin);
    if (worker >= counts.size() || was_called_by(*record, worker)) continue;
    if (begin >= timing_.of(record->timing_).posted && begin <= now) counts[worker].working += now - begin;
  }
  return counts;
}

std::vector<slow_task> dispatcher::read_slowest() const {
  const scoped_lock lock(mutex_);
  return timing_.slowest();
}

}  // namespace muster
