// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a call comes by values that it owns, also where they cannot be copied.

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/base/detail/range_concepts.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/detail/standard_form.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster::detail {

/// Whether values of a type can be copied. Containers say so whatever their elements are; those of the standard library
/// and their like are asked for that, also as parts of pairs, tuples and the like.
template <class T>
inline constexpr bool copies = std::copy_constructible<T>;
template <class T>
  requires std::copy_constructible<T> && std::ranges::range<T> && requires { typename T::allocator_type; } &&
               (!std::is_same_v<std::ranges::range_value_t<T>, T>)
inline constexpr bool copies<T> = copies<std::ranges::range_value_t<T>>;
template <class A, class B>
inline constexpr bool copies<std::pair<A, B>> = copies<A> && copies<B>;
template <class... Ts>
inline constexpr bool copies<std::tuple<Ts...>> = (copies<Ts> && ...);
template <class... Ts>
consteval bool all_copy(type_list<Ts...> /*types*/) {
  return (copies<Ts> && ...);
}
template <class T>
  requires(standard_form_of<T> == standard_form::variant)
inline constexpr bool copies<T> = all_copy(template_arguments<T>());
template <class T>
inline constexpr bool copies<std::optional<T>> = copies<T>;
template <class T, std::size_t Size>
inline constexpr bool copies<std::array<T, Size>> = copies<T>;

template <class T, class Given>
[[nodiscard]] decltype(auto) to_own(Given&& given);

// In a function of its own, so that the compiler's message leads with the sentence and the type.
template <class T>
consteval void require_copy_or_code() {
  static_assert(
      sendable_value<T>,
      "muster: a value of this type cannot be copied for a task: give it away, as an rvalue (std::move(x); of "
      "a range, std::move(xs)), or give its class a cereal serialize() function");
}

/// A copy of a value that cannot be copied: what a worker process would get of it.
template <class T>
[[nodiscard]] T copy_by_code(const T& value) {
  require_copy_or_code<T>();
  struct alignas(frame_alignment) unit {
    std::array<std::byte, frame_alignment> bytes;
  };
  const auto size = codec<T>::size(value);
  std::vector<unit> room(size / sizeof(unit) + 1);
  const auto bytes = std::as_writable_bytes(std::span(room)).first(size);
  codec<T>::encode(bytes, value);
  return codec<T>::decode_value(bytes);
}
/// … where it comes from an element of a map, whose first part is constant.
template <class T, class A, class B>
  requires(!std::is_same_v<T, std::pair<A, B>>)
[[nodiscard]] T copy_by_code(const std::pair<A, B>& value) {
  return T(to_own<typename T::first_type>(value.first), to_own<typename T::second_type>(value.second));
}

/// What a `T` is made of that a task owns: what is given, or a copy by code, where it is lent and cannot be copied.
/// Throws errc::invalid_argument for a C string that is null.
template <class T, class Given>
[[nodiscard]] decltype(auto) to_own(Given&& given) {
  require_text("an element", unnumbered, given);
  constexpr bool is_given_away = !std::is_lvalue_reference_v<Given> && !std::is_const_v<Given>;
  if constexpr (std::is_constructible_v<T, Given> && (is_given_away || copies<T>)) {
    return std::forward<Given>(given);
  } else {
    return copy_by_code<T>(given);
  }
}

}  // namespace muster::detail
