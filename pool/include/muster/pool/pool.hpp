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
#include <memory>
#include <vector>

#include <muster/pool/as_completed.hpp>
#include <muster/pool/future.hpp>
#include <muster/pool/pool_options.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/submit_calls.hpp>
#include <muster/pool/submitter.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/pool/this_pool.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/pool/when_all.hpp>
#include <muster/process/crew.hpp>
#include <muster/process/init.hpp>
#include <muster/serialize/exception_type.hpp>

namespace muster {

/// What a pool has done so far.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct pool_statistics {
  dispatcher::statistics tasks;  ///< a chunk of a map counts as one; of those retried and lost, each element
  crew_statistics workers;
  arena::statistics memory;  ///< of the domain, which pools share
  std::size_t pending = 0;   ///< accepted and not ended
};

/// Worker processes that run functions of this program.
///
/// Workers are this program executed anew (muster::init), supervised, and replaced when they end. A task that kills its
/// worker fails alone. Arguments and results travel through shared memory that has no name and is freed however the
/// processes end; the workers die with the program, even if it is killed.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
/// Process safety: belongs to the process that made it. A forked child must not use it; its destructor does nothing
/// there.
class pool : public submit_calls<pool> {
public:
  /// Starts the workers and waits until each has proved to be this very build; initializers run meanwhile.
  /// Throws muster::error: errc::not_initialized, errc::invalid_argument, errc::module_mismatch, errc::start_failed,
  /// errc::out_of_memory, EMFILE; each says what was given, what was expected and what to do.
  explicit pool(const pool_options& options = {});
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  /// As close, then terminate after pool_options::destructor_grace; bounded, never throws. Callbacks that were due have
  /// run when it returns.
  ~pool();

  /// The same calls with options: `pool.with({.retries = 2, .label = "resize"}).map(f, xs)`.
  [[nodiscard]] submitter with(const task_options& options) const { return {core_, options}; }
  /// The same calls, with maps that give a result for every element instead of throwing the first error.
  [[nodiscard]] collecting_submitter collect_errors() const { return {core_, {}}; }

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

  /// Kills the workers, whatever they do, and fails everything pending with errc::cancelled. Bounded in time.
  void terminate();

  /// Waits until the workers have left. Throws errc::invalid_argument unless close() or terminate() was called.
  /// Unblocked by: the end of all accepted tasks; terminate().
  void join() { static_cast<void>(join_until(deadline::never())); }
  /// The same; false when the time passed first.
  template <class Rep, class Period>
  bool join_for(std::chrono::duration<Rep, Period> time) {
    return join_until(deadline::after(time));
  }

  /// How many workers it has; those that are just being replaced count.
  [[nodiscard]] std::size_t size() const noexcept { return core_->workers(); }
  [[nodiscard]] std::vector<worker_info> workers() const;
  [[nodiscard]] pool_statistics stats() const;

private:
  friend class submit_calls<pool>;
  static constexpr bool map_fails_fast = true;
  template <class R>
  using map_ending = detail::all_or_error<R>;
  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const noexcept { return core_; }
  [[nodiscard]] const task_options& options() const noexcept { return default_options; }

  bool drain_until(deadline until);
  bool join_until(deadline until);

  class impl;
  static constexpr task_options default_options{};
  std::unique_ptr<impl> impl_;
  std::shared_ptr<detail::pool_core> core_;
};

}  // namespace muster
