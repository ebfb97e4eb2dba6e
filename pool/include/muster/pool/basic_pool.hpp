// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/pool_calls.hpp>
#include <muster/pool/pool_submitter.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/process/worker_info.hpp>
#include <muster/serialize/shared_object.hpp>

namespace muster {

/// What all pools have, whatever runs their tasks: calls, options for them, and how a pool ends. Not made itself; see
/// pool, p2p_pool, ctx_pool, thread_pool, ctx_thread_pool and serial_pool.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
/// Process safety: belongs to the process that made it. In a forked child calls throw errc::forked, and the destructor
/// does nothing.
template <class Engine, class Adapter>
class basic_pool : public pool_calls<basic_pool<Engine, Adapter>, Engine, Adapter> {
  using host_type = typename Engine::host_type;

public:
  basic_pool(const basic_pool&) = delete;
  basic_pool& operator=(const basic_pool&) = delete;

  /// The same calls with options: `pool.with({.retries = 2, .label = "resize"}).map(f, xs)`.
  /// Throws errc::invalid_argument for what the pool's workers cannot honour, as threads a timeout.
  [[nodiscard]] pool_submitter<Engine, Adapter> with(const task_options& options) const {
    return {host_.core(), options, route_};
  }
  /// The same calls for one worker: `pool.on(2).apply(f, x)`. See pool_submitter::on.
  /// Throws errc::invalid_argument when there is no worker with that index.
  [[nodiscard]] pool_submitter<Engine, Adapter> on(std::size_t worker) const {
    return {host_.core(), {}, route_to(*host_.core(), worker)};
  }
  /// The same calls, with maps that give a result for every element instead of throwing the first error.
  [[nodiscard]] pool_submitter<Engine, Adapter, map_failures::collected> collect_errors() const {
    return {host_.core(), {}, route_};
  }

  /// A read-only copy of `value` in the pool's shared memory, which all workers read in place: as an argument, a bound
  /// value or an element. See shared_object.hpp. A pool of threads has the program's, which pools of processes read
  /// too.
  template <class T>
  [[nodiscard]] shared_object<T> share(const T& value) const {
    return host_.share(value);
  }

  /// Is ready once every worker has been accepted, as the constructor waits for, and fails with what that would throw;
  /// for pool_options::wait_for_start: `co_await pool.started()(boost::asio::use_awaitable)`. Any number of times.
  /// Cancelling it does nothing. When the pool ends first it fails with errc::cancelled. Of threads it is ready.
  [[nodiscard]] future<void> started() const { return host_.started(); }

  /// From now on no task is accepted, save, in a pool of threads, from its own tasks: calls throw errc::pool_closed.
  /// Those accepted finish; then the workers run their finalizers and leave. Returns at once.
  void close() { host_.close(); }

  /// As close, and waits until every accepted task has ended; false when the time passed first.
  /// Unblocked by: the end of the last task; terminate(). Do not call it, nor join(), in a task of a pool of threads:
  /// that waits for itself.
  ///@{
  template <class Rep, class Period>
  bool drain(std::chrono::duration<Rep, Period> time) {
    return host_.drain_until(deadline::after(time));
  }
  void drain() { static_cast<void>(host_.drain_until(deadline::never())); }
  ///@}
  /// As close; the future is ready once every accepted task has ended, also by terminate(). So draining is an
  /// asynchronous operation too: `co_await pool.drain_async()(boost::asio::use_awaitable)`. Cancelling it does nothing.
  [[nodiscard]] future<void> drain_async() { return host_.drain_async(); }

  /// Processes: kills the workers, whatever they do, and fails everything pending with errc::cancelled, also calls
  /// that wait for their arguments. Bounded in time.
  /// Threads: what has not begun fails with errc::cancelled, and so does a map after the elements that run; what runs
  /// is asked to stop (this_task::stop_requested()), and no task is accepted any more. Returns at once.
  void terminate() { host_.terminate(); }

  /// Waits until the workers have left. Throws errc::invalid_argument unless close() or terminate() was called.
  /// Unblocked by: the end of all accepted tasks, of threads of those that had begun; terminate().
  void join() { static_cast<void>(host_.join_until(deadline::never())); }
  /// The same; false when the time passed first.
  template <class Rep, class Period>
  bool join_for(std::chrono::duration<Rep, Period> time) {
    return host_.join_until(deadline::after(time));
  }

  /// How many workers it is to have: what it was made with, or resized to; those that are just being replaced count.
  /// 1 for a serial_pool, which has none.
  [[nodiscard]] std::size_t size() const noexcept { return host_.size(); }
  /// Each with its index. Threads are of this process, in their first incarnation: working, or absent once they have
  /// left.
  [[nodiscard]] std::vector<worker_info> workers() const { return host_.workers(); }
  /// Cost: a pass over tasks in flight and workers, under the locks that they take; not for every task.
  [[nodiscard]] typename host_type::statistics stats() const { return host_.stats(); }

protected:
  /// `route`: of its tasks; `given`: what its workers are made from.
  template <class... Given>
  explicit basic_pool(detail::lane_route route, Given&&... given)
      : host_(std::forward<Given>(given)...), route_(route) {}
  ~basic_pool() = default;

  /// For pools that are derived from this one.
  [[nodiscard]] host_type& host() noexcept { return host_; }

private:
  friend class pool_calls<basic_pool, Engine, Adapter>;
  static constexpr bool map_fails_fast = true;
  [[nodiscard]] Engine make_engine() const { return {host_.core(), default_options, route_}; }

  static constexpr task_options default_options{};
  host_type host_;
  const detail::lane_route route_;
};

}  // namespace muster
