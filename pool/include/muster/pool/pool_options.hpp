// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <muster/base/log.hpp>
#include <muster/pool/worker_task.hpp>
#include <muster/queue/dispatcher.hpp>

namespace muster {

/// What a pool is made of. All have defaults; `muster::pool pool({.workers = 4});`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct pool_options {
  /// Worker processes, at most 256. 0: as many as this process may keep processors busy (affinity, CPU quota).
  unsigned workers = 0;
  /// Shown in logs, errors and ps.
  std::string name = "pool";
  /// Run in every worker before its first task, and in each that takes its place. If it fails `start_tries` times in
  /// a row the pool is broken: everything pending and every later call fails with its error.
  worker_task initializer{};
  /// Run in a worker that leaves in good order: on close and join, and when it is recycled. Not in one that is killed.
  worker_task finalizer{};
  /// A worker is replaced after so many tasks (elements, for map; it finishes the chunk that it is at). 0: never.
  std::uint64_t max_tasks_per_worker = 0;
  /// How much freed memory a worker keeps for its next task, at most 2 GiB. Large arguments that are copied out of
  /// shared memory are faster then, because their pages are there already; a worker that had large ones stays large.
  /// 0: what malloc does by itself, which is to give pieces above 32 MiB back at once.
  std::size_t worker_heap_bytes = 0;
  /// How many tasks may be accepted and not ended. 0: without limit.
  std::size_t max_pending = 0;
  /// What happens to one task more, and how long a call waits under overflow_policy::block.
  overflow_policy overflow = overflow_policy::block;
  std::chrono::nanoseconds overflow_wait = std::chrono::nanoseconds::max();
  /// The most that all payloads in flight may take in shared memory, for the pool that makes the program's domain.
  /// Memory is used only for what is touched. 0: as much as the machine, the control group and half of RLIMIT_AS allow.
  std::size_t arena_bytes = 0;
  /// A domain of its own: no shared memory in common with other pools.
  bool isolated = false;
  /// Starts in a row that may fail before the pool is broken, and how long one may take, initializer included.
  unsigned start_tries = 3;
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  /// How long the destructor lets running tasks finish before it kills.
  std::chrono::nanoseconds destructor_grace = std::chrono::milliseconds(100);
  log_sink log = log_to_stderr;
};

}  // namespace muster
