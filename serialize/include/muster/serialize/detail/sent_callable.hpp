// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a callable and the values bound to it travel, and how they are called where they arrive. Tasks, chunks of maps,
// what workers run at their start and end, processes and functions of worlds are all sent so.
//
// Thread safety: types and functions without state; safe.

#include <cstddef>
#include <tuple>
#include <utility>

#include <muster/serialize/callable.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

template <class Callable, class Sent, class Bound>
struct sent_parts;

/// Values that travel are, in this order: what callable_wire sends of the callable, the bound values, and what the
/// sender adds, as arguments.
template <class Callable, class... Sent, class... Bound>
struct sent_parts<Callable, std::tuple<Sent...>, std::tuple<Bound...>> {
  using callable = Callable;
  using bound = std::tuple<Bound...>;
  /// All that travels of it.
  using values = std::tuple<Sent..., Bound...>;
  /// Of all that travels with a call with such arguments.
  template <class... Args>
  using frame = codec<Sent..., Bound..., Args...>;

  /// Calls `with` with what travels of `f`; returns what that returns. Throws errc::invalid_argument for a null
  /// pointer, and errc::module_mismatch for a function of a library that cannot be named.
  template <class F, class With>
  static decltype(auto) send(const F& f, token_encoder& functions, const With& with) {
    using parts = callable_parts<F>;
    const auto sent = callable_wire<Callable>::send(parts::callable_of(f), functions);
    const auto& values = parts::bound_of(f);
    return [&]<std::size_t... S, std::size_t... B>(std::index_sequence<S...>,
                                                   std::index_sequence<B...>) -> decltype(auto) {
      return with(std::get<S>(sent)..., std::get<B>(values)...);
    }(std::index_sequence_for<Sent...>{}, std::index_sequence_for<Bound...>{});
  }

  /// The callable, of values that begin with what was sent. Throws errc::corrupted for a function that is none.
  template <class... Values>
  [[nodiscard]] static Callable restore(std::tuple<Values...>& values, token_decoder& functions) {
    return [&]<std::size_t... S>(std::index_sequence<S...>) {
      std::tuple<Sent...> sent{std::move(std::get<S>(values))...};
      return callable_wire<Callable>::restore(sent, functions);
    }(std::index_sequence_for<Sent...>{});
  }
  /// The bound values, moved out of those.
  template <class... Values>
  [[nodiscard]] static bound take_bound(std::tuple<Values...>& values) {
    return [&]<std::size_t... B>(std::index_sequence<B...>) {
      return bound{std::move(std::get<sizeof...(Sent) + B>(values))...};
    }(std::index_sequence_for<Bound...>{});
  }
  /// Calls `with` with the bound values of those as const references and with all behind them as rvalues.
  template <class With, class... Values>
  static decltype(auto) apply(const With& with, std::tuple<Values...>& values) {
    constexpr auto before = sizeof...(Sent) + sizeof...(Bound);
    return [&]<std::size_t... B, std::size_t... A>(std::index_sequence<B...>,
                                                   std::index_sequence<A...>) -> decltype(auto) {
      return with(std::as_const(std::get<sizeof...(Sent) + B>(values))..., std::move(std::get<before + A>(values))...);
    }(std::index_sequence_for<Bound...>{}, std::make_index_sequence<sizeof...(Values) - before>{});
  }
};

/// `F` may have bound values (bind_front_t).
template <class F>
using sent_callable =
    sent_parts<typename callable_parts<F>::innermost,
               typename callable_wire<typename callable_parts<F>::innermost>::sent, typename callable_parts<F>::bound>;

}  // namespace muster::detail
