// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/batch_run.hpp>
#include <muster/pool/detail/chunk_task.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/map_source.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/detail/stream_engine.hpp>
#include <muster/pool/detail/task_stream.hpp>
#include <muster/pool/future.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/serialize/callable.hpp>

namespace muster {

namespace detail {

/// What a map over a range sends: the values of its elements.
template <class Xs>
using element_of = sent_as<std::ranges::range_value_t<Xs>>;

template <bool Unpack, class F, class T>
consteval void check_map() {
  require_sendable<typename callable_parts<F>::innermost>();
  require_transportable<T>();
  if constexpr (!Unpack) require_invocable<F, T>();
  require_sendable_result<typename chunk_code_of<Unpack, F, T>::result>();
}

template <bool Unpack, class F, class T>
using map_result = typename chunk_code_of<Unpack, F, T>::result;

/// The callable of a map, encoded once for all chunks.
template <bool Unpack, class F, class T>
std::shared_ptr<map_job> make_job(pool_core& core, const F& callable, bool fail_fast) {
  using parts = callable_parts<F>;
  using code = chunk_code_of<Unpack, F, T>;
  const auto sent = callable_wire<typename parts::innermost>::send(parts::callable_of(callable), core.functions());
  return std::apply(
      [&](const auto&... state) {
        const auto bytes = code::state_frame::size(state...);
        auto job = std::make_shared<map_job>(core.memory(), bytes, core.functions().encode(&code::run), fail_fast);
        code::state_frame::encode(job->state().first(bytes), state...);
        return job;
      },
      std::tuple_cat(std::apply([](const auto&... each) { return std::tie(each...); }, sent),
                     std::apply([](const auto&... each) { return std::tie(each...); }, parts::bound_of(callable))));
}

/// One call as a task. `limited`: it counts against pool_options::max_pending.
template <class F, class... Args>
auto submit_call(const std::shared_ptr<pool_core>& core, const task_options& options, bool limited, const F& f,
                 const Args&... args) {
  using call = invocation_of<F, sent_as<Args>...>;
  using parts = callable_parts<F>;
  const auto sent = callable_wire<typename parts::innermost>::send(parts::callable_of(f), core->functions());
  auto frame = call::encode(core->memory(), sent, parts::bound_of(f), args...);
  auto& record = core->submit(core->functions().encode(&call::run), std::move(frame), options, limited);
  return future_access::of_task<typename call::result>(core, record);
}

template <class Sent>
inline constexpr bool is_short = false;
template <class... Sent>
inline constexpr bool is_short<std::tuple<Sent...>> =
    (std::is_trivially_copyable_v<Sent> && ...) && (sizeof(Sent) + ... + 0) <= 16;

/// Whether sending the callable with every element costs no more than a few bytes.
template <class F>
inline constexpr bool cheap_to_send = std::tuple_size_v<typename callable_parts<F>::bound> == 0 &&
                                      is_short<typename callable_wire<typename callable_parts<F>::innermost>::sent>;

/// The whole input of a map in one batch. Ranges that make their elements on the fly are gone over once.
template <class T, class R, class Xs>
block batch_of_range(arena& memory, Xs&& xs) {
  if constexpr (std::ranges::forward_range<Xs> && std::is_lvalue_reference_v<std::ranges::range_reference_t<Xs>>) {
    return make_batch<T, R>(memory, std::ranges::begin(xs), static_cast<std::size_t>(std::ranges::distance(xs)));
  } else {
    std::vector<T> elements;
    for (auto&& each : xs) elements.push_back(std::forward<decltype(each)>(each));
    return make_batch<T, R>(memory, elements.begin(), elements.size());
  }
}

}  // namespace detail

/// The calls by which a program gives work to a pool; `pool` has them, and so has what `pool::with` returns.
///
/// Callables: function pointers, captureless lambdas, empty functors, functors with a cereal serialize(), and these
/// with bound arguments (callable.hpp). Arguments, elements and results: whatever cereal serialises, or is trivially
/// copyable (transportable.hpp); they are copied. What cannot be sent does not compile.
///
/// Every task ends in exactly one way: its value; its own exception; worker_died, if its worker was killed, crashed or
/// exited while it ran (other tasks do not notice); errc::cancelled; errc::not_serializable; errc::out_of_memory;
/// errc::corrupted; errc::pool_broken.
///
/// All calls throw: what the pool was closed with (errc::pool_closed, errc::pool_broken); errc::out_of_memory with what
/// was needed and what there was; errc::module_mismatch when the callable lies in a library without build-id;
/// errc::overflow as pool_options::overflow says; and what serialize functions of arguments throw.
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Derived>
class submit_calls {
public:
  /// Runs `f(args...)` in a worker and returns its value or throws its error.
  /// Unblocked by: the end of the task, in whatever way.
  template <class F, class... Args>
  auto apply(F f, Args&&... args) const {
    return apply_async(std::move(f), std::forward<Args>(args)...).get();
  }

  /// Has `f(args...)` run in a worker. Does not wait for workers; waits only as pool_options::overflow says.
  template <class F, class... Args>
  auto apply_async(F f, Args&&... args) const {
    detail::check_call<F, sent_as<Args>...>();
    return detail::submit_call(self().core(), self().options(), true, f, args...);
  }

  /// Calls `f` with every element and returns the results in the order of the elements. The first failure ends it: that
  /// element's error is thrown, elements that are running are not waited for, the rest is not begun.
  /// See collect_errors() for going on.
  template <class F, std::ranges::input_range Xs>
  auto map(F f, Xs&& xs) const {
    return run_map<false>(std::move(f), std::forward<Xs>(xs)).get();
  }
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
  template <class F, std::ranges::input_range Xs>
  auto starmap_async(F f, Xs&& xs) const {
    return run_map<true>(std::move(f), std::forward<Xs>(xs));
  }

  /// Calls `f` with every element and yields results, in the order of the elements, while later elements are still
  /// being taken and worked on. See stream.
  template <class F, std::ranges::viewable_range Xs>
  auto imap(F f, Xs&& xs) const {
    return run_stream<false>(true, std::move(f), std::forward<Xs>(xs));
  }
  /// The same in the order in which results are ready.
  template <class F, std::ranges::viewable_range Xs>
  auto imap_unordered(F f, Xs&& xs) const {
    return run_stream<false>(false, std::move(f), std::forward<Xs>(xs));
  }
  /// As imap; the elements are tuples or pairs, and `f` takes their parts.
  template <class F, std::ranges::viewable_range Xs>
  auto istarmap(F f, Xs&& xs) const {
    return run_stream<true>(true, std::move(f), std::forward<Xs>(xs));
  }

private:
  friend Derived;
  submit_calls() = default;

  [[nodiscard]] const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }

  template <bool Unpack, class F, class Xs>
  auto run_map(F f, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    detail::check_map<Unpack, F, T>();
    using R = detail::map_result<Unpack, F, T>;
    using ending = typename Derived::template map_ending<R>;
    const auto& core = self().core();
    const auto& options = self().options();
    auto job = detail::make_job<Unpack, F, T>(*core, f, Derived::map_fails_fast);
    auto run = std::make_shared<detail::batch_run>(
        core, std::move(job), detail::batch_of_range<T, R>(core->memory(), std::forward<Xs>(xs)),
        detail::batch_run::settings{
            .retries = options.retries,
            .timeout = options.timeout,
            .label = std::string(options.label.view()),
            .first_element = 0,
            .chunking = {.workers = core->workers(), .given = options.chunk, .most = core->max_tasks_per_worker()}});
    auto source = std::make_shared<detail::map_source<ending>>(std::move(run));
    source->start();
    return detail::future_access::of_source<typename ending::type>(core, std::move(source));
  }

  template <bool Unpack, class F, class Xs>
  auto run_stream(bool ordered, F f, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    detail::check_map<Unpack, F, T>();
    using R = detail::map_result<Unpack, F, T>;
    using view = std::views::all_t<Xs>;
    const auto& core = self().core();
    const auto& options = self().options();
    if constexpr (detail::cheap_to_send<F>) {
      if (ordered && options.chunk == 1) return stream_tasks<Unpack, R>(std::move(f), std::forward<Xs>(xs));
    }
    auto engine = std::make_unique<detail::stream_engine>(
        core, detail::make_job<Unpack, F, T>(*core, f, false),
        std::make_unique<detail::range_input<T, R, view>>(core, std::views::all(std::forward<Xs>(xs))),
        detail::stream_engine::settings{.ordered = ordered,
                                        .retries = options.retries,
                                        .timeout = options.timeout,
                                        .label = std::string(options.label.view()),
                                        .chunk = options.chunk,
                                        .window = options.window});
    return stream<R>(std::make_unique<detail::batch_stream<R>>(std::move(engine)));
  }

  template <bool Unpack, class R, class F, class Xs>
  auto stream_tasks(F f, Xs&& xs) const {
    const auto& core = self().core();
    const auto options = self().options();
    auto submit = [core, options, f = std::move(f)](const auto& element) -> future<R> {
      const auto call = [&](const auto&... args) { return detail::submit_call(core, options, false, f, args...); };
      if constexpr (Unpack) {
        return std::apply(call, element);
      } else {
        return call(element);
      }
    };
    using view = std::views::all_t<Xs>;
    using input = detail::range_walk<view>;
    const auto window =
        options.window != 0 ? options.window : detail::stream_engine::batches_per_worker * core->workers();
    return stream<R>(std::make_unique<detail::task_stream<R, input, decltype(submit)>>(
        input(std::views::all(std::forward<Xs>(xs))), std::move(submit), window));
  }
};

}  // namespace muster
