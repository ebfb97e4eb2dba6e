// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace scaling {

using std::chrono::nanoseconds;

/// What lies on a cache line.
enum class line_kind : std::uint8_t { slot, head, entry, ring, set, lock, other };
inline constexpr std::size_t line_kinds = 7;

/// What was done to lines of one kind.
struct line_counts {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;     ///< stores and read-modify-writes
  std::uint64_t failed = 0;     ///< compare-and-swaps that found another value
  std::uint64_t transfers = 0;  ///< by which the line came from another core; known to the simulation alone
};

struct event_counts {
  std::array<line_counts, line_kinds> lines{};
  std::uint64_t sleeps = 0;
  std::uint64_t wakes = 0;  ///< system calls to wake somebody

  line_counts& of(line_kind kind) { return lines[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const line_counts& of(line_kind kind) const { return lines[static_cast<std::size_t>(kind)]; }
  event_counts& operator+=(const event_counts& more);
};

/// How a task finds its worker.
enum class dispatch : std::uint8_t {
  as_built,  ///< one lane for all
  batch,     ///< the same; while there is a backlog a worker takes four entries at once
  sharded,   ///< a lane for each group of workers, filled in turn; an idle worker looks at its neighbours' lanes
  pushed     ///< a lane for each worker, filled in turn; an idle worker looks at those of its group
};

/// What a worker does when another was faster.
enum class patience : std::uint8_t {
  none,      ///< moves the head if it is still there; as built
  careful,   ///< and does not ask for the next slot's line to write until it has won again
  back_off,  ///< and lets some time go by, more each time
};

/// How the parent notices that a task has ended.
enum class completion : std::uint8_t {
  slots,  ///< whoever waits looks at the task's slot; as built, for futures
  ahead,  ///< the same, and asks for the next slot's line early
  rings,  ///< a ring for each worker; as built, for tasks with a sink
  sweep   ///< one thread looks at all slots in use
};

/// One run: who does how much of what.
struct plan {
  std::size_t workers = 1;
  std::size_t submitters = 1;
  std::size_t window = 256;  ///< tasks under way, of all submitters
  std::size_t tasks = 4096;
  nanoseconds length{0};  ///< of a task, give or take a tenth
  dispatch how = dispatch::as_built;
  patience losers = patience::none;
  completion ends = completion::slots;
  std::size_t spinners = 64;     ///< the most workers that spin at a time
  bool relay = false;            ///< who is being woken counts as one that spins: he will wake the next
  std::size_t enough = 1;        ///< nobody is woken while so many spin
  std::size_t group = 16;        ///< workers of one lane, where lanes are sharded
  nanoseconds spin{6000};        ///< before anybody sleeps
  nanoseconds post_locked{15};   ///< own instructions of a submitter under the lock …
  nanoseconds post_unlocked{5};  ///< … and outside
  nanoseconds take_locked{10};
  nanoseconds take_unlocked{5};
  nanoseconds run_overhead{15};  ///< of a worker, around the task
};

/// What a run found.
struct figures {
  event_counts events;
  std::uint64_t tasks = 0;
  std::uint64_t looks = 0;          ///< at lanes, that found an entry
  std::uint64_t lost = 0;           ///< of these, the task had been claimed by another
  std::uint64_t helped = 0;         ///< the loser moved the head
  nanoseconds busy{0};              ///< in tasks, of all workers
  std::vector<nanoseconds> delays;  ///< from publishing to starting

  // Over the later four fifths of the tasks.
  double tasks_per_second = 0;
  double utilisation = 0;

  figures& operator+=(const figures& more);
  [[nodiscard]] double per_task(std::uint64_t count) const {
    return static_cast<double>(count) / static_cast<double>(tasks);
  }
  [[nodiscard]] double transfers_per_task(line_kind kind) const { return per_task(events.of(kind).transfers); }
  [[nodiscard]] double transfers_per_task() const;
  /// Requires: 0 <= share <= 1.
  [[nodiscard]] nanoseconds delay(double share) const;
};

[[nodiscard]] std::string name_of(completion ends);

}  // namespace scaling
