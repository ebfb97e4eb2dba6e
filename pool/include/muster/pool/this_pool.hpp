// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calls that a running task makes to the pool that it runs in.
//
//     std::uint64_t fib(int n) {
//       if (n < 20) return fib_alone(n);
//       auto one = muster::this_pool::apply_async(fib, n - 1);
//       const auto other = muster::this_pool::apply(fib, n - 2);
//       return one.get() + other;
//     }

#include <memory>
#include <utility>

#include <muster/async/future.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/local_access.hpp>
#include <muster/pool/detail/local_task.hpp>
#include <muster/pool/detail/task_source.hpp>
#include <muster/serialize/callable.hpp>

/// Calls to the pool that the calling task runs in.
///
/// Callables, arguments and results as for the pool's own calls (pool_calls.hpp); of a library only once the program
/// itself has called one of its functions. A call ends as any task does, except that it is not retried: whoever wants
/// that gives retries to the task around it. Calls count as part of the work that the pool has accepted: they are let
/// through after close(), not after terminate().
///
/// get() and wait() first look whether anybody has begun the call, and if not run it in place; so a pool of one worker
/// does not lock up, and a call waits for tasks that run, never for a free worker. Then a death is that of the task
/// around it too. No call can be named a worker here, nor broadcast, so tasks never wait for one another in a circle
/// (in pools of threads, which have on() in tasks too, see pool_calls.hpp). wait_for() may take longer for that
/// reason; ready() only looks. With more than 32 futures under way in one worker apply_async() runs the call at once.
///
/// A future that is dropped lets its call run to its end. When the task around it dies, calls that nobody has begun are
/// withdrawn. Futures are used in the task's own thread. Callbacks (then, on_complete, when_all, when_any,
/// as_completed) run on that thread too, one after the other: while the task waits for what such callbacks make, and
/// when it has returned, before its end is known; so a task waits for the calls that have callbacks. What they throw is
/// logged. Nothing else notices those ends: std() and asynchronous operations of Boost.Asio throw
/// errc::invalid_argument.
///
/// In a task of a pool of threads they are calls to that pool, as pool_calls.hpp says, without the restrictions on
/// futures; callables and arguments must be such as can be sent all the same.
///
/// All functions throw errc::invalid_argument outside of a task, errc::overflow when more than 64 calls run inside of
/// one another in one worker, errc::forked in a child that a task has forked, as its futures do, and otherwise as those
/// of the pool. Such a child has nothing of the pool, no memory that it shares either: it executes a program, or ends
/// by itself (_exit). One that returns from the task ends there; that changes nothing for the task. Thread safety:
/// safe; only the thread that the task was called on is "in" it.
namespace muster::this_pool {

/// Has `f(args...)` run in a worker of this pool. Never waits.
template <class F, class... Args>
auto apply_async(F f, Args&&... args) {
  detail::check_call<F, sent_as<Args>...>();
  using call = detail::invocation<F, sent_as<Args>...>;
  using result = typename call::result;
  if (const auto core = detail::core_of_this_task()) {
    return detail::submit_local(core, {}, true, std::move(f), std::forward<Args>(args)...);
  }
  auto& here = detail::require_nested_end();
  detail::require_texts("argument", args...);
  auto frame = call::encode(detail::memory_of(here), detail::functions_of(here), transfer::reference, f, args...);
  return detail::future_access::of_handle<result>(
      {detail::submit_nested(here, detail::functions_of(here).encode(&call::run), std::move(frame)),
       detail::nested_source<result>});
}

/// Runs `f(args...)` in a worker of this pool, perhaps this one, and returns its value or throws its error.
/// Unblocked by: the end of the call, in whatever way.
template <class F, class... Args>
auto apply(F f, Args&&... args) {
  return apply_async(std::move(f), std::forward<Args>(args)...).get();
}

}  // namespace muster::this_pool
