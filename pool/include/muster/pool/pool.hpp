// SPDX-License-Identifier: BSL-1.0
#pragma once

// A pool of supervised worker processes.
//
//     int square(int x) { return x * x; }
//
//     int main(int argc, char** argv) {
//       muster::init(argc, argv);
//       muster::pool pool({.workers = 4});
//       std::vector<int> squares = pool.map(square, std::vector{1, 2, 3});
//     }

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <muster/pool/as_completed.hpp>
#include <muster/pool/future.hpp>
#include <muster/pool/pool_options.hpp>
#include <muster/pool/pool_statistics.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/submit_calls.hpp>
#include <muster/pool/submitter.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/pool/this_pool.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/pool/when_all.hpp>
#include <muster/pool/when_any.hpp>
#include <muster/process/crew.hpp>
#include <muster/process/init.hpp>
#include <muster/serialize/exception_type.hpp>
#include <muster/serialize/shared_object.hpp>

namespace muster {

/// Worker processes that run functions of this program.
///
/// Workers are this program executed anew (muster::init), supervised, and replaced when they end. A task that kills its
/// worker fails alone. Arguments and results travel through shared memory that has no name and is freed however the
/// processes end; the workers die with the program, even if it is killed. A worker leads a process group: what tasks
/// start is killed when their worker ends, however it ends, unless it has left that group (setsid).
///
/// Workers have the environment of when the pool was made, those that are started later too.
///
/// Rights: a program that has more than who started it (set-user-ID and the like) makes no pool, errc::not_initialized.
/// One that gives up root does so before, and gives up all of it (setresgid, setresuid): given up in part, no worker
/// can be started any more, and the pool breaks with an error that says so. Given up later, workers stay root's, so
/// that the program may not kill them: tasks that are overdue end, or the pool does (errc::pool_broken); they still end
/// with it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
/// Process safety: belongs to the process that made it. In a forked child, also one that goes on in its place (daemon),
/// calls throw errc::forked, those of futures, streams and feeds too, and destructors do nothing: make pools after
/// fork(). The child has none of the shared memory (domain_options::inherited), so that it is freed although the child
/// lives on. For a child that a task forks see this_pool.hpp.
class pool : public submit_calls<pool> {
public:
  /// Starts the workers and waits until each has proved to be this very build; initializers run meanwhile.
  /// Throws muster::error: errc::not_initialized, errc::invalid_argument, errc::module_mismatch, errc::start_failed,
  /// errc::out_of_memory, EMFILE; each says what was given, what was expected and what to do.
  explicit pool(const pool_options& options = {});
  /// The same for a program with a loop of Boost.Asio, which then takes part: what tasks end with is noticed by a
  /// handler on that loop, and callbacks (then, on_complete, handlers without an executor of their own) run there,
  /// instead of on threads of the library. No thread stands between a worker and the coroutine that waits for it.
  ///
  /// While somebody is to be told of the end of a task, the handler looks for completions for as long as a waiter
  /// spins (nothing while the workers need all processors), in turns with the loop's other handlers; then the loop
  /// sleeps, and a worker wakes it by an eventfd. Handlers that become due so run inside of it, one after the other, on
  /// whichever thread runs the loop, several at once where several threads do and some take long; use a strand, as
  /// with any handlers, for those that must not. Meanwhile the loop has work: its run() returns when nobody is to be
  /// told of anything any more, and the program has nothing else for it.
  /// Nobody has to run the loop: get() and its like work in any thread, and the supervisor does what the loop does not
  /// do, at once as long as it has not been run since it became idle, else some 10 ms after a handler has begun to
  /// take long. But what is to run on the loop runs only there: do not wait, on the loop's only thread, for a future
  /// that then() made.
  /// When the pool ends, what waits on the loop completes with errc::cancelled, as soon as the loop is run.
  /// Lifetime: the loop must outlive the pool; afterwards, futures that are left do not touch it.
  explicit pool(boost::asio::io_context& loop, const pool_options& options = {});
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  /// As close, then terminate after pool_options::destructor_grace; bounded, never throws. Callbacks that were due have
  /// run when it returns, save in a callback of the pool: there they run afterwards.
  ~pool();

  /// The same calls with options: `pool.with({.retries = 2, .label = "resize"}).map(f, xs)`.
  [[nodiscard]] submitter with(const task_options& options) const { return {core_, options, route_}; }
  /// The same calls for one worker: `pool.on(2).apply(f, x)`. See basic_submitter::on.
  /// Throws errc::invalid_argument when there is no worker with that index.
  [[nodiscard]] submitter on(std::size_t worker) const { return {core_, {}, core_->route_to(worker)}; }
  /// The same calls, with maps that give a result for every element instead of throwing the first error.
  [[nodiscard]] collecting_submitter collect_errors() const { return {core_, {}, route_}; }

  /// A read-only copy of `value` in the pool's shared memory, which all workers read in place: as an argument, a bound
  /// value or an element. See shared_object.hpp.
  template <class T>
  [[nodiscard]] shared_object<T> share(const T& value) const {
    return muster::share(value, core()->shared());
  }

  /// Is ready once every worker has been accepted, as the constructor waits for, and fails with what that would throw;
  /// for pool_options::wait_for_start: `co_await pool.started()(boost::asio::use_awaitable)`. Any number of times.
  /// Cancelling it does nothing. When the pool ends first it fails with errc::cancelled.
  [[nodiscard]] future<void> started();

  /// From now on no task is accepted: calls throw errc::pool_closed. Those accepted finish; then the workers run their
  /// finalizers and leave. Returns at once.
  void close();

  /// As close, and waits until every accepted task has ended; false when the time passed first.
  /// Unblocked by: the end of the last task; terminate().
  template <class Rep, class Period>
  bool drain(std::chrono::duration<Rep, Period> time) {
    return drain_until(deadline::after(time));
  }
  void drain() { static_cast<void>(drain_until(deadline::never())); }
  /// As close; the future is ready once every accepted task has ended, also by terminate(). So draining is an
  /// asynchronous operation too: `co_await pool.drain_async()(boost::asio::use_awaitable)`. Cancelling it does nothing.
  [[nodiscard]] future<void> drain_async();

  /// Kills the workers, whatever they do, and fails everything pending with errc::cancelled, calls whose arguments have
  /// not come too. Bounded in time.
  void terminate();

  /// Waits until the workers have left. Throws errc::invalid_argument unless close() or terminate() was called.
  /// Unblocked by: the end of all accepted tasks; terminate().
  void join() { static_cast<void>(join_until(deadline::never())); }
  /// The same; false when the time passed first.
  template <class Rep, class Period>
  bool join_for(std::chrono::duration<Rep, Period> time) {
    return join_until(deadline::after(time));
  }

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
  [[nodiscard]] future<void> resize_async(std::size_t workers);

  /// How many workers it is to have: what it was made with, or resized to; those that are just being replaced count.
  [[nodiscard]] std::size_t size() const noexcept { return core_->workers(); }
  [[nodiscard]] std::vector<worker_info> workers() const;
  /// Cost: a pass over tasks in flight and workers, under the locks that they take; not for every task.
  [[nodiscard]] pool_statistics stats() const;

  /// From now on until end_trace(), or the pool's end, what tasks do is written into `file`, which is made anew: as an
  /// array of trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing open. The pool's program is a process
  /// there, with a row for itself and one for each worker, whoever its process is. Each run of a task, or of a chunk of
  /// a map, is an event in its worker's row, named by the task's label or the type of its callable, with the task's
  /// number, attempt, outcome, and elements; an arrow leads to it from where it was posted. The times of runs are those
  /// of the worker; where its process did not live to say them, or said something impossible, the event has
  /// `"times": "bounds"`. A task that ends without any worker having begun it is an instant in the parent's row. Times
  /// are microseconds of CLOCK_MONOTONIC. A trace that was begun before ends first.
  ///
  /// Calls that a task makes to its own pool and then runs itself before anybody has accepted them are no tasks of
  /// their own. If the program is killed, the file has everything up to about 50 ms before, and no closing bracket,
  /// which the format does not ask for.
  ///
  /// Throws muster::error when the file cannot be written, with its name and the cause, and EAGAIN when no thread can
  /// be had for that; there is no trace then. Thread safety: safe. Cost: as pool_options::timing, and what it takes to
  /// write some 500 bytes per run, on a thread of its own; a million events wait for that at most.
  void trace_to(const std::filesystem::path& file);
  /// Ends the trace: its file is complete when this returns. Nothing, if there is none.
  /// Throws muster::error when not everything could be written. (The destructor logs that instead.)
  void end_trace();

protected:
  /// For pools with other ways for their tasks, and with contexts, which every worker makes before its first task:
  /// none, one that all workers run, or one for each.
  pool(const pool_options& options, detail::lane_route route, std::span<const worker_task> contexts,
       boost::asio::io_context* loop = nullptr);

  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const {
    core_->require_here();
    return core_;
  }

private:
  friend class submit_calls<pool>;
  static constexpr bool map_fails_fast = true;
  template <class R>
  using map_ending = detail::all_or_error<R>;
  [[nodiscard]] const task_options& options() const noexcept { return default_options; }
  [[nodiscard]] detail::lane_route route() const noexcept { return route_; }

  bool drain_until(deadline until);
  bool join_until(deadline until);

  class impl;
  [[nodiscard]] impl& own() const;
  static constexpr task_options default_options{};
  std::unique_ptr<impl> impl_;
  std::shared_ptr<detail::pool_core> core_;
  const detail::lane_route route_;
};

}  // namespace muster
