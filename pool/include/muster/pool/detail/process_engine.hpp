// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <muster/async/detail/dependent_call.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/range_concepts.hpp>
#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/chunk_task.hpp>
#include <muster/pool/detail/core_access.hpp>
#include <muster/pool/detail/engine_base.hpp>
#include <muster/pool/detail/generated_view.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/detail/make_as.hpp>
#include <muster/pool/detail/map_ending.hpp>
#include <muster/pool/detail/process_host.hpp>
#include <muster/pool/detail/sent_map.hpp>
#include <muster/pool/detail/slow_stream.hpp>
#include <muster/pool/detail/task_source.hpp>
#include <muster/pool/detail/task_stream.hpp>
#include <muster/pool/input.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/serialize/callable.hpp>

namespace muster::detail {

template <bool Unpack, class F, class T>
using map_result = typename element_call<Unpack, F, T>::result;

template <bool Unpack, class F, class T>
consteval void check_map() {
  require_sendable<typename callable_parts<F>::innermost>();
  require_transportable_call<F>();
  require_transportable<T>();
  if constexpr (!Unpack) require_invocable<F, T>();
  require_sendable_result<map_result<Unpack, F, T>>();
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

/// All that one task has besides its call, as it travels from the call to the pool's core.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct submission {
  std::shared_ptr<pool_core> core;
  task_options options;
  task_terms terms;  ///< of the options, as they were when the call began
  lane_route route;
};

/// How pools of processes do what pool_calls asks for: values are encoded and sent, and tasks are the workers'.
///
/// Thread safety and lifetime: as engine_base.
class process_engine : public engine_base<process_host> {
public:
  using engine_base::engine_base;

  /// Throws errc::invalid_argument for options that nothing can honour.
  [[nodiscard]] static task_options checked(const task_options& options) {
    require_valid(options);
    return options;
  }

  template <class F, class... Args>
  static consteval void check_call() {
    detail::check_call<F, Args...>();
  }
  template <bool Unpack, class F, class T>
  static consteval void check_elements() {
    check_map<Unpack, F, T>();
  }
  template <bool Unpack, class F, class T>
  using element_result = map_result<Unpack, F, T>;

  /// One task.
  template <class F, class... Args>
  auto submit(const F& f, Args&&... args) const {
    auto made = send(core_, options_, terms_of(options_), route_, admission::limited, f, args...);
    (hand_over<Args>(options_.transfer, args), ...);
    return made;
  }

  /// One task, once the futures among the arguments have their values.
  template <class F, class... Args>
  auto submit_later(F f, Args&&... args) const {
    // Accepted now: until it is submitted the pool is not empty.
    return submit_when_ready(
        home_of(core_),
        [what = for_later(), reserved = reserve_task(core_), f = std::move(f)](const auto&... values) {
          return send(what, admission::reserved, f, values...);
        },
        std::forward<Args>(args)...);
  }

  /// One task for each worker.
  template <class F, class... Args>
  auto submit_to_all(const F& f, const Args&... args) const {
    const auto terms = terms_of(options_);
    const auto count = workers();  // those of now: resize() may be under way
    std::vector<decltype(submit(f, args...))> all;
    all.reserve(count);
    for (std::size_t worker = 0; worker < count; ++worker) {
      all.push_back(send(core_, options_, terms, lane_route::to(worker), admission::limited, f, args...));
    }
    return all;
  }

  template <bool Unpack, bool FailsFast, class F, class Xs>
  auto start_map(const F& f, Xs&& xs) const {
    using T = element_of<Xs>;
    using R = map_result<Unpack, F, T>;
    using ending = std::conditional_t<FailsFast, all_or_error<R>, each_result<R>>;
    const auto terms = terms_of(options_);
    auto job = make_job<Unpack, F, T>(*core_, f, FailsFast, options_);
    auto made = start_job<ending>(std::move(job), terms, batch_of_range<T, R>(memory_of(*core_), options_.transfer, xs),
                                  options_.progress ? meter_of(xs, options_) : nullptr);
    hand_over<Xs>(options_.transfer, xs);
    return made;
  }

  template <bool Unpack, bool Ordered, class F, class Xs>
  auto start_stream(F f, Xs&& xs) const {
    using T = element_of<Xs>;
    using R = map_result<Unpack, F, T>;
    using view = view_of<Xs>;
    constexpr auto speed = range_walk<view>::speed;
    if constexpr (speed == input_speed::slow) {
      return stream_as_they_come<Unpack, Ordered, R>(std::move(f), std::forward<Xs>(xs));
    } else if constexpr (Ordered && cheap_to_send<F>) {
      const bool one_by_one = options_.chunk == 1 || speed != input_speed::quick;
      if (one_by_one && !options_.progress) return stream_tasks<Unpack, R>(std::move(f), std::forward<Xs>(xs));
    }
    auto progress = options_.progress ? meter_of(xs, options_) : nullptr;
    auto engine = make_stream_engine(
        core_, make_job<Unpack, F, T>(*core_, f, false, options_),
        make_as<stream_input, range_input<T, R, view>>(core_, options_.transfer, view_over(std::forward<Xs>(xs))),
        Ordered, options_, terms_of(options_), route_, std::move(progress));
    return stream<R>(make_as<stream_source<R>, batch_stream<R>>(home_of(core_), std::move(engine)));
  }

  /// What makes a task of an element of type T; it may outlive this engine.
  template <bool Unpack, class T, class F>
  [[nodiscard]] auto element_submitter(F f) const {
    return [how = for_later(), f = std::move(f)](const auto& element) -> future<map_result<Unpack, F, T>> {
      const auto call = [&](const auto&... args) { return send(how, admission::unlimited, f, args...); };
      if constexpr (Unpack) {
        return std::apply(call, element);
      } else {
        return call(element);
      }
    };
  }
  /// How many elements of a stream are ahead of the results.
  [[nodiscard]] std::size_t window() const {
    return options_.window != 0 ? options_.window : batches_per_worker * route_.workers(workers());
  }
  /// Whether a feed that is destroyed waits for what runs.
  static constexpr bool feed_waits = false;

private:
  template <class F, class... Args>
  static auto send(const std::shared_ptr<pool_core>& core, const task_options& options, const task_terms& terms,
                   lane_route route, admission admitted, const F& f, const Args&... args) {
    using call = invocation<F, sent_as<Args>...>;
    require_texts("argument", args...);
    auto frame = call::encode(memory_of(*core), functions_of(*core), options.transfer, f, args...);
    const auto code = functions_of(*core).encode(&call::run);
    note_name(*core, code, typeid(typename call::sent::callable));
    return future_of_task<typename call::result>(
        submit_task(core, code, std::move(frame), options, terms, route, admitted));
  }
  template <class F, class... Args>
  static auto send(const submission& how, admission admitted, const F& f, const Args&... args) {
    return send(how.core, how.options, how.terms, how.route, admitted, f, args...);
  }

  [[nodiscard]] submission for_later() const {
    return {.core = core_, .options = options_, .terms = terms_of(options_), .route = route_};
  }

  template <class Ending>
  auto start_job(std::shared_ptr<map_job> job, const task_terms& terms, packed_batch batch,
                 std::shared_ptr<progress_meter> progress) const {
    return future_access::of_handle<typename Ending::type>(
        {start_map_of(core_, std::move(job), std::move(batch), options_, terms, route_, std::move(progress)),
         map_source_of<Ending>});
  }

  template <bool Unpack, class R, class F, class Xs>
  auto stream_tasks(F f, Xs&& xs) const {
    using input = range_walk<view_of<Xs>>;
    auto submit = element_submitter<Unpack, element_of<Xs>>(std::move(f));
    return stream<R>(make_as<stream_source<R>, task_stream<R, input, decltype(submit)>>(
        home_of(core_), input(view_over(std::forward<Xs>(xs))), std::move(submit), window()));
  }

  template <bool Unpack, bool Ordered, class R, class F, class Xs>
  auto stream_as_they_come(F f, Xs&& xs) const {
    using input = range_walk<view_of<Xs>>;
    auto submit = element_submitter<Unpack, element_of<Xs>>(std::move(f));
    using source = slow_stream<R, input, decltype(submit)>;
    return stream<R>(
        make_as<stream_source<R>, source>(home_of(core_), input(view_over(std::forward<Xs>(xs))), std::move(submit),
                                          typename source::settings{.ordered = Ordered, .window = window()}));
  }
};

}  // namespace muster::detail
