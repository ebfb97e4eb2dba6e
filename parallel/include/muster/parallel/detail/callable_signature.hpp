// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a callable takes and gives, where it has one such set.
//
// Thread safety: types; safe.

#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/serialize/callable.hpp>

namespace muster::detail {

template <class Result, class... Arguments>
struct signature {
  using result = Result;
  using arguments = std::tuple<Arguments...>;
};

template <class Member>
struct member_signature;
template <class R, class C, class... A>
struct member_signature<R (C::*)(A...)> : signature<R, A...> {};
template <class R, class C, class... A>
struct member_signature<R (C::*)(A...) const> : signature<R, A...> {};
template <class R, class C, class... A>
struct member_signature<R (C::*)(A...) noexcept> : signature<R, A...> {};
template <class R, class C, class... A>
struct member_signature<R (C::*)(A...) const noexcept> : signature<R, A...> {};

template <class Callable>
struct callable_signature {
  static constexpr bool is_known = false;
};

template <class Callable>
  requires requires { &Callable::operator(); }
struct callable_signature<Callable> : member_signature<decltype(&Callable::operator())> {
  static constexpr bool is_known = true;
};

template <class R, class... A>
struct callable_signature<R (*)(A...)> : signature<R, A...> {
  static constexpr bool is_known = true;
};
template <class R, class... A>
struct callable_signature<R (*)(A...) noexcept> : signature<R, A...> {
  static constexpr bool is_known = true;
};

template <auto Function>
struct callable_signature<fn_t<Function>> : callable_signature<std::decay_t<decltype(Function)>> {};

template <class Callable>
struct callable_signature<trivial_capture_t<Callable>> : callable_signature<Callable> {};

template <std::size_t Count, class Signature>
struct without_first_arguments;
template <std::size_t Count, class R, class... A>
struct without_first_arguments<Count, signature<R, A...>> {
  template <std::size_t... Index>
  static signature<R, std::tuple_element_t<Count + Index, std::tuple<A...>>...> rest(std::index_sequence<Index...>);
  using type = decltype(rest(std::make_index_sequence<(sizeof...(A) < Count ? 0 : sizeof...(A) - Count)>()));
};

template <class Whole, class Arguments>
struct as_signature;
template <class Whole, class... A>
struct as_signature<Whole, std::tuple<A...>> {
  using type = signature<typename Whole::result, A...>;
};

template <class Callable, class... Bound>
  requires callable_signature<Callable>::is_known
struct callable_signature<bind_front_t<Callable, Bound...>>
    : without_first_arguments<sizeof...(Bound),
                              typename as_signature<callable_signature<Callable>,
                                                    typename callable_signature<Callable>::arguments>::type>::type {
  static constexpr bool is_known = true;
};

}  // namespace muster::detail
