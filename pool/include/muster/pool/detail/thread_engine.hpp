// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/async/detail/dependent_call.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/range_concepts.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/engine_base.hpp>
#include <muster/pool/detail/generated_view.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/local_access.hpp>
#include <muster/pool/detail/local_map.hpp>
#include <muster/pool/detail/local_stream.hpp>
#include <muster/pool/detail/local_task.hpp>
#include <muster/pool/detail/make_as.hpp>
#include <muster/pool/detail/owned_value.hpp>
#include <muster/pool/detail/slow_stream.hpp>
#include <muster/pool/detail/task_stream.hpp>
#include <muster/pool/detail/thread_host.hpp>
#include <muster/pool/input.hpp>
#include <muster/pool/stream.hpp>
#include <muster/pool/task_options.hpp>

namespace muster::detail {

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

/// How pools of threads do what pool_calls asks for: values are moved or copied, and tasks are run by threads of this
/// process, or where they are submitted.
///
/// Thread safety and lifetime: as engine_base.
class thread_engine : public engine_base<thread_host> {
public:
  using engine_base::engine_base;

  [[nodiscard]] static task_options checked(const task_options& options) { return checked_for_threads(options); }

  template <class F, class... Args>
  static consteval void check_call() {
    check_local_call<F, Args...>();
  }
  template <bool Unpack, class F, class T>
  static consteval void check_elements() {
    local_element<Unpack, F, T>::check();
  }
  template <bool Unpack, class F, class T>
  using element_result = typename local_element<Unpack, F, T>::result;

  /// One task.
  template <class F, class... Args>
  auto submit(F f, Args&&... args) const {
    return submit_local(core_, route_, true, std::move(f), std::forward<Args>(args)...);
  }

  /// One task, once the futures among the arguments have their values.
  template <class F, class... Args>
  auto submit_later(F f, Args&&... args) const {
    auto place = std::make_shared<local_unit>(core_);
    auto submit = [place = std::move(place), route = route_, callable = std::move(f)](auto&&... values) mutable {
      return place->submit(route, std::move(callable), std::forward<decltype(values)>(values)...);
    };
    return submit_when_ready(home_of(core_), std::move(submit), std::forward<Args>(args)...);
  }

  /// One task for each worker.
  template <class F, class... Args>
  auto submit_to_all(F f, const Args&... args) const {
    const auto callable = to_repeat(std::move(f));
    std::vector<decltype(submit_local(core_, route_, true, callable, args...))> all;
    all.reserve(workers());
    for (std::size_t worker = 0; worker < workers(); ++worker) {
      all.push_back(submit_local(core_, detail::route_to(*core_, worker), true, callable, args...));
    }
    return all;
  }

  template <bool Unpack, bool FailsFast, class F, class Xs>
  auto start_map(F f, Xs&& xs) const {
    using T = element_of<Xs>;
    using R = element_result<Unpack, F, T>;
    using work = local_map_work<Unpack, F, T, R>;
    using ending = std::conditional_t<FailsFast, local_all_or_error<R>, local_each_result<R>>;
    auto elements = elements_of<T>(std::forward<Xs>(xs));
    const auto count = elements.size();
    auto made = std::make_shared<work>(*core_, map_settings(count, FailsFast), std::move(f), std::move(elements));
    auto source = make_as<future_source<typename ending::type>, local_map_source<work, F, ending>>(made);
    begin_map<local_map_helper<work, F>>(made);
    return future_access::of_source<typename ending::type>(home_of(core_), std::move(source));
  }

  template <bool Unpack, bool Ordered, class F, class Xs>
  auto start_stream(F f, Xs&& xs) const {
    using T = element_of<Xs>;
    using R = element_result<Unpack, F, T>;
    using input = range_walk<view_of<Xs>>;
    auto submit = element_submitter<Unpack, T>(std::move(f));
    input elements(view_over(std::forward<Xs>(xs)));
    auto inside = [core = core_] { return worker_here(*core) != nullptr; };
    if constexpr (input::speed == input_speed::slow) {
      using source = slow_stream<R, input, decltype(submit)>;
      if (!is_serial(*core_)) {
        return stream<R>(make_as<stream_source<R>, source>(
            home_of(core_), std::move(elements), std::move(submit),
            typename source::settings{
                .ordered = Ordered, .window = window(), .waits = true, .inside = std::move(inside)}));
      }
    }
    if constexpr (Ordered) {
      return stream<R>(make_as<stream_source<R>, task_stream<R, input, decltype(submit)>>(
          home_of(core_), std::move(elements), std::move(submit), window(), true));
    } else {
      return stream<R>(make_as<stream_source<R>, unordered_task_stream<R, input, decltype(submit)>>(
          home_of(core_), std::move(elements), std::move(submit), window(), std::move(inside)));
    }
  }

  /// What makes a task of an element of type T; it may outlive this engine.
  template <bool Unpack, class T, class F>
  [[nodiscard]] auto element_submitter(F f) const {
    return [core = core_, route = route_,
            callable = to_repeat(std::move(f))](auto&& element) -> future<element_result<Unpack, F, T>> {
      const auto call = [&](auto&&... parts) {
        return submit_local(core, route, false, callable, std::forward<decltype(parts)>(parts)...);
      };
      if constexpr (Unpack) {
        return std::apply(call, T(to_own<T>(std::forward<decltype(element)>(element))));
      } else {
        return call(std::forward<decltype(element)>(element));
      }
    };
  }
  /// How many elements of a stream are ahead of the results. Where tasks run as they are submitted, nothing is gained
  /// by being ahead.
  [[nodiscard]] std::size_t window() const {
    if (options_.window != 0) return options_.window;
    return is_serial(*core_) ? 1 : batches_per_worker * route_.workers(workers());
  }
  /// Whether a feed that is destroyed waits for what runs: that may refer to what belongs to the caller.
  static constexpr bool feed_waits = true;

private:
  [[nodiscard]] local_map_run::settings map_settings(std::size_t count, bool fails_fast) const {
    return {.count = count,
            .fail_fast = fails_fast,
            .label = std::string(options_.label.view()),
            .chunking = {.workers = route_.workers(workers()), .given = options_.chunk, .most = 0},
            .route = route_};
  }

  // Copies the callable, which may throw: so before anything of the map is accepted.
  template <class Helper, class Work>
  [[nodiscard]] auto make_helpers(const std::shared_ptr<Work>& work) const {
    std::vector<std::shared_ptr<local_map_part>> all(std::min(work->count(), route_.workers(workers())));
    for (auto& each : all) each = make_as<local_map_part, Helper>(work);
    return all;
  }

  template <class Helper, class Work>
  void begin_map(const std::shared_ptr<Work>& work) const {
    const auto helpers = make_helpers<Helper>(work);
    switch (begin_unit(*core_, true)) {
      case local_admission::with_place: work->take_place(); break;
      case local_admission::without_place: break;
      case local_admission::overflow: {
        const auto why = overflow_error();
        static_cast<void>(begin_unit(*core_, false));  // not limited: it is accepted, or throws
        work->give_up(why);
        return;
      }
    }
    work->end_if_empty();
    for (const auto& each : helpers) post(*core_, each, route_);
  }
};

}  // namespace muster::detail
