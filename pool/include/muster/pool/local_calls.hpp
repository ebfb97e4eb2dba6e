// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/dependent_call.hpp>
#include <muster/pool/detail/generated_view.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/local_core.hpp>
#include <muster/pool/detail/local_map.hpp>
#include <muster/pool/detail/local_stream.hpp>
#include <muster/pool/detail/local_task.hpp>
#include <muster/pool/detail/make_as.hpp>
#include <muster/pool/detail/owned_value.hpp>
#include <muster/pool/detail/slow_stream.hpp>
#include <muster/pool/detail/stream_engine.hpp>
#include <muster/pool/detail/task_stream.hpp>
#include <muster/pool/feed.hpp>
#include <muster/pool/future.hpp>
#include <muster/pool/input.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/submit_calls.hpp>
#include <muster/pool/task_options.hpp>

namespace muster {

namespace detail {

/// Options that threads can honour, or throws errc::invalid_argument.
[[nodiscard]] task_options checked_for_threads(const task_options& options);

/// The elements of a map, which it owns.
template <class T, class Xs>
std::vector<T> elements_of(Xs&& xs) {
  if constexpr (std::is_same_v<Xs, std::vector<T>>) {
    return std::forward<Xs>(xs);
  } else {
    std::vector<T> elements;
    if constexpr (std::ranges::sized_range<Xs>) elements.reserve(std::ranges::size(xs));
    auto at = std::ranges::begin(xs);
    for (const auto end = std::ranges::end(xs); at != end; ++at) {
      auto&& element = element_at<Xs>(at);  // Xs is a reference where the range is lent
      require_text("element", elements.size(), element);
      elements.emplace_back(to_own<T>(std::forward<decltype(element)>(element)));
    }
    return elements;
  }
}

}  // namespace detail

/// The calls of submit_calls.hpp on threads of this process; `thread_pool`, `ctx_thread_pool` and `serial_pool` have
/// them, and so has what their `with` and `on` return.
///
/// Everything is as there, but for this. Callables, arguments, elements and results stay in this process: they are
/// copied or moved, need not be transportable, though no larger than max_value_bytes, and callables may capture.
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
/// needed: threads do not die. Timeouts and deadlines are refused: nobody can end a thread from outside; and so are
/// retries after exceptions, and priorities.
///
/// get() and wait() of a task of the same pool first look whether anybody has begun the call, and if not run it in
/// place; so a pool of one thread does not lock up. Tasks that were named a worker run on that one only.
///
/// Where tasks of a pool, each on its thread, wait for one another in a circle, none could go on. So a call or map that
/// nobody has begun and that closes such a circle is not run, and ends with errc::invalid_argument: a task that runs
/// while thread 0 waits for it, and that waits for what it has named thread 0; or one of two tasks that broadcast at
/// the same time. Where the circle has no such call, a map that is for one thread ends with that error though elements
/// of it have run. Not noticed, and waited for for ever, are circles that lead through another pool or a serial_pool,
/// a callback, a feed, an input that waits, a std::future, or a thread that is not the pool's; of tasks that all run
/// already, which have got the futures of one another; and those in which somebody waits by as_completed() or
/// when_any(), or again and again with a time limit.
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Derived, class Adapter = detail::as_given>
class local_calls {
public:
  template <class F, class... Args>
  auto apply(F f, Args&&... args) const {
    return apply_async(std::move(f), std::forward<Args>(args)...).get();
  }
  template <class F, class... Args>
  auto apply_async(F f, Args&&... args) const {
    Adapter::template check<F, sent_as<detail::awaited<Args>>...>();
    using adapted = decltype(Adapter::adapt(std::move(f)));
    detail::check_local_call<adapted, sent_as<detail::awaited<Args>>...>();
    if constexpr ((detail::is_future<Args> || ...)) {
      auto place = std::make_shared<detail::local_unit>(self().core());
      auto submit = [place = std::move(place), route = self().route(),
                     callable = Adapter::adapt(std::move(f))](auto&&... values) mutable {
        return place->submit(route, std::move(callable), std::forward<decltype(values)>(values)...);
      };
      return detail::submit_when_ready(self().core(), std::move(submit), std::forward<Args>(args)...);
    } else {
      return detail::submit_local(self().core(), self().route(), true, Adapter::adapt(std::move(f)),
                                  std::forward<Args>(args)...);
    }
  }

  template <class F, class... Args>
  auto broadcast(F f, Args&&... args) const {
    auto all = broadcast_async(std::move(f), std::forward<Args>(args)...).get();
    if constexpr (!std::is_same_v<decltype(all), std::vector<std::monostate>>) return all;
  }
  template <class F, class... Args>
  auto broadcast_async(F f, Args&&... args) const {
    Adapter::template check<F, sent_as<Args>...>();
    detail::check_local_call<decltype(Adapter::adapt(std::move(f))), sent_as<Args>...>();
    const auto callable = detail::to_repeat(Adapter::adapt(std::move(f)));
    const auto& core = self().core();
    std::vector<decltype(detail::submit_local(core, self().route(), true, callable, args...))> all;
    all.reserve(core->workers());
    for (std::size_t worker = 0; worker < core->workers(); ++worker) {
      all.push_back(detail::submit_local(core, core->route_to(worker), true, callable, args...));
    }
    return when_all(std::move(all));
  }

  template <class F, std::ranges::input_range Xs>
  auto map(F f, Xs&& xs) const {
    return run_map<false>(std::move(f), std::forward<Xs>(xs)).get();
  }
  template <class F, class T>
  auto map(F f, std::initializer_list<T> xs) const {
    return run_map<false>(std::move(f), xs).get();
  }
  template <class F, std::ranges::input_range Xs>
  auto map_async(F f, Xs&& xs) const {
    return run_map<false>(std::move(f), std::forward<Xs>(xs));
  }
  template <class F, std::ranges::input_range Xs>
  auto starmap(F f, Xs&& xs) const {
    return run_map<true>(std::move(f), std::forward<Xs>(xs)).get();
  }
  template <class F, std::ranges::input_range Xs>
  auto starmap_async(F f, Xs&& xs) const {
    return run_map<true>(std::move(f), std::forward<Xs>(xs));
  }

  template <class F, detail::stream_elements Xs>
  auto imap(F f, Xs&& xs) const {
    return run_stream<false, true>(std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }
  template <class F, detail::stream_elements Xs>
  auto imap_unordered(F f, Xs&& xs) const {
    return run_stream<false, false>(std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }
  template <class F, detail::stream_elements Xs>
  auto istarmap(F f, Xs&& xs) const {
    return run_stream<true, true>(std::move(f), detail::as_elements(std::forward<Xs>(xs)));
  }
  template <class T, class F>
  [[nodiscard]] auto feed(F f) const {
    check_elements<false, F, T>();
    using adapted = decltype(Adapter::adapt(std::move(f)));
    using R = typename detail::local_element<false, adapted, T>::result;
    return feed_stream<T, R>(
        [core = self().core(), route = self().route(), callable = detail::to_repeat(Adapter::adapt(std::move(f)))](
            T element) { return detail::submit_local(core, route, false, callable, std::move(element)); },
        window(), true);
  }

private:
  friend Derived;
  local_calls() = default;

  [[nodiscard]] const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }

  template <bool Unpack, class F, class T>
  static consteval void check_elements() {
    if constexpr (!Unpack) Adapter::template check<F, T>();
    detail::local_element<Unpack, decltype(Adapter::adapt(std::declval<F>())), T>::check();
  }

  template <bool Unpack, class F, class Xs>
  auto run_map(F f, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    check_elements<Unpack, F, T>();
    using adapted = decltype(Adapter::adapt(std::move(f)));
    using R = typename detail::local_element<Unpack, adapted, T>::result;
    using work = detail::local_map_work<Unpack, adapted, T, R>;
    using ending = typename Derived::template map_ending<R>;
    const auto& core = self().core();
    auto elements = detail::elements_of<T>(std::forward<Xs>(xs));
    const auto count = elements.size();
    auto made = std::make_shared<work>(*core, map_settings(count), Adapter::adapt(std::move(f)), std::move(elements));
    auto source =
        detail::make_as<detail::future_source<typename ending::type>, detail::local_map_source<work, adapted, ending>>(
            made);
    start_map<detail::local_map_helper<work, adapted>>(*core, made);
    return detail::future_access::of_source<typename ending::type>(core, std::move(source));
  }

  [[nodiscard]] detail::local_map_run::settings map_settings(std::size_t count) const {
    const auto& options = self().options();
    const auto workers = self().route().workers(self().core()->workers());
    return {.count = count,
            .fail_fast = Derived::map_fails_fast,
            .label = std::string(options.label.view()),
            .chunking = {.workers = workers, .given = options.chunk, .most = 0},
            .route = self().route()};
  }

  // Copies the callable, which may throw: so before anything of the map is accepted.
  template <class Helper, class Work>
  [[nodiscard]] auto make_helpers(const detail::local_core& core, const std::shared_ptr<Work>& work) const {
    std::vector<std::shared_ptr<detail::local_map_part>> all(
        std::min(work->count(), self().route().workers(core.workers())));
    for (auto& each : all) each = detail::make_as<detail::local_map_part, Helper>(work);
    return all;
  }

  template <class Helper, class Work>
  void start_map(detail::local_core& core, const std::shared_ptr<Work>& work) const {
    const auto helpers = make_helpers<Helper>(core, work);
    switch (core.begin_unit(true)) {
      case detail::local_core::admission::with_place: work->take_place(); break;
      case detail::local_core::admission::accepted: break;
      case detail::local_core::admission::overflow: {
        const auto why = detail::local_core::overflow_error();
        static_cast<void>(core.begin_unit(false));  // not limited: it is accepted, or throws
        work->give_up(why);
        return;
      }
    }
    work->end_if_empty();
    for (const auto& each : helpers) core.post(each, self().route());
  }

  template <bool Unpack, bool Ordered, class F, class Xs>
  auto run_stream(F f, Xs&& xs) const {
    using T = detail::element_of<Xs>;
    check_elements<Unpack, F, T>();
    using adapted = decltype(Adapter::adapt(std::move(f)));
    using R = typename detail::local_element<Unpack, adapted, T>::result;
    using input = detail::range_walk<std::views::all_t<Xs>>;
    const auto& core = self().core();
    auto submit = [core, route = self().route(),
                   callable = detail::to_repeat(Adapter::adapt(std::move(f)))](auto&& element) -> future<R> {
      const auto call = [&](auto&&... parts) {
        return detail::submit_local(core, route, false, callable, std::forward<decltype(parts)>(parts)...);
      };
      if constexpr (Unpack) {
        return std::apply(call, T(detail::to_own<T>(std::forward<decltype(element)>(element))));
      } else {
        return call(std::forward<decltype(element)>(element));
      }
    };
    input elements(std::views::all(std::forward<Xs>(xs)));
    auto inside = [core] { return core->inside() != nullptr; };
    if constexpr (input::speed == input_speed::slow) {
      if (!core->is_serial()) {
        return stream<R>(detail::make_as<detail::stream_source<R>, detail::slow_stream<R, input, decltype(submit)>>(
            core, std::move(elements), std::move(submit),
            typename detail::slow_stream<R, input, decltype(submit)>::settings{
                .ordered = Ordered, .window = window(), .waits = true, .inside = std::move(inside)}));
      }
    }
    if constexpr (Ordered) {
      return stream<R>(detail::make_as<detail::stream_source<R>, detail::task_stream<R, input, decltype(submit)>>(
          core, std::move(elements), std::move(submit), window(), true));
    } else {
      return stream<R>(
          detail::make_as<detail::stream_source<R>, detail::unordered_task_stream<R, input, decltype(submit)>>(
              core, std::move(elements), std::move(submit), window(), std::move(inside)));
    }
  }

  // Where tasks run as they are submitted, nothing is gained by being ahead.
  [[nodiscard]] std::size_t window() const {
    const auto& core = *self().core();
    if (self().options().window != 0) return self().options().window;
    return core.is_serial() ? 1 : detail::stream_engine::batches_per_worker * self().route().workers(core.workers());
  }
};

/// The calls of a pool of threads with options, whose maps give `std::vector<result<R>>`.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the pool.
template <class Adapter>
class collecting_local_submitter : public local_calls<collecting_local_submitter<Adapter>, Adapter> {
public:
  collecting_local_submitter(const std::shared_ptr<detail::local_core>& core, const task_options& options,
                             detail::lane_route route = {})
      : core_(core), options_(detail::checked_for_threads(options)), route_(route) {}

  [[nodiscard]] collecting_local_submitter on(std::size_t worker) const {
    return {core_, options_, core_->route_to(worker)};
  }

private:
  friend class local_calls<collecting_local_submitter, Adapter>;
  static constexpr bool map_fails_fast = false;
  template <class R>
  using map_ending = detail::local_each_result<R>;
  [[nodiscard]] const std::shared_ptr<detail::local_core>& core() const {
    core_->require_here();
    return core_;
  }
  [[nodiscard]] const task_options& options() const noexcept { return options_; }
  [[nodiscard]] detail::lane_route route() const noexcept { return route_; }

  const std::shared_ptr<detail::local_core>& core_;
  task_options options_;
  detail::lane_route route_;
};

/// The calls of a pool of threads with options: what its `with` and `on` return. Light; made for one call or kept.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the pool.
template <class Adapter>
class local_submitter : public local_calls<local_submitter<Adapter>, Adapter> {
public:
  /// Throws errc::invalid_argument when threads cannot honour the options.
  local_submitter(const std::shared_ptr<detail::local_core>& core, const task_options& options,
                  detail::lane_route route = {})
      : core_(core), options_(detail::checked_for_threads(options)), route_(route) {}

  /// The same calls with other options; likewise.
  [[nodiscard]] local_submitter with(const task_options& options) const { return {core_, options, route_}; }
  /// The same calls for one thread. Throws errc::invalid_argument when there is none with that index.
  [[nodiscard]] local_submitter on(std::size_t worker) const { return {core_, options_, core_->route_to(worker)}; }
  /// The same, with maps that collect errors instead of throwing the first.
  [[nodiscard]] collecting_local_submitter<Adapter> collect_errors() const { return {core_, options_, route_}; }

private:
  friend class local_calls<local_submitter, Adapter>;
  static constexpr bool map_fails_fast = true;
  template <class R>
  using map_ending = detail::local_all_or_error<R>;
  [[nodiscard]] const std::shared_ptr<detail::local_core>& core() const {
    core_->require_here();
    return core_;
  }
  [[nodiscard]] const task_options& options() const noexcept { return options_; }
  [[nodiscard]] detail::lane_route route() const noexcept { return route_; }

  const std::shared_ptr<detail::local_core>& core_;
  task_options options_;
  detail::lane_route route_;
};

}  // namespace muster
