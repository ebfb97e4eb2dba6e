// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/memory/arena_statistics.hpp>
#include <muster/process/worker_info.hpp>
#include <muster/queue/detail/slow_task.hpp>
#include <muster/queue/dispatcher_reports.hpp>

namespace muster {

/// What one worker of a pool has done, over all its incarnations.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct worker_statistics {
  std::size_t index = 0;          ///< in its pool, from 0
  pid_t pid = 0;                  ///< 0: no process at the moment
  std::uint32_t incarnation = 0;  ///< how many processes with this index have been started
  worker_lifecycle::state state = worker_lifecycle::state::absent;  ///< whether it starts, takes tasks or stops
  std::uint64_t tasks_done = 0;        ///< whose replies the parent has taken; of a map: chunks
  std::chrono::nanoseconds working{};  ///< at tasks, also what it is at now; only what was timed (pool_options::timing)
  std::chrono::nanoseconds idle{};     ///< ready and without a task, while times were taken
  std::chrono::nanoseconds start_up{};  ///< of its last start: until it was ready, initializer included
  std::size_t held_bytes = 0;           ///< of the domain's arena, in the name of its process
  std::size_t warm_bytes = 0;           ///< of those, what its process has freed and keeps for its next allocations
  crew_statistics processes;            ///< how often it was started and ended, by reason
};

/// What a pool has done so far.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct pool_statistics {
  dispatcher_statistics tasks;  ///< a chunk of a map counts as one; of those retried and lost, each element
  crew_statistics workers;      ///< how often they were started and ended, of all workers together
  /// Of the domain, which pools share: in_use_bytes() and warm_bytes are of all processes together, cached_bytes is
  /// what the program itself keeps warm of that.
  arena_statistics memory;
  std::size_t pending = 0;                       ///< accepted and not ended
  std::vector<worker_statistics> each_worker{};  ///< by index
  std::vector<slow_task> slowest{};              ///< the slowest few of those that were timed, the slowest first
};

/// The statistics in the text format that Prometheus reads (exposition format 0.0.4), every sample with the label
/// `pool`, those of workers also with `worker`. The names begin with `muster_`, counters end in `_total`, times are in
/// seconds.
///
///     std::string page = muster::to_prometheus(pool.stats(), "resize");
///
/// Thread safety: safe. Cost: some 100 bytes per sample, about ten samples and ten per worker.
[[nodiscard]] std::string to_prometheus(const pool_statistics& statistics, std::string_view pool_name);

}  // namespace muster
