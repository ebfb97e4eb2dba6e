// SPDX-License-Identifier: BSL-1.0
#pragma once

// The forms that values of the standard library have, found by what a class offers and not by its name: a name would
// need its header, and a program that sends a map of paths has included <map> and <filesystem> itself.
//
// Thread safety: types only.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/serialize/detail/spelling.hpp>

namespace muster::detail {

enum class standard_form : std::uint8_t {
  none,            ///< no class of the standard library, or one that cannot be taken apart
  array,           ///< std::array, or one of C
  tuple,           ///< or a pair
  optional,        ///< a value, or none
  variant,         ///< one of several
  text,            ///< a string
  vector,          ///< its elements lie in a row
  sequence,        ///< deque, list, forward_list, std::vector<bool>
  valarray,        ///< a row that is resized at once
  keyed,           ///< maps and sets
  adaptor,         ///< queue, stack, priority_queue
  bits,            ///< std::bitset
  complex,         ///< two numbers
  duration,        ///< a count
  time_point,      ///< a duration
  atomic,          ///< a value
  path,            ///< text
  unique_owner,    ///< std::unique_ptr with std::default_delete
  shared_owner,    ///< std::shared_ptr
  shared_observer  ///< std::weak_ptr
};

// ---- what a class offers

template <class T>
concept has_allocator = requires { typename T::allocator_type; };
template <class T>
concept keyed_form = has_allocator<T> && requires { typename T::key_type; } &&
                     (requires { typename T::key_compare; } || requires { typename T::hasher; });
template <class T>
concept sequence_form = has_allocator<T> && requires(T& values, std::size_t count) {
  typename T::value_type;
  values.resize(count);
  values.begin();
};
template <class T>
concept adaptor_form = requires(T& values) {
  typename T::container_type;
  values.pop();
};
template <class T>
concept variant_form = requires(const T& value) {
  value.valueless_by_exception();
  value.index();
};
template <class T>
concept duration_form = requires(const T& value) {
  typename T::rep;
  typename T::period;
  value.count();
};
template <class T>
concept time_point_form = requires(const T& value) {
  typename T::clock;
  typename T::duration;
  value.time_since_epoch();
};
template <class T>
concept complex_form = requires(const T& value) {
  typename T::value_type;
  value.real();
  value.imag();
};
template <class T>
concept bits_form = requires(const T& value) { value.to_ulong(); };
template <class T>
concept valarray_form = requires(const T& value) {
  typename T::value_type;
  value.cshift(1);
};
template <class T>
concept atomic_form = !std::copy_constructible<T> && requires(T& value) {
  typename T::value_type;
  value.is_lock_free();
  value.store(value.load());
};
template <class T>
concept path_form = requires(const T& value) {
  typename T::string_type;
  value.native();
  value.lexically_normal();
};

template <class T>
concept single_object = std::is_object_v<T> && !std::is_array_v<T>;

template <class T>
consteval standard_form form_by_offer() {
  using enum standard_form;
  if constexpr (keyed_form<T>) return keyed;
  if constexpr (sequence_form<T>) return sequence;
  if constexpr (adaptor_form<T>) return adaptor;
  if constexpr (variant_form<T>) return variant;
  if constexpr (duration_form<T>) return duration;
  if constexpr (time_point_form<T>) return time_point;
  if constexpr (complex_form<T>) return complex;
  if constexpr (bits_form<T>) return bits;
  if constexpr (valarray_form<T>) return valarray;
  if constexpr (atomic_form<T>) return atomic;
  if constexpr (path_form<T>) return path;
  return none;
}

/// The form of T, which is neither a reference nor constant. Derived classes have none.
template <class T>
inline constexpr standard_form standard_form_of = [] {
  if constexpr (std::is_class_v<T> && is_standard_class<T>) return form_by_offer<T>();
  return standard_form::none;
}();
template <class T, std::size_t N>
inline constexpr standard_form standard_form_of<T[N]> = standard_form::array;
template <class T, std::size_t N>
inline constexpr standard_form standard_form_of<std::array<T, N>> = standard_form::array;
template <class... Ts>
inline constexpr standard_form standard_form_of<std::tuple<Ts...>> = standard_form::tuple;
template <class A, class B>
inline constexpr standard_form standard_form_of<std::pair<A, B>> = standard_form::tuple;
template <class T>
inline constexpr standard_form standard_form_of<std::optional<T>> = standard_form::optional;
template <class Char, class Traits, class Allocator>
inline constexpr standard_form standard_form_of<std::basic_string<Char, Traits, Allocator>> = standard_form::text;
template <class T, class Allocator>
inline constexpr standard_form standard_form_of<std::vector<T, Allocator>> = standard_form::vector;
template <class Allocator>
inline constexpr standard_form standard_form_of<std::vector<bool, Allocator>> = standard_form::sequence;
template <single_object T>
inline constexpr standard_form standard_form_of<std::unique_ptr<T>> = standard_form::unique_owner;
template <single_object T>
inline constexpr standard_form standard_form_of<std::shared_ptr<T>> = standard_form::shared_owner;
template <single_object T>
inline constexpr standard_form standard_form_of<std::weak_ptr<T>> = standard_form::shared_observer;

template <class T>
inline constexpr bool has_own_deleter = false;
template <class T, class Deleter>
inline constexpr bool has_own_deleter<std::unique_ptr<T, Deleter>> = true;
template <class T>
inline constexpr bool has_own_deleter<std::unique_ptr<T>> = false;

template <class T>
concept owning_pointer = standard_form_of<T> >= standard_form::unique_owner;

/// What a class template was given.
template <class... Ts>
struct type_list {};
template <template <class...> class Template, class... Ts>
type_list<Ts...> arguments_of(const Template<Ts...>&);
template <class T>
using template_arguments = decltype(arguments_of(std::declval<const T&>()));

}  // namespace muster::detail
