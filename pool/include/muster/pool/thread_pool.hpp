// SPDX-License-Identifier: BSL-1.0
#pragma once

// Pools of threads of this process, with the calls of a pool of worker processes.
//
//     muster::thread_pool pool({.workers = 4});
//     auto size = pool.apply_async([&cache](const std::string& name) { return cache.find(name).size(); }, "a");

#include <cstddef>

#include <muster/async/as_completed.hpp>
#include <muster/async/future.hpp>
#include <muster/async/when_all.hpp>
#include <muster/async/when_any.hpp>
#include <muster/pool/basic_pool.hpp>
#include <muster/pool/detail/thread_engine.hpp>
#include <muster/pool/local_calls.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/pool/thread_pool_options.hpp>
#include <muster/serialize/shared_object.hpp>

namespace muster {

/// What all pools of threads are. Not made itself; see thread_pool, ctx_thread_pool and serial_pool. What they do not
/// have of `pool`, and why: docs/architecture.md.
///
/// Thread safety and process safety: as basic_pool.
template <class Adapter>
class basic_thread_pool : public basic_pool<detail::thread_engine, Adapter> {
protected:
  /// `threads`: how many threads to start. `make_context`: makes the context of each thread, where the pool has
  /// contexts.
  explicit basic_thread_pool(const thread_pool_options& options, std::size_t threads,
                             const detail::local_context_maker& make_context = {})
      : basic_pool<detail::thread_engine, Adapter>(detail::lane_route(), options, threads, make_context) {}
  /// As close, then terminate after thread_pool_options::destructor_grace; then waits for tasks that run, because a
  /// thread cannot be ended from outside: a task that never ends and never looks at this_task::stop_requested() holds
  /// it up for ever. Never throws. Callbacks that were due have run when it returns. In a task of the pool, or in what
  /// a task has captured, it returns at once, and all this happens on another thread.
  ~basic_thread_pool() = default;
};

/// Threads of this process that run functions. For work that shares memory and does not crash; a `pool` is for work
/// that may. The calls are the same, so one can take the other's place.
///
/// Thread safety and process safety: as basic_thread_pool.
class thread_pool : public basic_thread_pool<detail::as_given> {
public:
  /// Starts the threads and waits until their initializers have run. Throws errc::invalid_argument; errc::start_failed
  /// with what an initializer threw; what std::thread throws.
  explicit thread_pool(const thread_pool_options& options = {})
      : basic_thread_pool(options, detail::thread_count(options)) {}
};

}  // namespace muster
