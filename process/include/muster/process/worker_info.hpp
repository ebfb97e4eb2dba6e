// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include <muster/base/device.hpp>
#include <muster/process/lifecycle.hpp>

namespace muster {

/// One worker as seen from outside.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct worker_info {
  std::size_t index = 0;          ///< in its pool, from 0; the process that takes its place has the same
  pid_t pid = 0;                  ///< 0: no process at the moment
  std::uint32_t incarnation = 0;  ///< how many processes with this index have been started, this one included
  worker_lifecycle::state state = worker_lifecycle::state::absent;  ///< whether it starts, takes tasks or stops
  muster::device device{};  ///< that it is pinned to, as the program names it; the host where it is not
};

/// How often workers ended, by reason.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct crew_statistics {
  std::uint64_t started = 0;          ///< processes, also those that then failed to start
  std::uint64_t recycled = 0;         ///< left in good order, and were replaced; by reason:
  std::uint64_t recycled_tasks = 0;   ///< they had run as many tasks as they may
  std::uint64_t recycled_age = 0;     ///< they were as old as they may become
  std::uint64_t recycled_memory = 0;  ///< they had more memory than they may
  std::uint64_t recycled_unfit = 0;   ///< they had said that they must not run another task
  std::uint64_t retired = 0;          ///< left in good order, because the crew was made smaller
  std::uint64_t killed = 0;           ///< by a signal
  std::uint64_t exited = 0;           ///< by themselves, without having been told
  std::uint64_t failed_starts = 0;    ///< before they could take tasks
  std::uint64_t suspected = 0;        ///< killed because their own words in shared memory had been overwritten
  std::uint64_t overdue = 0;          ///< killed because a task ran for longer than its timeout
  std::uint64_t cancelled = 0;        ///< killed because the task that it ran was cancelled
  std::uint64_t replacements = 0;     ///< times all were killed, because that or the like was repeated
};

}  // namespace muster
