// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/queue/detail/slow_task.hpp>
#include <muster/queue/task_labels.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster {

/// How one run of a task ended, or a task that no worker had begun.
enum class task_outcome : std::uint8_t {
  ok,
  failed,  ///< its function threw; of a chunk: that of one of its elements
  worker_died,
  timed_out,
  cancelled,
  corrupted,
  refused  ///< the pool took it, and could not run it: it was full, or broken
};

/// As traces show it.
[[nodiscard]] std::string_view to_string(task_outcome outcome) noexcept;

/// One run of a task in a worker; or, without worker, the end of a task that none had begun.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct task_event {
  std::uint64_t task = 0;
  std::uint16_t attempt = 1;  ///< 65 535 also for all after it
  std::int16_t worker = -1;
  pid_t pid = 0;
  label_ref label{};
  function_token function{};
  std::uint32_t elements = 1;
  task_outcome outcome = task_outcome::ok;
  bool chunk = false;
  bool told = true;             ///< the worker said when it began, and when it ended if it did; else these are bounds
  clock::time_point submitted;  ///< the first attempt: the call; a later one: when it was posted
  clock::time_point begin{};
  clock::time_point end{};
};
static_assert(sizeof(task_event) == 64);  // they come fast, and many may wait to be written

/// What a dispatcher keeps of tasks whose times are taken.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: nothing while it is off; else an entry per pending task, and an event per run until somebody takes it.
class task_timing {
public:
  /// The most events that wait to be taken: 64 MiB. Those that come after them are counted, and lost.
  static constexpr std::size_t most_events = std::size_t{1} << 20U;
  static constexpr std::size_t most_slow_tasks = 5;

  struct entry {
    clock::time_point submitted;
    clock::time_point posted;  // last: it cannot have begun before
    std::uint32_t elements = 1;
    bool is_new = true;     // it has not waited anywhere yet: it is posted at once
    bool reported = false;  // the run that has just ended
  };
  using number = std::uint32_t;

  explicit task_timing(std::size_t workers) : working_(workers) {}

  [[nodiscard]] bool is_on() const noexcept { return statistics_ || events_wanted_; }
  void set_statistics(bool on) noexcept { statistics_ = on; }
  /// `some` is called when there are events after there were none; must not call back.
  void begin_events(std::function<void()> some) {
    constexpr std::size_t usual = std::size_t{1} << 14U;
    events_.reserve(usual);
    events_wanted_ = true;
    some_ = std::move(some);
  }
  void end_events() noexcept {
    events_wanted_ = false;
    some_ = nullptr;
  }

  /// Of so many tasks at once times can be taken.
  static constexpr std::size_t most_entries = std::size_t{1} << 24U;
  [[nodiscard]] bool is_full() const noexcept { return unused_.empty() && entries_.size() == most_entries; }
  /// Returns what the entry is found by until its end. Requires: !is_full().
  [[nodiscard]] number begin(std::uint64_t elements);
  /// Requires: it has begun.
  [[nodiscard]] entry& of(number which) { return entries_[which]; }
  [[nodiscard]] const entry& of(number which) const { return entries_[which]; }
  void end(number which) { unused_.push_back(which); }

  /// `inside`: it ran while its worker was at another task, which called it.
  void ran(const task_event& event, bool inside);
  /// As ran, of a task that no worker had begun.
  void ended_unbegun(const task_event& event) { keep(event); }

  /// Moves what has come since the last time into `events`; the result is how many more there were, which are lost.
  std::uint64_t take_events(std::vector<task_event>& events);

  /// How long each worker has been at tasks that have ended.
  [[nodiscard]] const std::vector<std::chrono::nanoseconds>& working() const noexcept { return working_; }
  /// The slowest first.
  [[nodiscard]] const std::vector<slow_task>& slowest() const noexcept { return slowest_; }

private:
  void keep(const task_event& event);
  void compare(const task_event& event);

  bool statistics_ = false;
  bool events_wanted_ = false;
  std::function<void()> some_;
  std::vector<entry> entries_;
  std::vector<number> unused_;
  std::vector<task_event> events_;
  std::uint64_t lost_ = 0;
  std::vector<std::chrono::nanoseconds> working_;
  std::vector<slow_task> slowest_;
};

}  // namespace muster
