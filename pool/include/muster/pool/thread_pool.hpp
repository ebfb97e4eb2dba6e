// SPDX-License-Identifier: BSL-1.0
#pragma once

// Pools of threads of this process, with the calls of a pool of worker processes.
//
//     muster::thread_pool pool({.workers = 4});
//     auto size = pool.apply_async([&cache](const std::string& name) { return cache.find(name).size(); }, "a");

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/pool/as_completed.hpp>
#include <muster/pool/detail/local_state.hpp>
#include <muster/pool/future.hpp>
#include <muster/pool/local_calls.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/pool/thread_pool_options.hpp>
#include <muster/pool/when_all.hpp>
#include <muster/pool/when_any.hpp>
#include <muster/process/crew.hpp>
#include <muster/serialize/shared_object.hpp>

namespace muster {

namespace detail {

/// How many threads the options ask for; and where that many contexts were given, which is checked.
[[nodiscard]] std::size_t thread_count(const thread_pool_options& options);
[[nodiscard]] std::size_t thread_count(const thread_pool_options& options, std::size_t contexts);
/// Throws errc::invalid_argument unless it is closed.
void require_closed(const local_core& core);
[[nodiscard]] pid_t this_process() noexcept;
[[nodiscard]] std::vector<worker_info> threads_of(const local_core& core);
/// What the destructor of a pool of threads does.
void end_threads(std::shared_ptr<local_core>& core, pid_t owner, std::chrono::nanoseconds grace) noexcept;

}  // namespace detail

/// What all pools of threads have: the calls of a pool of worker processes, and how they end. Not made itself; see
/// thread_pool, ctx_thread_pool and serial_pool. What they do not have of `pool`, and why: docs/architecture.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
/// Process safety: belongs to the process that made it. In a forked child calls throw errc::forked, and the destructor
/// does nothing.
template <class Adapter>
class basic_thread_pool : public local_calls<basic_thread_pool<Adapter>, Adapter> {
public:
  basic_thread_pool(const basic_thread_pool&) = delete;
  basic_thread_pool& operator=(const basic_thread_pool&) = delete;

  /// The same calls with options. Throws errc::invalid_argument for a timeout, which threads cannot honour.
  [[nodiscard]] local_submitter<Adapter> with(const task_options& options) const { return {core_, options}; }
  /// The same calls for one thread: tasks, maps and streams are run by that one and nobody else, before what anybody
  /// may run. Throws errc::invalid_argument when there is no thread with that index.
  [[nodiscard]] local_submitter<Adapter> on(std::size_t worker) const { return {core_, {}, core_->route_to(worker)}; }
  /// The same calls, with maps that give a result for every element instead of throwing the first error.
  [[nodiscard]] collecting_local_submitter<Adapter> collect_errors() const { return {core_, {}}; }

  /// A read-only copy of `value` in the shared memory of the program, as pool::share; its pools of processes read it
  /// too.
  template <class T>
  [[nodiscard]] shared_object<T> share(const T& value) const {
    core_->require_here();
    return muster::share(value);
  }

  /// Is ready: the constructor waits for the threads. For programs that take any pool.
  [[nodiscard]] future<void> started() const;

  /// From now on no task is accepted, save from tasks of this pool: calls throw errc::pool_closed. Those accepted
  /// finish; then the threads run the finalizer and end. Returns at once.
  void close() { core()->close(); }

  /// As close, and waits until every accepted task has ended; false when the time passed first.
  /// Unblocked by: the end of the last task. Do not call it, nor join(), in a task of the pool: that waits for itself.
  template <class Rep, class Period>
  bool drain(std::chrono::duration<Rep, Period> time) {
    return drain_until(deadline::after(time));
  }
  void drain() { static_cast<void>(drain_until(deadline::never())); }
  /// As close; the future is ready once every accepted task has ended, also by terminate(). Cancelling it does nothing.
  [[nodiscard]] future<void> drain_async();

  /// What has not begun fails with errc::cancelled, and so does a map after the elements that run; what runs is asked
  /// to stop (this_task::stop_requested()), and no task is accepted any more. Returns at once.
  void terminate() { core()->terminate(); }

  /// Waits until the threads have ended. Throws errc::invalid_argument unless close() or terminate() was called.
  /// Unblocked by: the end of all tasks that had begun.
  void join() { static_cast<void>(join_until(deadline::never())); }
  /// The same; false when the time passed first.
  template <class Rep, class Period>
  bool join_for(std::chrono::duration<Rep, Period> time) {
    return join_until(deadline::after(time));
  }

  /// How many threads it has; 1 for a serial_pool, which has none.
  [[nodiscard]] std::size_t size() const noexcept { return core_->workers(); }
  /// Each with its index, of this process, in its first incarnation: working, or absent once it has left.
  [[nodiscard]] std::vector<worker_info> workers() const { return detail::threads_of(*core()); }
  [[nodiscard]] thread_pool_statistics stats() const { return core_->read_statistics(); }

protected:
  basic_thread_pool(const thread_pool_options& options, std::size_t threads,
                    const detail::local_core::context_maker& make_context);
  /// As close, then terminate after thread_pool_options::destructor_grace; then waits for tasks that run, because a
  /// thread cannot be ended from outside: a task that never ends and never looks at this_task::stop_requested() holds
  /// it up for ever. Never throws. Callbacks that were due have run when it returns. In a task of the pool, or in what
  /// a task has captured, it returns at once, and all this happens on another thread.
  ~basic_thread_pool();

private:
  friend class local_calls<basic_thread_pool, Adapter>;
  static constexpr bool map_fails_fast = true;
  template <class R>
  using map_ending = detail::local_all_or_error<R>;
  [[nodiscard]] const std::shared_ptr<detail::local_core>& core() const {
    core_->require_here();
    return core_;
  }
  [[nodiscard]] const task_options& options() const noexcept { return default_options; }
  [[nodiscard]] detail::lane_route route() const noexcept { return {}; }

  bool drain_until(deadline until) {
    close();
    const auto what_it_waits_for_may_be_behind_us = detail::callback_pause::until(until);
    return core_->wait_until_empty(until);
  }
  bool join_until(deadline until) {
    detail::require_closed(*core_);
    const auto what_it_waits_for_may_be_behind_us = detail::callback_pause::until(until);
    return core()->wait_until_left(until);
  }

  static constexpr task_options default_options{};
  const pid_t owner_;
  const std::chrono::nanoseconds grace_;
  std::shared_ptr<detail::local_core> core_;
};

template <class Adapter>
basic_thread_pool<Adapter>::basic_thread_pool(const thread_pool_options& options, std::size_t threads,
                                              const detail::local_core::context_maker& make_context)
    : owner_(detail::this_process()),
      grace_(options.destructor_grace),
      core_(std::make_shared<detail::local_core>(options, threads, make_context)) {}

template <class Adapter>
future<void> basic_thread_pool<Adapter>::started() const {
  auto is_ready = std::make_shared<detail::local_state<void>>();
  is_ready->complete(detail::outcome<void>::of_value());
  return detail::future_access::of_source<void>(core(), std::move(is_ready));
}

template <class Adapter>
future<void> basic_thread_pool<Adapter>::drain_async() {
  close();
  auto drained = std::make_shared<detail::local_state<void>>();
  core_->when_empty([drained] { drained->complete(detail::outcome<void>::of_value()); });
  return detail::future_access::of_source<void>(core_, std::move(drained));
}

template <class Adapter>
basic_thread_pool<Adapter>::~basic_thread_pool() {
  detail::end_threads(core_, owner_, grace_);
}

/// Threads of this process that run functions. For work that shares memory and does not crash; a `pool` is for work
/// that may. The calls are the same, so one can take the other's place.
///
/// Thread safety and process safety: as basic_thread_pool.
class thread_pool : public basic_thread_pool<detail::as_given> {
public:
  /// Starts the threads and waits until their initializers have run. Throws errc::invalid_argument; errc::start_failed
  /// with what an initializer threw; what std::thread throws.
  explicit thread_pool(const thread_pool_options& options = {})
      : basic_thread_pool(options, detail::thread_count(options), {}) {}
};

}  // namespace muster
