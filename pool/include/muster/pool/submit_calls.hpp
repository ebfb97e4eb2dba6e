// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/batch_run.hpp>
#include <muster/pool/detail/chunk_task.hpp>
#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/dependent_call.hpp>
#include <muster/pool/detail/generated_view.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/detail/make_as.hpp>
#include <muster/pool/detail/map_source.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/detail/progress.hpp>
#include <muster/pool/detail/sent_map.hpp>
#include <muster/pool/detail/slow_stream.hpp>
#include <muster/pool/detail/stream_engine.hpp>
#include <muster/pool/detail/task_stream.hpp>
#include <muster/pool/feed.hpp>
#include <muster/pool/future.hpp>
#include <muster/pool/input.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/pool/when_all.hpp>
#include <muster/serialize/callable.hpp>

namespace muster {

namespace detail {

/// What a map over a range sends: the values of its elements.
template <class Xs>
using element_of = sent_as<std::ranges::range_value_t<Xs>>;

template <bool Unpack, class F, class T>
consteval void check_map() {
  require_sendable<typename callable_parts<F>::innermost>();
  require_transportable_call<F>();
  require_transportable<T>();
  if constexpr (!Unpack) require_invocable<F, T>();
  require_sendable_result<typename chunk_code_of<Unpack, F, T>::result>();
}

template <bool Unpack, class F, class T>
using map_result = typename chunk_code_of<Unpack, F, T>::result;

/// One call as a task. `terms`: of `options`.
template <class F, class... Args>
auto submit_call(const std::shared_ptr<pool_core>& core, const task_options& options, const task_terms& terms,
                 lane_route route, admission admitted, const F& f, const Args&... args) {
  using call = invocation_of<F, sent_as<Args>...>;
  using parts = callable_parts<F>;
  require_texts("argument", args...);
  const auto sent = callable_wire<typename parts::innermost>::send(parts::callable_of(f), core->functions());
  auto frame = call::encode_as(options.transfer, core->memory(), sent, parts::bound_of(f), args...);
  const auto token = core->functions().encode(&call::run);
  if (core->names_functions()) core->name_function(token, typeid(typename parts::innermost));
  auto& record = core->submit(token, std::move(frame), options, terms, route, admitted);
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

/// Under transfer::move: what was sent is the caller's no longer, if it was an rvalue.
template <class Sent>
void hand_over(transfer how, std::remove_reference_t<Sent>& sent) {
  if constexpr (!std::is_reference_v<Sent> && !std::is_const_v<Sent> && !std::ranges::view<Sent> &&
                !std::is_trivially_copyable_v<Sent> && std::default_initializable<Sent> &&
                std::is_move_assignable_v<Sent>) {
    if (how == transfer::move) sent = Sent();
  }
}

}  // namespace detail

/// The calls by which a program gives work to a pool of processes; `pool`, `p2p_pool` and `ctx_pool` have them, and so
/// has what their `with` and `on` return. Pools of threads have the same by local_calls.hpp.
///
/// Callables: function pointers, captureless lambdas, empty functors, functors with a cereal serialize(), and these
/// with bound arguments (callable.hpp). Arguments, elements and results: whatever cereal serialises, or is trivially
/// copyable (transportable.hpp); they are copied, except what lies in shared memory (task_options::transfer). What
/// cannot be sent does not compile, and neither does a value of more than max_value_bytes, 256 KiB: hold it in a
/// std::unique_ptr, or its elements in a std::vector or a tensor.
///
/// Every task ends in exactly one way: its value; its own exception; worker_died, if its worker was killed, crashed or
/// exited while it ran (other tasks do not notice); errc::cancelled; errc::not_serializable; errc::out_of_memory;
/// errc::corrupted; errc::pool_broken.
///
/// All calls throw: what the pool was closed with (errc::pool_closed, errc::pool_broken); errc::out_of_memory with what
/// was needed and what there was; errc::module_mismatch when the callable lies in a library without build-id;
/// errc::overflow as pool_options::overflow says; errc::invalid_argument for a null pointer where a function or a C
/// string is to be; and what serialize functions of arguments throw.
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Derived, class Adapter = detail::as_given>
class submit_calls {
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
    adapter::template check<F, sent_as<detail::awaited<Args>>...>();
    if constexpr ((detail::is_future<Args> || ...)) {
      return submit_later(adapter::adapt(std::move(f)), std::forward<Args>(args)...);
    } else {
      auto made = submit(adapter::adapt(std::move(f)), args...);
      (detail::hand_over<Args>(self().options().transfer, args), ...);
      return made;
    }
  }

  /// Runs `f(args...)` once in every worker and returns the values in their order (nothing, for void), or throws the
  /// error of the first that failed. Each call waits for its worker, also while that is being replaced. Each counts
  /// against pool_options::max_pending: where errc::overflow is thrown for one of them, those before it run all the
  /// same, and nobody gets their values. Beside a resize() they go to the workers that there were when it began.
  template <class F, class... Args>
  auto broadcast(F f, Args&&... args) const {
    auto all = broadcast_async(std::move(f), std::forward<Args>(args)...).get();
    if constexpr (!std::is_same_v<decltype(all), std::vector<std::monostate>>) return all;
  }
  /// The same without waiting; for void the values are std::monostate.
  template <class F, class... Args>
  auto broadcast_async(F f, Args&&... args) const {
    adapter::template check<F, sent_as<Args>...>();
    const auto callable = adapter::adapt(std::move(f));
    const auto& core = self().core();
    const auto& options = self().options();
    const auto terms = detail::terms_of(options);
    detail::check_call<std::remove_const_t<decltype(callable)>, sent_as<Args>...>();
    using made = decltype(submit(callable, args...));
    std::vector<made> all;
    const auto workers = core->workers();  // those of now: resize() may be under way
    all.reserve(workers);
    for (std::size_t worker = 0; worker < workers; ++worker) {
      all.push_back(detail::submit_call(core, options, terms, detail::lane_route::to(worker), admission::limited,
                                        callable, args...));
    }
    return when_all(std::move(all));
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
  /// being taken and worked on. See stream, also for inputs that make wait: unless `xs` is a container, or marked as
  /// quick(), each element is a task and is sent before the next is asked for. `xs` may also be a generator: a callable
  /// that gives a std::optional<T> each time, and nothing at the end.
  template <class F, detail::stream_elements Xs>
  auto imap(F f, Xs&& xs) const {
    return run_stream<false>(true, std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }
  /// The same in the order in which results are ready.
  template <class F, detail::stream_elements Xs>
  auto imap_unordered(F f, Xs&& xs) const {
    return run_stream<false>(false, std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }
  /// As imap; the elements are tuples or pairs, and `f` takes their parts.
  template <class F, detail::stream_elements Xs>
  auto istarmap(F f, Xs&& xs) const {
    return run_stream<true>(true, std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }

  /// A stream of `f`'s results that elements of type T are pushed into, by any thread, while they come: see
  /// feed_stream. At most task_options::window of them ahead of the results that were taken.
  template <class T, class F>
  [[nodiscard]] auto feed(F f) const {
    adapter::template check<F, T>();
    using adapted = decltype(adapter::adapt(std::move(f)));
    detail::check_map<false, adapted, T>();
    using R = detail::map_result<false, adapted, T>;
    const auto& core = self().core();
    const auto options = self().options();
    return feed_stream<T, R>(
        [core, options, terms = detail::terms_of(options), route = self().route(),
         callable = std::make_shared<const adapted>(adapter::adapt(std::move(f)))](const T& element) {
          return detail::submit_call(core, options, terms, route, admission::unlimited, *callable, element);
        },
        window_of(options));
  }

private:
  friend Derived;
  using adapter = Adapter;
  submit_calls() = default;

  [[nodiscard]] const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }

  [[nodiscard]] std::size_t window_of(const task_options& options) const {
    if (options.window != 0) return options.window;
    return detail::stream_engine::batches_per_worker * self().route().workers(self().core()->workers());
  }

  template <class F, class... Args>
  auto submit(const F& f, const Args&... args) const {
    detail::check_call<F, sent_as<Args>...>();
    const auto& options = self().options();
    return detail::submit_call(self().core(), options, detail::terms_of(options), self().route(), admission::limited, f,
                               args...);
  }

  template <class F, class... Args>
  auto submit_later(F f, Args&&... args) const {
    detail::check_call<F, sent_as<detail::awaited<Args>>...>();
    // Accepted now: until it is submitted the pool is not empty.
    struct acceptance {
      std::shared_ptr<detail::pool_core> core;
      dispatcher::reservation reserved;
    };
    const auto& core = self().core();
    const auto& options = self().options();
    auto accepted = std::make_shared<acceptance>(acceptance{.core = core, .reserved = core->tasks().reserve()});
    return detail::submit_when_ready(
        core,
        [accepted = std::move(accepted), options, terms = detail::terms_of(options), route = self().route(),
         f = std::move(f)](const auto&... values) {
          return detail::submit_call(accepted->core, options, terms, route, admission::reserved, f, values...);
        },
        std::forward<Args>(args)...);
  }

  template <bool Unpack, class F, class Xs>
  auto run_map(F given, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    if constexpr (!Unpack) adapter::template check<F, T>();
    return start_map<Unpack>(adapter::adapt(std::move(given)), std::forward<Xs>(xs));
  }

  template <bool Unpack, class F, class Xs>
  auto start_map(const F& f, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    detail::check_map<Unpack, F, T>();
    using R = detail::map_result<Unpack, F, T>;
    using ending = typename Derived::template map_ending<R>;
    const auto& core = self().core();
    const auto& options = self().options();
    const auto terms = detail::terms_of(options);
    auto job = detail::make_job<Unpack, F, T>(*core, f, Derived::map_fails_fast, options);
    auto made =
        start_job<ending>(std::move(job), terms, detail::batch_of_range<T, R>(core->memory(), options.transfer, xs),
                          options.progress ? detail::meter_of(xs, options) : nullptr);
    detail::hand_over<Xs>(options.transfer, xs);
    return made;
  }

  template <class Ending>
  auto start_job(std::shared_ptr<detail::map_job> job, const task_terms& terms, detail::packed_batch batch,
                 const std::shared_ptr<detail::progress_meter>& progress) const {
    const auto& core = self().core();
    const auto& options = self().options();
    auto run = std::make_shared<detail::batch_run>(
        core, std::move(job), std::move(batch),
        detail::batch_run::settings{.retries = options.retries,
                                    .terms = terms,
                                    .urgency = options.priority,
                                    .label = std::string(options.label.view()),
                                    .first_element = 0,
                                    .chunking = {.workers = self().route().workers(core->workers()),
                                                 .given = options.chunk,
                                                 .most = core->max_tasks_per_worker()},
                                    .route = self().route(),
                                    .needs_place = true,
                                    .progress = progress});
    auto source = std::make_shared<detail::map_source<Ending>>(std::move(run));
    source->start();
    return detail::future_access::of_source<typename Ending::type>(core, std::move(source));
  }

  template <bool Unpack, class F, class Xs>
  auto run_stream(bool ordered, F given, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    if constexpr (!Unpack) adapter::template check<F, T>();
    return start_stream<Unpack>(ordered, adapter::adapt(std::move(given)), std::forward<Xs>(xs));
  }

  template <bool Unpack, class F, class Xs>
  auto start_stream(bool ordered, F f, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    detail::check_map<Unpack, F, T>();
    using R = detail::map_result<Unpack, F, T>;
    using view = std::views::all_t<Xs>;
    const auto& core = self().core();
    const auto& options = self().options();
    constexpr auto speed = detail::range_walk<view>::speed;
    if constexpr (speed == input_speed::slow) {
      return stream_as_they_come<Unpack, R>(ordered, std::move(f), std::forward<Xs>(xs));
    } else if constexpr (detail::cheap_to_send<F>) {
      const bool one_by_one = options.chunk == 1 || speed != input_speed::quick;
      if (ordered && one_by_one && !options.progress)
        return stream_tasks<Unpack, R>(std::move(f), std::forward<Xs>(xs));
    }
    auto progress = options.progress ? detail::meter_of(xs, options) : nullptr;
    auto engine = std::make_unique<detail::stream_engine>(
        core, detail::make_job<Unpack, F, T>(*core, f, false, options),
        detail::make_as<detail::stream_input, detail::range_input<T, R, view>>(core, options.transfer,
                                                                               std::views::all(std::forward<Xs>(xs))),
        detail::stream_engine::settings{.ordered = ordered,
                                        .retries = options.retries,
                                        .terms = detail::terms_of(options),
                                        .urgency = options.priority,
                                        .label = std::string(options.label.view()),
                                        .chunk = options.chunk,
                                        .window = options.window,
                                        .route = self().route(),
                                        .progress = std::move(progress)});
    return stream<R>(detail::make_as<detail::stream_source<R>, detail::batch_stream<R>>(core, std::move(engine)));
  }

  template <bool Unpack, class R, class F, class Xs>
  auto stream_tasks(F f, Xs&& xs) const {
    using input = detail::range_walk<std::views::all_t<Xs>>;
    auto submit = element_submitter<Unpack, R>(std::move(f));
    return stream<R>(detail::make_as<detail::stream_source<R>, detail::task_stream<R, input, decltype(submit)>>(
        self().core(), input(std::views::all(std::forward<Xs>(xs))), std::move(submit), window_of(self().options())));
  }

  template <bool Unpack, class R, class F, class Xs>
  auto stream_as_they_come(bool ordered, F f, Xs&& xs) const {
    using input = detail::range_walk<std::views::all_t<Xs>>;
    auto submit = element_submitter<Unpack, R>(std::move(f));
    using source = detail::slow_stream<R, input, decltype(submit)>;
    return stream<R>(detail::make_as<detail::stream_source<R>, source>(
        self().core(), input(std::views::all(std::forward<Xs>(xs))), std::move(submit),
        typename source::settings{.ordered = ordered, .window = window_of(self().options())}));
  }

  // What makes a task of an element.
  template <bool Unpack, class R, class F>
  auto element_submitter(F f) const {
    return [core = self().core(), options = self().options(), terms = detail::terms_of(self().options()),
            route = self().route(), f = std::move(f)](const auto& element) -> future<R> {
      const auto call = [&](const auto&... args) {
        return detail::submit_call(core, options, terms, route, admission::unlimited, f, args...);
      };
      if constexpr (Unpack) {
        return std::apply(call, element);
      } else {
        return call(element);
      }
    };
  }
};

}  // namespace muster
