// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which callables can be sent to a worker, and what of them travels.
//
//   given                                        what travels
//   function pointer                             a token
//   pointer to a member                          a token, or where it is in the object
//   captureless lambda, empty functor, fn<&f>    nothing: the receiver makes one
//   functor with a cereal serialize()            its state
//   bind_front(f, values...)                     f as above, and the values
//   trivial_capture(f)                           the bytes of f, on the caller's responsibility
//
// A lambda with captures does not compile. That it is trivially copyable proves nothing: captured references and
// `this` are too.
//
// Thread safety: types and pure functions; safe.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/detail/function_token.hpp>
#include <muster/serialize/detail/null_arguments.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster {

/// A function, or a member of a class, as an empty functor: `pool.apply(muster::fn<&image::width>, picture)`.
template <auto Function>
struct fn_t {
  /// Calls the function, or the member of the first argument.
  template <class... Arguments>
  constexpr decltype(auto) operator()(Arguments&&... arguments) const {
    return std::invoke(Function, std::forward<Arguments>(arguments)...);
  }
};
/// The functor of that function or member.
template <auto Function>
inline constexpr fn_t<Function> fn{};

/// A callable whose bytes are copied to the worker. See trivial_capture().
template <class Callable>
class trivial_capture_t {
  static_assert(std::is_trivially_copyable_v<Callable>, "muster: trivial_capture needs a trivially copyable callable");

public:
  /// For trivial_capture().
  explicit constexpr trivial_capture_t(Callable callable) : callable_(callable) {}

  /// Calls it.
  ///@{
  template <class... Arguments>
  constexpr decltype(auto) operator()(Arguments&&... arguments) {
    return std::invoke(callable_, std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
    requires std::is_invocable_v<const Callable&, Arguments...>
  constexpr decltype(auto) operator()(Arguments&&... arguments) const {
    return std::invoke(callable_, std::forward<Arguments>(arguments)...);
  }
  ///@}

private:
  Callable callable_;
};

/// @cond
template <class Callable>
inline constexpr bool is_plain_bytes<trivial_capture_t<Callable>> = true;
/// @endcond

/// Sends a lambda with its captures as bytes: right for captured numbers and other plain values, undefined behaviour
/// in the worker for captured references, pointers and `this`. The compiler cannot tell them apart; you can.
template <class Callable>
[[nodiscard]] constexpr trivial_capture_t<Callable> trivial_capture(Callable callable) {
  return trivial_capture_t<Callable>(callable);
}

/// A callable with its first arguments. See bind_front().
template <class Callable, class... Bound>
struct bind_front_t {
  Callable callable;           ///< what is called
  std::tuple<Bound...> bound;  ///< its first arguments, which go along with each call
};

namespace detail {

template <class T>
inline constexpr bool is_bind_front = false;
template <class Callable, class... Bound>
inline constexpr bool is_bind_front<bind_front_t<Callable, Bound...>> = true;

template <class T>
inline constexpr bool is_trivial_capture = false;
template <class Callable>
inline constexpr bool is_trivial_capture<trivial_capture_t<Callable>> = true;

template <class T>
concept member_pointer = std::is_member_pointer_v<T>;

template <class T>
concept function_pointer = std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>;

/// Made anew by the receiver.
template <class T>
concept stateless_callable = std::is_class_v<T> && std::is_empty_v<T> && std::default_initializable<T>;

/// Specialised for a functor that wraps another and travels as that one does, by a callable_wire of its own.
template <class T>
inline constexpr bool travels_as_another = false;

/// A functor with a serialize function of its own; being trivially copyable is not enough.
template <class T>
concept serializable_callable = std::is_class_v<T> && !stateless_callable<T> && !plain_class<T> && archivable<T>;

}  // namespace detail

/// Callables that can be sent; bind_front_t aside, which is taken apart.
template <class T>
concept sendable_callable =
    detail::function_pointer<T> || detail::member_pointer<T> || detail::stateless_callable<T> ||
    detail::is_trivial_capture<T> || detail::serializable_callable<T> || detail::travels_as_another<T>;

/// Binds the first arguments of a callable. They are sent as values of their own types, once for a whole `map`, and
/// given to the callable as const references.
/// Throws errc::invalid_argument for a null pointer: the callable, or a C string.
template <class Callable, class... Bound>
[[nodiscard]] auto bind_front(Callable callable, Bound&&... bound) {
  detail::require_callable(callable);
  detail::require_texts("bound argument", bound...);
  if constexpr (detail::is_bind_front<Callable>) {  // flat, so that there is one list of values
    return std::apply(
        [&]<class... Inner>(Inner&... inner) {
          return bind_front_t<decltype(callable.callable), Inner..., sent_as<Bound>...>{
              std::move(callable.callable), {std::move(inner)..., std::forward<Bound>(bound)...}};
        },
        callable.bound);
  } else {
    return bind_front_t<Callable, sent_as<Bound>...>{std::move(callable), {std::forward<Bound>(bound)...}};
  }
}

namespace detail {

template <class Callable>
consteval void require_sendable() {
  static_assert(
      sendable_callable<Callable>,
      "muster: this callable cannot be sent to a worker process. A lambda must not capture: write [] and pass what it "
      "captured as leading arguments, or bind it with muster::bind_front(f, values...); muster::trivial_capture(f) "
      "copies captured plain values on your own responsibility; a functor with state needs a cereal serialize() and a "
      "default constructor");
}

/// Nothing on the wire.
struct no_state {};

/// How a callable travels: `sent` is what is encoded; `send` makes it and `restore` makes the callable again.
template <class Callable>
struct callable_wire;

template <function_pointer Callable>
struct callable_wire<Callable> {
  using sent = std::tuple<function_token>;
  static sent send(const Callable& callable, token_encoder& encoder) {
    require_callable(callable);
    return {encoder.encode(callable)};
  }
  static Callable restore(sent& wire, token_decoder& decoder) {
    return decoder.decode<std::remove_pointer_t<Callable>>(std::get<0>(wire));
  }
};

/// A pointer to a member as it is in memory, by the C++ ABI that all compilers for Linux share: of a function its
/// address, or, of a virtual one, where it is in the table, and what is added to `this`; of data an offset.
///
/// Thread safety: types and pure functions; safe.
struct member_code {
  std::uint64_t where = 0;  ///< a token, where it is an address
  std::int64_t adjustment = 0;

#if defined(__aarch64__) || defined(__arm__)
  [[nodiscard]] bool is_virtual() const noexcept { return (adjustment & 1) != 0; }
#else
  [[nodiscard]] bool is_virtual() const noexcept { return (where & 1) != 0; }
#endif
};

template <member_pointer Callable>
struct callable_wire<Callable> {
  using sent = std::tuple<std::uint64_t, std::int64_t>;
  using code = void();
  static sent send(const Callable& callable, token_encoder& encoder) {
    require_callable(callable);
    member_code found;
    std::memcpy(static_cast<void*>(&found), &callable, sizeof callable);
    if constexpr (std::is_member_function_pointer_v<Callable>) {
      if (!found.is_virtual()) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
        found.where = static_cast<std::uint64_t>(encoder.encode(reinterpret_cast<code*>(found.where)));
      }
    }
    return {found.where, found.adjustment};
  }
  static Callable restore(sent& wire, token_decoder& decoder) {
    member_code found{.where = std::get<0>(wire), .adjustment = std::get<1>(wire)};
    if constexpr (std::is_member_function_pointer_v<Callable>) {
      if (!found.is_virtual()) {
        found.where = reinterpret_cast<std::uintptr_t>(decoder.decode<code>(static_cast<function_token>(found.where)));
      }
    }
    Callable callable{};
    std::memcpy(&callable, &found, sizeof callable);
    return callable;
  }
};

template <stateless_callable Callable>
struct callable_wire<Callable> {
  using sent = std::tuple<>;
  static sent send(const Callable&, token_encoder&) { return {}; }
  static Callable restore(sent&, token_decoder&) { return Callable{}; }
};

template <class Callable>
struct callable_wire<trivial_capture_t<Callable>> {
  using sent = std::tuple<trivial_capture_t<Callable>>;
  static sent send(const trivial_capture_t<Callable>& callable, token_encoder&) { return sent(callable); }
  static trivial_capture_t<Callable> restore(sent& wire, token_decoder&) { return std::get<0>(wire); }
};

template <serializable_callable Callable>
struct callable_wire<Callable> {
  using sent = std::tuple<Callable>;
  static sent send(const Callable& callable, token_encoder&) { return sent(callable); }
  static Callable restore(sent& wire, token_decoder&) { return std::move(std::get<0>(wire)); }
};

/// A callable taken apart into the innermost callable and the bound values; references into the original.
template <class Callable>
struct callable_parts {
  using innermost = Callable;
  using bound = std::tuple<>;
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): see above
  static const Callable& callable_of(const Callable& callable) { return callable; }
  static std::tuple<> bound_of(const Callable&) { return {}; }
};

template <class Callable, class... Bound>
struct callable_parts<bind_front_t<Callable, Bound...>> {
  using innermost = Callable;
  using bound = std::tuple<Bound...>;
  static const Callable& callable_of(const bind_front_t<Callable, Bound...>& whole) { return whole.callable; }
  static const std::tuple<Bound...>& bound_of(const bind_front_t<Callable, Bound...>& whole) { return whole.bound; }
};

/// What a callable carries, in bytes, as max_value_bytes counts it.
template <class Callable>
inline constexpr std::size_t carried_bytes =
    std::is_empty_v<Callable> || std::is_pointer_v<Callable> || std::is_member_pointer_v<Callable> ? 0
                                                                                                   : sizeof(Callable);
template <class Callable, class... Bound>
inline constexpr std::size_t carried_bytes<bind_front_t<Callable, Bound...>> =
    carried_bytes<Callable> + (sizeof(Bound) + ... + 0);

template <class Tuple>
struct each_of;
template <class... Ts>
struct each_of<std::tuple<Ts...>> {
  static constexpr bool fits = ((sizeof(Ts) <= max_value_bytes) && ...);
  static consteval void require_transportable() { (detail::require_transportable<Ts>(), ...); }
  static consteval void require_fitting() { (detail::require_fitting<Ts>(), ...); }
};

/// Also of values that are not sent: of bound values, arguments, and what the callable captures.
template <class F, class... Args>
consteval void require_fitting_call() {
  using bound = each_of<typename callable_parts<F>::bound>;
  using arguments = each_of<std::tuple<Args...>>;
  bound::require_fitting();
  arguments::require_fitting();
  if constexpr (bound::fits && arguments::fits) {
    require_fitting_together<F, carried_bytes<F> + (sizeof(Args) + ... + 0)>();
  }
}

/// Of bound values, and of arguments.
template <class F, class... Args>
consteval void require_transportable_call() {
  each_of<typename callable_parts<F>::bound>::require_transportable();
  (require_transportable<Args>(), ...);
  require_fitting_call<F, Args...>();
}

}  // namespace detail

}  // namespace muster
