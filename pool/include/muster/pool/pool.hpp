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

#include <muster/async/as_completed.hpp>
#include <muster/async/future.hpp>
#include <muster/async/when_all.hpp>
#include <muster/async/when_any.hpp>
#include <muster/pool/basic_process_pool.hpp>
#include <muster/pool/pool_options.hpp>
#include <muster/pool/pool_statistics.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/submitter.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/pool/this_pool.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/process/init.hpp>
#include <muster/serialize/exceptions.hpp>
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
class pool : public basic_process_pool<detail::as_given> {
public:
  /// Starts the workers and waits until each has proved to be this very build; initializers run meanwhile.
  /// Throws muster::error: errc::not_initialized, errc::invalid_argument, errc::module_mismatch, errc::start_failed,
  /// errc::out_of_memory, EMFILE; each says what was given, what was expected and what to do.
  explicit pool(const pool_options& options = {}) : pool(detail::lane_route(), options) {}
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
  explicit pool(boost::asio::io_context& loop, const pool_options& options = {})
      : pool(detail::lane_route(), options, &loop) {}
  /// As close, then terminate after pool_options::destructor_grace; bounded, never throws. Callbacks that were due have
  /// run when it returns, save in a callback of the pool: there they run afterwards.
  ~pool() = default;

protected:
  /// For pools with other ways for their tasks.
  explicit pool(detail::lane_route route, const pool_options& options, boost::asio::io_context* loop = nullptr)
      : basic_process_pool(route, options, loop) {}
};

}  // namespace muster
