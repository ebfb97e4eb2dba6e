// SPDX-License-Identifier: BSL-1.0
#pragma once

// How calls between members travel: the functions that the member runs which serves them, made from the types of
// callable and arguments.
//
// Thread safety: types and functions without state; safe.

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/async/future.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/rpc/detail/rpc_request.hpp>
#include <muster/serialize/detail/sent_callable.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// Calls `use` with what makes the call of `F`, with `leading` before the arguments that were sent.
template <class F, class... Args, class Use, class... Leading>
decltype(auto) with_sent_call(rpc_request& call, const Use& use, Leading&... leading) {
  using sent = sent_callable<F>;
  auto values = sent::template frame<Args...>::decode(call.arguments(), &call.attachments());
  auto callable = sent::restore(values, call.functions());
  call.is_of(typeid(typename callable_parts<F>::innermost));
  call.drop_arguments();
  return use([&]() -> decltype(auto) {
    return sent::apply(
        [&](auto&&... all) -> decltype(auto) {
          return call_with(callable, leading..., std::forward<decltype(all)>(all)...);
        },
        values);
  });
}

/// What a call has for its result: of a function that returns a future, what that comes to.
template <class R>
struct replied {
  using type = R;
};
template <class R>
struct replied<future<R>> {
  using type = R;
};
template <class R>
using reply_of = typename replied<R>::type;

[[noreturn]] void throw_future_is_not_kept();

/// Replies when the future is ready; neither a thread nor a serial line waits for that.
template <class R>
void reply_later(rpc_request& call, future<R> made) {
  auto later = call.defer();
  const auto finish = [later](outcome<R> how) {
    if (!later->try_begin()) return;
    try {
      if (!how.has_value()) return later->fail(std::move(how).to_result().error());
      if constexpr (std::is_void_v<R>) {
        static_cast<void>(later->make_reply(0, 0));
      } else {
        reply_with<R>(*later, std::move(how).get());
      }
      later->send();
    } catch (...) {
      later->fail(capture_current_exception());
    }
  };
  try {
    future_access::when_done<R>(std::move(made), finish);
  } catch (...) {
    static_cast<void>(later->try_begin());  // what is thrown is the reply
    throw;
  }
}

/// Runs a call and replies with its result.
template <class R>
void run_and_reply(rpc_request& call, const auto& invoke) {
  if constexpr (is_future<decltype(invoke())>) {
    if (call.keeps_result()) throw_future_is_not_kept();
    reply_later<R>(call, invoke());
  } else if constexpr (std::is_void_v<R>) {
    invoke();
    static_cast<void>(call.make_reply(0, 0));
  } else if (call.keeps_result()) {
    call.keep(std::shared_ptr<R>(new R(invoke())));
    static_cast<void>(call.make_reply(0, 0));
  } else {
    reply_with<R>(call, invoke());
  }
}

/// A function that runs at a member.
template <class F, class... Args>
struct rpc_function {
  using result = reply_of<task_result<F, Args...>>;
  static void run(rpc_request& call) {
    with_sent_call<F, Args...>(call, [&](const auto& invoke) { run_and_reply<result>(call, invoke); });
  }
};

/// The same, whose result stays there.
template <class F, class... Args>
struct rpc_maker {
  using result = task_result<F, Args...>;
  static void run(rpc_request& call) {
    with_sent_call<F, Args...>(call,
                               [&](const auto& invoke) { call.keep(std::shared_ptr<result>(new result(invoke()))); });
    static_cast<void>(call.make_reply(0, 0));
  }
};

/// What a function of a remote value returns, as sent.
template <class T, class F, class... Args>
using method_result =
    typename invoke_with_bound<typename callable_parts<F>::innermost,
                               decltype(std::tuple_cat(std::declval<typename callable_parts<F>::bound>())), T&,
                               Args...>::result;

/// A function of a value that is there.
template <class T, class F, class... Args>
struct rpc_method {
  using result = reply_of<method_result<T, F, Args...>>;
  static void run(rpc_request& call) {
    auto& object = *static_cast<T*>(call.object());
    with_sent_call<F, Args...>(call, [&](const auto& invoke) { run_and_reply<result>(call, invoke); }, object);
  }
};

/// A copy of a value that is there.
template <class T>
struct rpc_copy {
  static void run(rpc_request& call) { reply_with<T>(call, *static_cast<const T*>(call.object())); }
};

/// All that can be checked about a call of a function at compile time.
template <class F, class... Args>
consteval void check_rpc_call() {
  require_sendable<typename callable_parts<F>::innermost>();
  require_transportable_call<F, Args...>();
  require_invocable<F, Args...>();
  require_sendable_result<reply_of<task_result<F, Args...>>>();
}

/// All that can be checked about a call of a remote value at compile time.
template <class T, class F, class... Args>
consteval void check_method() {
  require_sendable<typename callable_parts<F>::innermost>();
  require_transportable_call<F, Args...>();
  static_assert(std::tuple_size_v<typename callable_parts<F>::bound> == 0,
                "muster: a function of a remote value gets the value first: pass what you bound as further arguments");
  static_assert(std::is_invocable_v<typename callable_parts<F>::innermost&, T&, Args&&...>,
                "muster: the function cannot be called with the remote value and these arguments. It gets the value as "
                "T&, and copies of the arguments as rvalues: take them by value, by const& or by &&");
  require_sendable_result<reply_of<method_result<T, F, Args...>>>();
}

}  // namespace muster::detail
