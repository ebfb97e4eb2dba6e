// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <muster/base/detail/duration.hpp>
#include <muster/base/log.hpp>
#include <muster/queue/overflow_policy.hpp>

namespace muster {

/// What a pool of threads is made of. All have defaults.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct thread_pool_options {
  /// At most 1000. 0: as many as this process may keep processors busy (effective_cpus()).
  unsigned workers = 0;
  /// Whether the threads run where the thread may that makes the pool, of which `workers = 0` then counts the
  /// processors. false: where the process may (process_cpus()), whatever a library has bound the calling thread to.
  bool as_caller = false;
  /// this_worker::pool_name().
  std::string name = "threads";
  /// Run in every thread before its first task. What it throws is thrown by the pool's constructor.
  std::function<void()> initializer{};
  /// Run in every thread before it ends. What it throws is logged.
  std::function<void()> finalizer{};
  /// How many calls may be accepted and not ended; for one more, `overflow` says what happens. 0: without limit. apply
  /// and apply_async count as one, broadcast as one for each worker, and map and starmap, also _async, as one however
  /// many elements they have. Streams do not count, since their window bounds them, nor do calls that are let through
  /// because somebody may wait for them: those that tasks of this pool make, and those whose arguments are futures.
  std::size_t max_pending = 0;
  /// What happens to one call more, and how long it waits under overflow_policy::block.
  ///@{
  overflow_policy overflow = overflow_policy::block;
  std::chrono::nanoseconds overflow_wait = std::chrono::nanoseconds::max();
  ///@}
  /// How long the destructor lets tasks finish before it cancels what has not begun and asks the others to stop.
  std::chrono::nanoseconds destructor_grace = std::chrono::milliseconds(100);
  /// Receives the messages about the pool.
  log_sink log = log_to_stderr;
};

/// What a pool of threads has done so far.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct thread_pool_statistics {
  std::uint64_t accepted = 0;  ///< tasks; a map counts as one
  std::uint64_t ended = 0;     ///< of those; a task is counted just after its future is ready
  std::uint64_t pending = 0;   ///< accepted and not ended
};

}  // namespace muster
