// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <muster/async/future.hpp>
#include <muster/pool/detail/core_access.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/task_source.hpp>

namespace muster::detail {

/// Whether the function of this process, which is a muster::process, has returned.
[[nodiscard]] bool& function_has_returned() noexcept;

/// A callable whose result nobody wants, and whose return is noted for the exit code.
template <class Callable>
struct process_callable {
  Callable callable;

  template <class... Args>
    requires std::is_invocable_v<Callable&, Args...>
  void operator()(Args&&... args) {
    static_cast<void>(std::invoke(callable, std::forward<Args>(args)...));
    function_has_returned() = true;
  }
};

template <class Callable>
struct callable_wire<process_callable<Callable>> {
  using sent = typename callable_wire<Callable>::sent;
  static sent send(const process_callable<Callable>& whole, token_encoder& encoder) {
    return callable_wire<Callable>::send(whole.callable, encoder);
  }
  static process_callable<Callable> restore(sent& wire, token_decoder& decoder) {
    return {callable_wire<Callable>::restore(wire, decoder)};
  }
};

template <class F>
[[nodiscard]] process_callable<F> of_process(F callable) {
  return {std::move(callable)};
}
template <class F, class... Bound>
[[nodiscard]] bind_front_t<process_callable<F>, Bound...> of_process(bind_front_t<F, Bound...> callable) {
  return {{std::move(callable.callable)}, std::move(callable.bound)};
}

template <class F, class... Args>
consteval void check_process_call() {
  require_sendable<typename callable_parts<F>::innermost>();
  require_transportable_call<F, Args...>();
  require_invocable<F, Args...>();
}

/// Makes the call the one task of a process that is still to be started.
template <class F, class... Args>
future<void> submit_process_call(const std::shared_ptr<pool_core>& core, F f, const Args&... args) {
  const auto callable = of_process(std::move(f));
  using call = invocation<std::remove_const_t<decltype(callable)>, sent_as<Args>...>;
  require_texts("argument", args...);
  auto frame = call::encode(memory_of(*core), functions_of(*core), transfer::reference, callable, args...);
  return future_of_task<void>(
      submit_task(core, functions_of(*core).encode(&call::run), std::move(frame), {}, {}, {}, admission::unlimited));
}

}  // namespace muster::detail
