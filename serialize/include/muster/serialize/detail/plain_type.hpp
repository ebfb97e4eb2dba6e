// SPDX-License-Identifier: BSL-1.0
#pragma once

// Types that are nothing but their bytes, and mean the same in another process.
//
// Thread safety: types only.

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <cereal/cereal.hpp>

#include <muster/serialize/detail/frame_stream.hpp>
#include <muster/serialize/detail/plain_members.hpp>
#include <muster/serialize/detail/standard_form.hpp>
#include <muster/serialize/holds_pointers.hpp>
#include <muster/serialize/plain_bytes.hpp>

namespace muster {

class output_archive;

namespace detail {

/// Not muster's: asked whether a class has serialize functions, it does not find those of muster's archives.
struct other_archive : cereal::detail::OutputArchiveBase {};

template <class T>
concept elsewhere_serializable = cereal::traits::is_output_serializable<T, other_archive>::value;

template <class T>
concept has_serialize_members = cereal::traits::has_member_serialize<T, output_archive>::value ||
                                cereal::traits::has_member_save<T, output_archive>::value ||
                                cereal::traits::has_member_save_minimal<T, output_archive>::value;

/// Engines and distributions of <random>, whose members are private.
template <class T>
concept plain_random = is_standard_class<T> && requires { typename T::result_type; } &&
                       (requires { T::default_seed; } || requires { typename T::param_type; });

/// Days, months and the like, whose members are private; but no time in a zone, which has a pointer to it.
template <class T>
concept plain_calendar = is_standard_class<T> && spelling_of<T>().starts_with("std::chrono::") &&
                         !requires(const T& time) { time.get_time_zone(); };

/// Whether its bytes mean the same in another process, as far as the compiler sees or has been told.
template <class T>
consteval bool has_plain_bytes() {
  if constexpr (is_plain_bytes<T> || std::is_empty_v<T> || plain_random<T> || plain_calendar<T>) {
    return true;
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    return has_plain_members<T>();
  } else {
    return false;
  }
}

/// Whether all parts are trivially copyable, and plain also as members.
template <class... Ts>
consteval bool has_plain_parts(type_list<Ts...> /*parts*/) {
  return ((std::is_trivially_copyable_v<Ts> && is_plain_type<Ts>()) && ...);
}

/// Defined where plain types are.
template <class T>
consteval bool is_plain_element();

/// Classes of the standard library that are sent as their bytes if their parts may be.
template <class T>
consteval bool is_plain_standard_class() {
  constexpr auto form = standard_form_of<T>;
  if constexpr (form == standard_form::bits) return true;
  if constexpr (form == standard_form::array && std::is_class_v<T>) {
    return is_plain_element<typename T::value_type>() && !std::is_same_v<typename T::value_type, bool>;
  }
  if constexpr (form == standard_form::complex) return is_plain_element<typename T::value_type>();
  if constexpr (form == standard_form::duration || form == standard_form::time_point) {
    return std::is_arithmetic_v<typename T::rep>;
  }
  return false;
}

/// Classes that are nothing but their bytes, and that have no serialize function.
template <class T>
concept plain_class =
    (std::is_class_v<T> || std::is_union_v<T>) && std::is_trivially_copyable_v<T> && std::move_constructible<T> &&
    !refers_elsewhere<T> && !holds_pointers<T> && standard_form_of<T> == standard_form::none &&
    !has_serialize_members<T> && !elsewhere_serializable<T> && has_plain_bytes<T>();

__extension__ using widest_signed = __int128;
__extension__ using widest_unsigned = unsigned __int128;

/// Also where the standard does not count those of 128 bits, with -std=c++20.
template <class T>
concept plain_number = std::is_arithmetic_v<T> || std::same_as<std::remove_cv_t<T>, widest_signed> ||
                       std::same_as<std::remove_cv_t<T>, widest_unsigned>;

/// Types that are nothing but their bytes. A class with serialize functions of its own is not: they may know better.
template <class T>
concept plain_type = plain_number<T> || std::is_enum_v<T> || plain_class<T> || is_plain_standard_class<T>();

template <class T>
consteval bool is_plain_element() {
  return plain_type<T>;
}

/// Also members whose bytes mean the same in another process, though by themselves they are sent part by part.
template <class T>
consteval bool is_plain_type() {
  using type = std::remove_cv_t<T>;
  constexpr auto form = standard_form_of<type>;
  if constexpr (plain_type<T>) {
    return true;
  } else if constexpr (form == standard_form::optional || form == standard_form::variant) {
    return has_plain_parts(template_arguments<type>());
  } else {
    return false;
  }
}

/// Elements whose contiguous ranges are one copy.
template <class T>
concept bulk_element = plain_type<T> && !std::is_same_v<T, bool> && alignof(T) <= frame_alignment;

}  // namespace detail

}  // namespace muster
