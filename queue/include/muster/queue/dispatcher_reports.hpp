// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <muster/base/clock.hpp>

namespace muster {

/// What a dispatcher has counted.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct dispatcher_statistics {
  std::uint64_t accepted = 0;                   ///< tasks; a chunk of a map is one
  std::uint64_t ended = 0;                      ///< of those, in whatever way
  std::uint64_t waiting = 0;                    ///< without a slot
  std::uint64_t retried = 0;                    ///< attempts after the first
  std::uint64_t requeued = 0;                   ///< claimed by a worker that died before it began
  std::uint64_t timed_out = 0;                  ///< tasks, and elements of chunks: by timeout or by deadline
  std::uint64_t lost = 0;                       ///< ended by the death of a worker; chunks do not count
  std::uint64_t quarantined = 0;                ///< not tried again, because they had killed too many workers
  std::uint64_t corrupted = 0;                  ///< ended because somebody had overwritten what says how they stand
  std::uint64_t damaged = 0;                    ///< times that overwritten words were noticed: of tasks, lanes, workers
  std::uint64_t argument_bytes_copied = 0;      ///< encoded, of tasks and of the elements of maps
  std::uint64_t argument_bytes_referenced = 0;  ///< of tensors and shared objects that went along as the same memory
};

/// What an audit has found, for whoever can do something about it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct audit_report {
  bool more = false;                  ///< tasks are pending: another audit is due
  std::vector<std::size_t> suspects;  ///< workers whose own words were damaged: kill them
  bool repeated = false;              ///< damage repeats: kill all workers, then renew() the board
};

/// Whose task has run out of time, or was cancelled while it ran; and when to look again.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct overdue_report {
  /// One whose task is over.
  struct worker {
    std::size_t index = 0;   ///< in its pool
    bool cancelled = false;  ///< the task was
    friend bool operator==(const worker&, const worker&) = default;
  };
  std::vector<worker> workers;                        ///< kill them
  std::size_t looked_at = 0;                          ///< how many tasks were due; the others cost nothing
  clock::time_point next = clock::time_point::max();  ///< when to look again
};

}  // namespace muster
