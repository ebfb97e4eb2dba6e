// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/queue/task_terms.hpp>

namespace muster {

class task_record;

/// The tasks that have terms, and when each is to be looked at next.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: logarithmic in their number; other tasks cost nothing.
class watched_tasks {
public:
  struct entry {
    task_record* record = nullptr;
    task_terms asked;
    clock::time_point posted;                          // it cannot have begun before
    clock::time_point due = clock::time_point::max();  // when to look at it
    std::optional<clock::time_point> waited;           // since when it was seen claimed, and not begun
    bool delayed = false;                              // waits for the time of its next attempt, and for no slot
    clock::time_point next_attempt;                    // when that is
  };

  void begin(task_record& record, const task_terms& terms) {
    auto& made = entries_[&record];
    made = {};
    made.record = &record;
    made.asked = terms;
  }
  /// Requires: it has begun.
  [[nodiscard]] entry& of(const task_record& record) { return entries_.at(&record); }
  [[nodiscard]] const entry& of(const task_record& record) const { return entries_.at(&record); }
  void end(task_record& record) {
    set_due(record, clock::time_point::max());
    entries_.erase(&record);
  }

  /// max(): never.
  void set_due(task_record& record, clock::time_point when) {
    auto& due = of(record).due;
    if (due == when) return;
    if (due != clock::time_point::max()) order_.erase({due, &record});
    due = when;
    if (due != clock::time_point::max()) order_.emplace(due, &record);
  }
  /// One that is to be looked at by now; nullptr: none.
  [[nodiscard]] task_record* first_due(clock::time_point now) const {
    return !order_.empty() && order_.begin()->first <= now ? order_.begin()->second : nullptr;
  }
  /// When the next one is due.
  [[nodiscard]] clock::time_point next() const {
    return order_.empty() ? clock::time_point::max() : order_.begin()->first;
  }

  /// All that are delayed, also until the end of all time: those are in no order.
  [[nodiscard]] std::vector<task_record*> delayed() const {
    std::vector<task_record*> found;
    for (const auto& [key, each] : entries_) {
      if (each.delayed) found.push_back(each.record);
    }
    return found;
  }

private:
  std::unordered_map<const task_record*, entry> entries_;
  std::set<std::pair<clock::time_point, task_record*>> order_;
};

}  // namespace muster
