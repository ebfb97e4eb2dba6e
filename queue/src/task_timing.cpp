// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/task_timing.hpp>

#include <algorithm>
#include <new>

namespace muster {

std::string_view to_string(task_outcome outcome) noexcept {
  switch (outcome) {
    case task_outcome::ok: return "ok";
    case task_outcome::failed: return "failed";
    case task_outcome::worker_died: return "worker_died";
    case task_outcome::timed_out: return "timed_out";
    case task_outcome::cancelled: return "cancelled";
    case task_outcome::corrupted: return "corrupted";
    case task_outcome::refused: break;
  }
  return "refused";
}

task_timing::number task_timing::begin(std::uint64_t elements) {
  const auto now = clock::now();
  const entry made{.submitted = now,
                   .posted = now,
                   .elements = static_cast<std::uint32_t>(std::min<std::uint64_t>(elements, UINT32_MAX))};
  if (unused_.empty()) {
    if (entries_.size() == entries_.capacity()) entries_.reserve(std::max<std::size_t>(16, 2 * entries_.size()));
    unused_.reserve(entries_.capacity());  // end() allocates nothing
    entries_.push_back(made);
    return static_cast<number>(entries_.size() - 1);
  }
  const auto which = unused_.back();
  unused_.pop_back();
  entries_[which] = made;
  return which;
}

void task_timing::ran(const task_event& event, bool inside) {
  const auto worker = static_cast<std::size_t>(event.worker);
  if (!inside && worker < working_.size()) working_[worker] += event.end - event.begin;
  try {
    compare(event);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): without memory for its label it is no slow task
  }
  keep(event);
}

void task_timing::keep(const task_event& event) {
  if (!events_wanted_) return;
  if (events_.size() >= most_events) {
    ++lost_;
    return;
  }
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc&) {
    ++lost_;
    return;
  }
  if (events_.size() == 1 && some_) some_();
}

void task_timing::compare(const task_event& event) {
  const auto time = event.end - event.begin;
  if (slowest_.size() == most_slow_tasks) {
    if (time <= slowest_.back().time) return;
    slowest_.pop_back();
  }
  const auto behind =
      std::find_if(slowest_.begin(), slowest_.end(), [&](const auto& each) { return each.time < time; });
  slowest_.insert(behind, {.label = text_of(event.label),
                           .task = event.task,
                           .elements = event.elements,
                           .time = time,
                           .worker = static_cast<std::size_t>(event.worker)});
}

std::uint64_t task_timing::take_events(std::vector<task_event>& events) {
  events.clear();
  events_.swap(events);
  return std::exchange(lost_, 0);
}

}  // namespace muster
