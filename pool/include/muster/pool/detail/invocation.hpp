// SPDX-License-Identifier: BSL-1.0
#pragma once

// How one call travels: the frame that the parent encodes and the function that the worker runs for it, both made from
// the types of callable and arguments.

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/serialize/callable.hpp>
#include <muster/serialize/detail/sent_callable.hpp>

namespace muster::detail {

/// A result as it is sent back; void stays void.
template <class R>
using sent_result = std::conditional_t<std::is_void_v<R>, void, std::decay_t<R>>;

template <class Callable, class Bound, class... Args>
struct invoke_with_bound;

template <class Callable, class... Bound, class... Args>
struct invoke_with_bound<Callable, std::tuple<Bound...>, Args...> {
  static constexpr bool possible = std::is_invocable_v<Callable&, const Bound&..., Args&&...>;
  using result =
      sent_result<typename std::conditional_t<possible, std::invoke_result<Callable&, const Bound&..., Args&&...>,
                                              std::type_identity<void>>::type>;
};

// A parameter may narrow its argument, as in a call of std::invoke: that is for the program to say, and no warning of
// this header's where its includer asks for such.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"

/// There is a call for each callable of a program: std::invoke would be three functions for each.
template <class F, class... Args>
decltype(auto) call_with(F& callable, Args&&... args) {
  if constexpr (std::is_member_pointer_v<F>) {
    return std::invoke(callable, std::forward<Args>(args)...);
  } else {
    return callable(std::forward<Args>(args)...);
  }
}

#pragma GCC diagnostic pop

template <class F, class... Args>
inline constexpr bool call_may_change =
    !std::is_empty_v<F> && !std::is_pointer_v<F> && !std::is_invocable_v<const F&, Args...>;

/// One of the calls of a map or stream. Each element finds the callable as it was given, whichever elements the same
/// thread or process has had before: a call that may change it is made with a copy.
template <class F, class... Args>
decltype(auto) call_for_element(F& callable, Args&&... args) {
  if constexpr (call_may_change<F, Args...>) {
    static_assert(std::is_copy_constructible_v<F>,
                  "muster: a callable that a call may change is copied for each element, and this one cannot be "
                  "copied: make its operator() const (of a lambda, drop mutable), or give it a copy constructor");
    F copy(std::as_const(callable));
    using result = decltype(call_with(copy, std::forward<Args>(args)...));
    if constexpr (std::is_reference_v<result>) {
      return std::remove_cvref_t<result>(call_with(copy, std::forward<Args>(args)...));  // it may refer to the copy
    } else {
      return call_with(copy, std::forward<Args>(args)...);
    }
  } else {
    return call_with(callable, std::forward<Args>(args)...);
  }
}

/// The result of calling `F` (bound arguments included) in a worker with `Args`, as sent.
template <class F, class... Args>
using task_result = typename invoke_with_bound<typename callable_parts<F>::innermost, typename callable_parts<F>::bound,
                                               Args...>::result;

template <class F, class... Args>
consteval void require_invocable() {
  static_assert(
      invoke_with_bound<typename callable_parts<F>::innermost, typename callable_parts<F>::bound, Args...>::possible,
      "muster: the callable cannot be called with these arguments. It gets copies, as rvalues: take them by "
      "value, by const& or by &&; a C string arrives as std::string, a bound argument as const&");
}

template <class R>
consteval void require_sendable_result() {
  if constexpr (!std::is_void_v<R>) require_transportable<R>();
}

/// Writes a value as the reply of a call.
template <class R>
void reply_with(task_call& call, const R& value) {
  call.enter(task_call::step::encoding);
  const auto needed = codec<R>::size_with(value);
  task_call::sender attachments(call);
  codec<R>::encode_with(call.make_reply(needed.bytes, needed.attachments), &attachments, value);
}

/// One call of `F` with `Args`, as sent.
template <class F, class... Args>
struct invocation {
  using sent = sent_callable<F>;
  using result = task_result<F, Args...>;

  /// Runs in the worker.
  static void run(task_call& call) {
    task_call::borrower attachments(call);
    auto values = sent::template frame<Args...>::decode(call.arguments(), &attachments);
    auto callable = sent::restore(values, call.functions());
    const auto invoke = [&]() -> decltype(auto) {
      return sent::apply(
          [&](auto&&... all) -> decltype(auto) { return call_with(callable, std::forward<decltype(all)>(all)...); },
          values);
    };
    call.enter(task_call::step::running);
    if constexpr (std::is_void_v<result>) {
      invoke();
      static_cast<void>(call.make_reply(0));
    } else {
      reply_with<result>(call, invoke());
    }
  }

  /// Encodes the call in the parent.
  static outgoing_frame encode(arena& memory, token_encoder& functions, transfer how, const F& f, const Args&... args) {
    return sent::send(f, functions, [&]<class... Leading>(const Leading&... leading) {
      return outgoing_frame::sent<Leading..., Args...>(memory, how, leading..., args...);
    });
  }
};

/// What a thread of this process calls, with values that it owns, and what it returns.
template <class F, class... Args>
consteval void check_local_invocation() {
  require_invocable<F, Args...>();
  using result = task_result<F, Args...>;
  if constexpr (!std::is_void_v<result>) require_fitting<result>();
}
template <class F, class... Args>
consteval void check_local_call() {
  require_fitting_call<F, Args...>();
  check_local_invocation<F, Args...>();
}

/// All that can be checked about a call at compile time, each with a sentence.
template <class F, class... Args>
consteval void check_call() {
  require_sendable<typename callable_parts<F>::innermost>();
  require_transportable_call<F, Args...>();
  require_invocable<F, Args...>();
  require_sendable_result<task_result<F, Args...>>();
}

}  // namespace muster::detail
