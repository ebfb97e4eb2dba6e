// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/intrusive/set.hpp>

#include <muster/base/clock.hpp>
#include <muster/queue/detail/task_terms.hpp>

namespace muster {

class task_record;

/// The tasks that have terms, and when each is to be looked at next.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: logarithmic in their number; other tasks cost nothing. Only begin() allocates.
class watched_tasks {
public:
  struct entry : boost::intrusive::set_base_hook<> {
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
    auto& watched = of(record);
    if (watched.due == when) return;
    if (watched.due != clock::time_point::max()) order_.erase(order_.iterator_to(watched));
    watched.due = when;
    if (watched.due != clock::time_point::max()) order_.insert(watched);
  }
  /// One that is to be looked at by now; nullptr: none.
  [[nodiscard]] task_record* first_due(clock::time_point now) const {
    return !order_.empty() && order_.begin()->due <= now ? order_.begin()->record : nullptr;
  }
  /// When the next one is due.
  [[nodiscard]] clock::time_point next() const {
    return order_.empty() ? clock::time_point::max() : order_.begin()->due;
  }

  /// One that is delayed, maybe until the end of all time, when it is in no order; nullptr: none.
  [[nodiscard]] task_record* first_delayed() const {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [](const auto& each) { return each.second.delayed; });
    return found != entries_.end() ? found->second.record : nullptr;
  }

private:
  std::unordered_map<const task_record*, entry> entries_;
  struct by_time {
    bool operator()(const entry& left, const entry& right) const noexcept {
      if (left.due != right.due) return left.due < right.due;
      return std::less<const task_record*>()(left.record, right.record);
    }
  };
  boost::intrusive::set<entry, boost::intrusive::compare<by_time>, boost::intrusive::constant_time_size<false>> order_;
};

}  // namespace muster
