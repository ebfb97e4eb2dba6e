// SPDX-License-Identifier: BSL-1.0
#pragma once

// Contexts: an object of each worker, which callables get as their first argument. A callable travels with nothing but
// a wrapper around it, which finds the object where it arrives.

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/pool/this_worker.hpp>
#include <muster/serialize/callable.hpp>

namespace muster::detail {

/// The context of the worker, process or thread, that the calling thread is in; nullptr where there is none.
/// Thread safety: safe.
[[nodiscard]] void* current_context() noexcept;

/// Makes `context` that of this worker process; the one before is destroyed. Before the first task, or after the last.
void set_process_context(std::shared_ptr<void> context) noexcept;

/// Calls `callable` with the worker's context first.
///
/// Thread safety: as `F`.
template <class C, class F>
struct with_context {
  [[no_unique_address]] F callable;

  template <class... Arguments>
    requires std::is_invocable_v<F&, C&, Arguments...>
  decltype(auto) operator()(Arguments&&... arguments) {
    return std::invoke(callable, *static_cast<C*>(current_context()), std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
    requires std::is_invocable_v<const F&, C&, Arguments...>
  decltype(auto) operator()(Arguments&&... arguments) const {
    return std::invoke(callable, *static_cast<C*>(current_context()), std::forward<Arguments>(arguments)...);
  }
};

/// A context where it stays; made in place, so that it need not be movable.
template <class C>
struct context_box {
  template <class Make>
  explicit context_box(std::in_place_t, Make&& make) : value(std::forward<Make>(make)()) {}
  C value;
};

/// What a factory makes for worker `index`; it may or may not ask for the index.
template <class C, class F, class... Bound>
[[nodiscard]] std::shared_ptr<void> make_context(F& factory, std::size_t index, const Bound&... bound) {
  const auto box = std::make_shared<context_box<C>>(std::in_place, [&]() -> C {
    if constexpr (std::is_invocable_r_v<C, F&, const Bound&..., std::size_t>) {
      return std::invoke(factory, bound..., index);
    } else {
      return std::invoke(factory, bound...);
    }
  });
  return {box, &box->value};
}

template <class C, class F, class... Bound>
inline constexpr bool makes_context =
    std::is_invocable_r_v<C, F&, const Bound&..., std::size_t> || std::is_invocable_r_v<C, F&, const Bound&...>;

/// A factory as a task of each worker process: it leaves the context there.
template <class C, class F>
struct context_setter {
  [[no_unique_address]] F factory;

  template <class... Bound>
    requires makes_context<C, F, Bound...>
  void operator()(const Bound&... bound) {
    set_process_context(make_context<C>(factory, static_cast<std::size_t>(this_worker::id()), bound...));
  }
};

/// The factory of a context that was given.
template <class C>
struct copy_given {
  C operator()(const C& given) const { return given; }
};

template <template <class, class> class Wrapper, class C, class F>
[[nodiscard]] Wrapper<C, F> wrap(F callable) {
  return {std::move(callable)};
}
/// Bound arguments stay outside: they come after the context and before the others.
template <template <class, class> class Wrapper, class C, class F, class... Bound>
[[nodiscard]] bind_front_t<Wrapper<C, F>, Bound...> wrap(bind_front_t<F, Bound...> callable) {
  return {{std::move(callable.callable)}, std::move(callable.bound)};
}

/// Callables as they are given.
struct as_given {
  template <class F>
  [[nodiscard]] static F adapt(F callable) {
    return callable;
  }
  template <class F, class... Arguments>
  static consteval void check() {}
};

template <class C, class F, class Bound, class... Arguments>
inline constexpr bool takes_context = false;
template <class C, class F, class... Bound, class... Arguments>
inline constexpr bool takes_context<C, F, std::tuple<Bound...>, Arguments...> =
    std::is_invocable_v<F&, C&, const Bound&..., Arguments...>;

/// Callables that take the worker's context first.
template <class C>
struct context_first {
  template <class F>
  [[nodiscard]] static auto adapt(F callable) {
    return wrap<with_context, C>(std::move(callable));
  }
  template <class F, class... Arguments>
  static consteval void check() {
    static_assert(
        takes_context<C, typename callable_parts<F>::innermost, typename callable_parts<F>::bound, Arguments...>,
        "muster: a callable of a pool with contexts takes the context, C&, first, then its arguments: "
        "[](C& context, int x) { ... }; it gets the arguments as rvalues, and bound ones as const&");
  }
};

template <class C, class F, class Bound>
inline constexpr bool is_factory = false;
template <class C, class F, class... Bound>
inline constexpr bool is_factory<C, F, std::tuple<Bound...>> = makes_context<C, F, Bound...>;

/// What a constructor takes for a factory, good or bad, and not for a context.
template <class F, class C>
concept factory_like = is_factory<C, typename callable_parts<F>::innermost, typename callable_parts<F>::bound> ||
                       (!std::convertible_to<F, C> && !std::convertible_to<F, std::vector<C>>);

template <class C, class F>
consteval void require_factory() {
  static_assert(is_factory<C, typename callable_parts<F>::innermost, typename callable_parts<F>::bound>,
                "muster: the factory of a pool with contexts returns the context, C, and takes nothing or the worker's "
                "index: [] { return C(); } or [](std::size_t worker) { return C(worker); }");
}

// ---- how the wrappers travel: as what they wrap

template <class C, class F>
inline constexpr std::size_t carried_bytes<with_context<C, F>> = carried_bytes<F>;
template <class C, class F>
inline constexpr std::size_t carried_bytes<context_setter<C, F>> = carried_bytes<F>;

template <class C, class F>
inline constexpr bool travels_as_another<with_context<C, F>> = sendable_callable<F>;
template <class C, class F>
inline constexpr bool travels_as_another<context_setter<C, F>> = sendable_callable<F>;

template <class C, class F>
struct callable_wire<with_context<C, F>> {
  using sent = typename callable_wire<F>::sent;
  static sent send(const with_context<C, F>& whole, token_encoder& encoder) {
    return callable_wire<F>::send(whole.callable, encoder);
  }
  static with_context<C, F> restore(sent& wire, token_decoder& decoder) {
    return {callable_wire<F>::restore(wire, decoder)};
  }
};

template <class C, class F>
struct callable_wire<context_setter<C, F>> {
  using sent = typename callable_wire<F>::sent;
  static sent send(const context_setter<C, F>& whole, token_encoder& encoder) {
    return callable_wire<F>::send(whole.factory, encoder);
  }
  static context_setter<C, F> restore(sent& wire, token_decoder& decoder) {
    return {callable_wire<F>::restore(wire, decoder)};
  }
};

}  // namespace muster::detail
