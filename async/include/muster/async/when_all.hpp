// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <muster/async/future.hpp>

namespace muster {

namespace detail {

/// A value of a future<R> inside a tuple or vector; void becomes monostate.
template <class R>
using gathered = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

template <class R>
gathered<R> gather(outcome<R>&& how) {
  if constexpr (std::is_void_v<R>) {
    std::move(how).get();
    return {};
  } else {
    return std::move(how).get();
  }
}

/// Cancels all of them, also when they are used up.
template <class R>
[[nodiscard]] std::function<void(cancellation)> canceller_of_all(const std::vector<future<R>>& futures) {
  std::vector<std::function<void(cancellation)>> all;
  for (const auto& each : futures) all.push_back(future_access::canceller_of(each));
  return [all = std::move(all)](cancellation how) {
    for (const auto& cancel : all) cancel(how);
  };
}
/// Waits for all of them, likewise.
template <class R>
[[nodiscard]] std::function<void(deadline)> waiter_of_all(const std::vector<future<R>>& futures) {
  std::vector<std::function<void(deadline)>> all;
  for (const auto& each : futures) {
    if (auto wait = future_access::waiter_of(each)) all.push_back(std::move(wait));
  }
  if (all.empty()) return nullptr;
  return [all = std::move(all)](deadline until) {
    for (const auto& wait : all) wait(until);
  };
}
template <class... Rs>
[[nodiscard]] std::function<void(deadline)> waiter_of_each(const future<Rs>&... futures) {
  return [all = std::make_tuple(future_access::waiter_of(futures)...)](deadline until) {
    std::apply([until](const auto&... wait) { ((wait ? wait(until) : void()), ...); }, all);
  };
}
template <class... Rs>
[[nodiscard]] std::function<void(cancellation)> canceller_of_each(const future<Rs>&... futures) {
  return [all = std::make_tuple(future_access::canceller_of(futures)...)](cancellation how) {
    std::apply([how](const auto&... cancel) { (cancel(how), ...); }, all);
  };
}

}  // namespace detail

/// A future for the values of all these, in order, of one pool or several. If some fail, its error is that of the first
/// of them in order; it is ready only when all have ended. The futures are used up; cancelling the one that is returned
/// cancels them. A future<void> gives a std::monostate. Throws EAGAIN when there is no thread for the steps between
/// futures and none can be had; the futures are used up all the same. Throws errc::invalid_argument when one of them
/// refers to nothing. Thread safety: safe for distinct futures.
template <class R>
[[nodiscard]] future<std::vector<detail::gathered<R>>> when_all(std::vector<future<R>> futures) {
  using values = std::vector<detail::gathered<R>>;
  struct gathering {
    std::vector<std::optional<detail::outcome<R>>> outcomes;
    std::atomic<std::size_t> missing = 0;
    std::shared_ptr<detail::local_state<values>> state;

    void finish() {
      state->complete(detail::outcome<values>::of_call([this] {
        values all;
        for (auto& each : outcomes) all.push_back(detail::gather<R>(std::move(*each)));
        return all;
      }));
    }
  };
  for (const auto& each : futures) detail::future_access::require_valid(each);
  auto together = std::make_shared<gathering>();
  together->outcomes.resize(futures.size());
  together->missing = futures.size();
  together->state =
      std::make_shared<detail::local_state<values>>(detail::canceller_of_all(futures), detail::waiter_of_all(futures));
  std::shared_ptr<detail::future_home> home;
  for (const auto& each : futures) {
    if (home == nullptr) home = detail::future_access::home_of(each);
  }
  for (std::size_t index = 0; index < futures.size(); ++index) {
    detail::future_access::when_done<R>(std::move(futures[index]), [together, index](detail::outcome<R> how) {
      together->outcomes[index].emplace(std::move(how));
      if (--together->missing == 0) together->finish();
    });
  }
  if (futures.empty()) together->finish();
  return detail::future_access::of_source<values>(home, together->state);
}

/// The same for futures of different types, as a tuple.
template <class... Rs>
[[nodiscard]] future<std::tuple<detail::gathered<Rs>...>> when_all(future<Rs>... futures) {
  using values = std::tuple<detail::gathered<Rs>...>;
  detail::require_fitting<values>();
  struct gathering {
    std::tuple<std::optional<detail::outcome<Rs>>...> outcomes;
    std::atomic<std::size_t> missing = sizeof...(Rs);
    std::shared_ptr<detail::local_state<values>> state;

    void finish() {
      state->complete(detail::outcome<values>::of_call([this] {
        return std::apply([](auto&... each) { return values{detail::gather<Rs>(std::move(*each))...}; }, outcomes);
      }));
    }
  };
  (detail::future_access::require_valid(futures), ...);
  auto together = std::make_shared<gathering>();
  together->state = std::make_shared<detail::local_state<values>>(detail::canceller_of_each(futures...),
                                                                  detail::waiter_of_each(futures...));
  std::shared_ptr<detail::future_home> home;
  const auto add = [&]<std::size_t Index, class R>(std::integral_constant<std::size_t, Index>, future<R>& each) {
    if (home == nullptr) home = detail::future_access::home_of(each);
    detail::future_access::when_done<R>(std::move(each), [together](detail::outcome<R> how) {
      std::get<Index>(together->outcomes).emplace(std::move(how));
      if (--together->missing == 0) together->finish();
    });
  };
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    (add(std::integral_constant<std::size_t, Index>{}, futures), ...);
  }(std::index_sequence_for<Rs...>{});
  if constexpr (sizeof...(Rs) == 0) together->finish();
  return detail::future_access::of_source<values>(home, together->state);
}

}  // namespace muster
