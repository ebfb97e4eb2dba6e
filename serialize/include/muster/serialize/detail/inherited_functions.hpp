// SPDX-License-Identifier: BSL-1.0
#pragma once

// What cereal's functions would leave out in silence: the members of a class that is sent by the functions of its base,
// and the state of comparators and hashes.
//
// Thread safety: types only.

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cereal/cereal.hpp>

#include <muster/serialize/detail/standard_form.hpp>

namespace muster::detail {

template <class Class, class Function>
Class class_of_member(Function Class::*);

// ---- classes that are derived from a class of the standard library, as which they are sent

template <class T, std::size_t N>
std::array<T, N> standard_base(const std::array<T, N>*);
#define MUSTER_DETAIL_STANDARD(name) \
  template <class... Parts>          \
  std::name<Parts...> standard_base(const std::name<Parts...>*);
MUSTER_DETAIL_STANDARD(basic_string)
MUSTER_DETAIL_STANDARD(vector)
MUSTER_DETAIL_STANDARD(tuple)
MUSTER_DETAIL_STANDARD(pair)
MUSTER_DETAIL_STANDARD(optional)
MUSTER_DETAIL_STANDARD(unique_ptr)
MUSTER_DETAIL_STANDARD(shared_ptr)
#undef MUSTER_DETAIL_STANDARD
void standard_base(const void*);

/// The class that has the members by which a form is found: of classes whose header is not included here.
template <class T>
consteval auto class_of_form() {
  if constexpr (requires { class_of_member(&T::max_size); }) {  // containers
    return std::type_identity<decltype(class_of_member(&T::max_size))>();
  } else if constexpr (requires { class_of_member(&T::size); }) {  // adaptors
    return std::type_identity<decltype(class_of_member(&T::size))>();
  } else if constexpr (requires { class_of_member(&T::valueless_by_exception); }) {
    return std::type_identity<decltype(class_of_member(&T::valueless_by_exception))>();
  } else {
    return std::type_identity<void>();
  }
}

template <class T>
consteval auto base_with_form() {
  using named = decltype(standard_base(static_cast<const T*>(nullptr)));
  if constexpr (!std::is_void_v<named>) {
    return std::type_identity<named>();
  } else {
    using found = typename decltype(class_of_form<T>())::type;
    return std::type_identity<std::conditional_t<
        standard_form_of<found> != standard_form::none && std::is_base_of_v<found, T>, found, void>>();
  }
}

/// T itself, if it is a container, tuple, pointer or the like of the standard library; a base of it that is; or void.
template <class T>
using standard_base_of = typename decltype(base_with_form<T>())::type;

/// Converts to T, and is no class that is derived from what T is derived from: no function of a base takes it.
template <class T>
struct only_as {
  only_as(const only_as&);    // so that it is not taken as plain bytes itself
  operator const T&() const;  // NOLINT(google-explicit-constructor): the conversion is what is asked for
  operator T&();              // NOLINT(google-explicit-constructor)
};

/// A function outside the class that takes T, and not only its base.
template <class T, class Output>
concept has_functions_beside = requires(Output& out, only_as<T> value) {
  CEREAL_SAVE_FUNCTION_NAME(out, std::as_const(value));
} || requires(Output& out, only_as<T> value) { CEREAL_SERIALIZE_FUNCTION_NAME(out, value); };

// ---- members that are inherited

template <class T, class Archive>
consteval auto class_of_serialize() {
  if constexpr (requires { class_of_member(&T::template CEREAL_SERIALIZE_FUNCTION_NAME<Archive>); }) {
    return std::type_identity<decltype(class_of_member(&T::template CEREAL_SERIALIZE_FUNCTION_NAME<Archive>))>();
  } else if constexpr (requires { class_of_member(&T::template CEREAL_SAVE_FUNCTION_NAME<Archive>); }) {
    return std::type_identity<decltype(class_of_member(&T::template CEREAL_SAVE_FUNCTION_NAME<Archive>))>();
  } else {
    return std::type_identity<T>();
  }
}

/// A base that is told the class, and so can serialise its members.
template <class Base, class T>
inline constexpr bool is_told_the_class = false;
template <template <class...> class Base, class... Parts, class T>
inline constexpr bool is_told_the_class<Base<Parts...>, T> = (std::same_as<Parts, T> || ...);

template <class Base, class T>
consteval bool leaves_members_out() {
  if constexpr (std::is_void_v<Base> || std::same_as<Base, T>) {
    return false;
  } else {
    return sizeof(Base) < sizeof(T) && !is_told_the_class<Base, T>;
  }
}

/// Whether T would be sent by a function of its base, and is larger.
template <class T, class Output>
consteval bool is_cut() {
  if constexpr (!std::is_class_v<T> ||
                standard_form_of<T> != standard_form::none) {  // NOLINT(bugprone-branch-clone): asked in this order
    return false;
  } else if constexpr (cereal::traits::has_member_serialize<T, Output>::value ||
                       cereal::traits::has_member_save<T, Output>::value) {
    return leaves_members_out<typename decltype(class_of_serialize<T, Output>())::type, T>();
  } else if constexpr (leaves_members_out<standard_base_of<T>, T>()) {
    return !has_functions_beside<T, Output>;
  } else {
    return false;
  }
}

// ---- state beside elements

template <class Ordering>
inline constexpr bool has_state = !std::is_empty_v<Ordering>;

template <class T>
consteval bool orders_by_state() {
  bool found = false;
  if constexpr (requires { typename T::key_compare; }) found = found || has_state<typename T::key_compare>;
  if constexpr (requires { typename T::hasher; }) found = found || has_state<typename T::hasher>;
  if constexpr (standard_form_of<T> == standard_form::adaptor && requires { typename T::value_compare; }) {
    found = found || has_state<typename T::value_compare>;
  }
  if constexpr (requires { typename T::key_equal; }) found = found || has_state<typename T::key_equal>;
  return found;
}

/// Containers that order or find their elements by something that has state, which is not sent.
template <class T>
inline constexpr bool has_state_beside_elements = orders_by_state<T>();

}  // namespace muster::detail
