// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <muster/async/detail/dependent_call.hpp>
#include <muster/async/future.hpp>
#include <muster/async/when_all.hpp>
#include <muster/base/detail/range_concepts.hpp>
#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/generated_view.hpp>
#include <muster/pool/feed.hpp>
#include <muster/pool/stream.hpp>

namespace muster {

/// The calls by which a program gives work to a pool. All pools have them, and so has what their `with`, `on` and
/// `collect_errors` return; so one pool takes another's place.
///
/// Every task ends in exactly one way: its value; its own exception; worker_died, if its worker was killed, crashed or
/// exited while it ran (other tasks do not notice); errc::cancelled; errc::not_serializable; errc::out_of_memory;
/// errc::corrupted; errc::pool_broken.
///
/// All calls throw what the pool was closed with (errc::pool_closed, errc::pool_broken); errc::overflow as
/// pool_options::overflow says; errc::invalid_argument for a null pointer where a function or a C string is to be.
///
/// **Pools of processes** send values. Callables: function pointers, captureless lambdas, empty functors, functors with
/// a cereal serialize(), and these with bound arguments (callable.hpp). Arguments, elements and results: whatever
/// cereal serialises, or is trivially copyable (transportable.hpp); they are copied, except what lies in shared memory
/// (task_options::transfer). What cannot be sent does not compile, and neither does a value of more than
/// max_value_bytes, 256 KiB: hold it in a std::unique_ptr, or its elements in a std::vector or a tensor. Their calls
/// also throw errc::out_of_memory with what was needed and what there was; errc::module_mismatch when the callable lies
/// in a library without build-id; and what serialize functions of arguments throw.
///
/// **Pools of threads** keep values in this process: they are copied or moved, need not be transportable, though no
/// larger than max_value_bytes, and callables may capture.
/// Callables get what they would get in a worker process: arguments and elements as rvalues, bound values as const
/// references, C strings as std::string. Threads of a map call a copy of its callable each, unless it cannot be copied.
/// What is given as an rvalue is moved; what is lent and cannot be copied is copied by its serialize function, as a
/// worker process would get it. A reference, pointer or view must be valid for as long as the task may run. Exceptions
/// arrive as they were thrown, of any type; from streams, and as data, as those of a worker process do, and they say
/// which element, not which worker. A task that crashes takes the program along.
///
/// A map that fails or is cancelled, and a stream or feed that is destroyed, ask elements that run to stop
/// (this_task::stop_requested()) and wait for them: they may refer to what belongs to the caller.
///
/// Each element of a stream is a task of its own, whatever task_options::chunk says. Retries are accepted and never
/// needed: threads do not die. Timeouts and deadlines are refused: a thread cannot be ended from outside; and so are
/// retries after exceptions, and priorities.
///
/// get() and wait() of a task of the same pool first look whether a thread has begun the call, and if not run it in
/// place; so a pool of one thread does not lock up. Tasks that were named a worker run on that one only.
///
/// Where tasks of a pool, each on its thread, wait for one another in a circle, none could go on. So a call or map that
/// no thread has begun and that closes such a circle is not run, and ends with errc::invalid_argument: a task that runs
/// while thread 0 waits for it, and that waits for what it has named thread 0; or one of two tasks that broadcast at
/// the same time. Where the circle has no such call, a map that is for one thread ends with that error though elements
/// of it have run. Not noticed, and waited for for ever, are circles that lead through another pool or a serial_pool,
/// a callback, a feed, an input that waits, a std::future, or a thread that is not the pool's; of tasks that all run
/// already, which have got the futures of one another; and those in which a task waits by as_completed() or
/// when_any(), or again and again with a time limit.
///
/// `Engine` carries the calls out (detail/process_engine.hpp, detail/thread_engine.hpp); `Adapter` gives callables the
/// worker's context, where there is one (detail/context.hpp).
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Derived, class Engine, class Adapter = detail::as_given>
class pool_calls {
public:
  /// Runs `f(args...)` in a worker and returns its value or throws its error.
  /// Unblocked by: the end of the task, in whatever way.
  template <class F, class... Args>
  auto apply(F f, Args&&... args) const {
    return apply_async(std::move(f), std::forward<Args>(args)...).get();
  }

  /// Has `f(args...)` run in a worker. Does not wait for workers; waits only as pool_options::overflow says.
  ///
  /// An argument may be a future, moved in: `f` gets its value. The call is submitted once all such values are there,
  /// and does not count against pool_options::max_pending; a failure of one of them is the call's. Cancelling it
  /// meanwhile cancels them. Throws EAGAIN when there is no thread for that and none can be had; the call is not
  /// pending then, and the futures are used up.
  template <class F, class... Args>
  auto apply_async(F f, Args&&... args) const {
    Adapter::template check<F, sent_as<detail::awaited<Args>>...>();
    Engine::template check_call<adapted<F>, sent_as<detail::awaited<Args>>...>();
    if constexpr ((detail::is_future<Args> || ...)) {
      return engine().submit_later(Adapter::adapt(std::move(f)), std::forward<Args>(args)...);
    } else {
      return engine().submit(Adapter::adapt(std::move(f)), std::forward<Args>(args)...);
    }
  }

  /// Runs `f(args...)` once in every worker and returns the values in their order (nothing, for void), or throws the
  /// error of the first that failed. Each call waits for its worker, also while that is being replaced. Each counts
  /// against pool_options::max_pending: where errc::overflow is thrown for one of them, those before it run all the
  /// same, and their values are lost. Beside a resize() they go to the workers that there were when it began.
  template <class F, class... Args>
  auto broadcast(F f, Args&&... args) const {
    auto all = broadcast_async(std::move(f), std::forward<Args>(args)...).get();
    if constexpr (!std::is_same_v<decltype(all), std::vector<std::monostate>>) return all;
  }
  /// The same without waiting; for void the values are std::monostate.
  template <class F, class... Args>
  auto broadcast_async(F f, Args&&... args) const {
    Adapter::template check<F, sent_as<Args>...>();
    Engine::template check_call<adapted<F>, sent_as<Args>...>();
    return when_all(engine().submit_to_all(Adapter::adapt(std::move(f)), args...));
  }

  /// Calls `f` with every element and returns the results in the order of the elements. The first failure ends it: that
  /// element's error is thrown, elements that are running are not waited for, the rest is not begun.
  /// See collect_errors() for going on.
  template <class F, std::ranges::input_range Xs>
  auto map(F f, Xs&& xs) const {
    return run_map<false>(std::move(f), std::forward<Xs>(xs)).get();
  }
  /// The same for elements in braces.
  template <class F, class T>
  auto map(F f, std::initializer_list<T> xs) const {
    return run_map<false>(std::move(f), xs).get();
  }

  /// The same without waiting: the elements are taken now, the results come with the future.
  template <class F, std::ranges::input_range Xs>
  auto map_async(F f, Xs&& xs) const {
    return run_map<false>(std::move(f), std::forward<Xs>(xs));
  }

  /// As map; the elements are tuples or pairs, and `f` takes their parts.
  template <class F, std::ranges::input_range Xs>
  auto starmap(F f, Xs&& xs) const {
    return run_map<true>(std::move(f), std::forward<Xs>(xs)).get();
  }
  /// Calls `f` with the parts of every element, without waiting: the elements are taken now, the results come with the
  /// future.
  template <class F, std::ranges::input_range Xs>
  auto starmap_async(F f, Xs&& xs) const {
    return run_map<true>(std::move(f), std::forward<Xs>(xs));
  }

  /// Calls `f` with every element and yields results, in the order of the elements, while later elements are still
  /// being taken and worked on. See stream, also for inputs that make wait: unless `xs` is a container, or marked as
  /// quick(), each element is a task and is sent before the next is asked for. `xs` may also be a generator: a callable
  /// that gives a std::optional<T> each time, and nothing at the end.
  template <class F, detail::stream_elements Xs>
  auto imap(F f, Xs&& xs) const {
    return run_stream<false, true>(std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }
  /// The same in the order in which results are ready.
  template <class F, detail::stream_elements Xs>
  auto imap_unordered(F f, Xs&& xs) const {
    return run_stream<false, false>(std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }
  /// As imap; the elements are tuples or pairs, and `f` takes their parts.
  template <class F, detail::stream_elements Xs>
  auto istarmap(F f, Xs&& xs) const {
    return run_stream<true, true>(std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }

  /// A stream of `f`'s results that elements of type T are pushed into, by any thread, while they come: see
  /// feed_stream. At most task_options::window of them ahead of the results that were taken.
  template <class T, class F>
  [[nodiscard]] auto feed(F f) const {
    check_elements<false, F, T>();
    using R = typename Engine::template element_result<false, adapted<F>, T>;
    const auto by = engine();
    // Several threads may push at once, and what is sent need not be copyable.
    auto made = by.template element_submitter<false, T>(Adapter::adapt(std::move(f)));
    const auto submit = std::make_shared<const decltype(made)>(std::move(made));
    return feed_stream<T, R>([submit](T element) { return (*submit)(std::move(element)); }, by.window(),
                             Engine::feed_waits);
  }

private:
  friend Derived;
  pool_calls() = default;

  template <class F>
  using adapted = decltype(Adapter::adapt(std::declval<F>()));

  [[nodiscard]] Engine engine() const { return static_cast<const Derived&>(*this).make_engine(); }

  template <bool Unpack, class F, class T>
  static consteval void check_elements() {
    if constexpr (!Unpack) Adapter::template check<F, T>();
    Engine::template check_elements<Unpack, adapted<F>, T>();
  }

  template <bool Unpack, class F, class Xs>
  auto run_map(F f, Xs&& xs) const {
    check_elements<Unpack, F, detail::element_of<Xs>>();
    return engine().template start_map<Unpack, Derived::map_fails_fast>(Adapter::adapt(std::move(f)),
                                                                        std::forward<Xs>(xs));
  }

  template <bool Unpack, bool Ordered, class F, class Xs>
  auto run_stream(F f, Xs&& xs) const {
    check_elements<Unpack, F, detail::element_of<Xs>>();
    return engine().template start_stream<Unpack, Ordered>(Adapter::adapt(std::move(f)), std::forward<Xs>(xs));
  }
};

}  // namespace muster
