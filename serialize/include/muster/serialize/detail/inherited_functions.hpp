// SPDX-License-Identifier: BSL-1.0
#pragma once

// What cereal's functions would leave out in silence: the members of a class that is sent by the functions of its base,
// and the state of comparators and hashes.
//
// Thread safety: types only.

#include <array>
#include <concepts>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <valarray>
#include <variant>
#include <vector>

#include <cereal/cereal.hpp>

namespace muster::detail {

// ---- classes that are derived from a class of the standard library, whose functions take them

template <class T, std::size_t N>
std::array<T, N> standard_base(const std::array<T, N>*);
#define MUSTER_DETAIL_STANDARD(name) \
  template <class... Parts>          \
  std::name<Parts...> standard_base(const std::name<Parts...>*);
MUSTER_DETAIL_STANDARD(basic_string)
MUSTER_DETAIL_STANDARD(vector)
MUSTER_DETAIL_STANDARD(deque)
MUSTER_DETAIL_STANDARD(list)
MUSTER_DETAIL_STANDARD(forward_list)
MUSTER_DETAIL_STANDARD(valarray)
MUSTER_DETAIL_STANDARD(map)
MUSTER_DETAIL_STANDARD(multimap)
MUSTER_DETAIL_STANDARD(unordered_map)
MUSTER_DETAIL_STANDARD(unordered_multimap)
MUSTER_DETAIL_STANDARD(set)
MUSTER_DETAIL_STANDARD(multiset)
MUSTER_DETAIL_STANDARD(unordered_set)
MUSTER_DETAIL_STANDARD(unordered_multiset)
MUSTER_DETAIL_STANDARD(queue)
MUSTER_DETAIL_STANDARD(stack)
MUSTER_DETAIL_STANDARD(priority_queue)
MUSTER_DETAIL_STANDARD(tuple)
MUSTER_DETAIL_STANDARD(pair)
MUSTER_DETAIL_STANDARD(optional)
MUSTER_DETAIL_STANDARD(variant)
MUSTER_DETAIL_STANDARD(unique_ptr)
MUSTER_DETAIL_STANDARD(shared_ptr)
#undef MUSTER_DETAIL_STANDARD
void standard_base(const void*);

/// T itself, if it is a container, tuple, pointer or the like of the standard library; a base of it that is; or void.
template <class T>
using standard_base_of = decltype(standard_base(static_cast<const T*>(nullptr)));

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

template <class Class, class Function>
Class class_of_member(Function Class::*);

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
  if constexpr (!std::is_class_v<T>) {  // NOLINT(bugprone-branch-clone): asked in this order
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
  if constexpr (requires { typename T::key_equal; }) found = found || has_state<typename T::key_equal>;
  return found;
}
template <class T>
inline constexpr bool is_queue_ordered_by_state = false;
template <class T, class Container, class Less>
inline constexpr bool is_queue_ordered_by_state<std::priority_queue<T, Container, Less>> = has_state<Less>;

/// Containers that are sent by cereal's functions, and order or find their elements by something that has state.
template <class T>
inline constexpr bool has_state_beside_elements = is_queue_ordered_by_state<T> || orders_by_state<T>();

}  // namespace muster::detail
