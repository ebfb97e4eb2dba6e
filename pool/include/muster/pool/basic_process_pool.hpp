// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>

#include <muster/async/future.hpp>
#include <muster/pool/basic_pool.hpp>
#include <muster/pool/detail/process_engine.hpp>

namespace muster {

/// What pools of processes have beyond other pools. Not made itself; see pool, p2p_pool and ctx_pool.
///
/// Thread safety and process safety: as pool.
template <class Adapter>
class basic_process_pool : public basic_pool<detail::process_engine, Adapter> {
public:
  /// Grows or shrinks to so many workers; 0: as many as pool_options::workers 0 means. The first ones stay. New ones
  /// run the initializer, and are there for tasks at once. Those beyond finish the task that they are at, and what was
  /// meant for them alone (on), then run the finalizer and leave; nothing is lost or killed. Returns when the new ones
  /// have been accepted, as in the constructor, and the others have left.
  /// Throws errc::invalid_argument for more than pool_options::max_workers, errc::pool_closed, and, if a worker cannot
  /// be started, what breaks the pool: errc::start_failed and the like; errc::cancelled when the pool is closed or
  /// terminated meanwhile.
  /// Unblocked by: these; no time limit for tasks that retiring workers are at.
  /// Thread safety: safe; the last call counts.
  void resize(std::size_t workers) { resize_async(workers).get(); }
  /// The same; the future is ready when it is done. Cancelling it does nothing.
  [[nodiscard]] future<void> resize_async(std::size_t workers) { return this->host().resize_async(workers); }

  /// From now on until end_trace(), or the pool's end, what tasks do is written into `file`, which is made anew: as an
  /// array of trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing open. The pool's program is a process
  /// there, with a row for itself and one for each worker, whichever process it is. Each run of a task, or of a chunk
  /// of a map, is an event in its worker's row, named by the task's label or the type of its callable, with the task's
  /// number, attempt, outcome, and elements; an arrow leads to it from where it was posted. The times of runs are those
  /// of the worker; where its process did not live to say them, or said something impossible, the event has
  /// `"times": "bounds"`. A task that ends without any worker having begun it is an instant in the parent's row. Times
  /// are microseconds of CLOCK_MONOTONIC. A trace that was begun before ends first.
  ///
  /// Calls that a task makes to its own pool and then runs itself before a worker has taken them are no tasks of
  /// their own. If the program is killed, the file has everything up to about 50 ms before, and no closing bracket,
  /// which the format does not ask for.
  ///
  /// Throws muster::error when the file cannot be written, with its name and the cause, and EAGAIN when no thread can
  /// be had for that; there is no trace then. Thread safety: safe. Cost: as pool_options::timing, and what it takes to
  /// write some 500 bytes per run, on a thread of its own; a million events wait for that at most.
  void trace_to(const std::string& file) { this->host().trace_to(file); }
  /// Ends the trace: its file is complete when this returns. Nothing, if there is none.
  /// Throws muster::error when not everything could be written. (The destructor logs that instead.)
  void end_trace() { this->host().end_trace(); }

protected:
  using basic_pool<detail::process_engine, Adapter>::basic_pool;
  ~basic_process_pool() = default;
};

}  // namespace muster
