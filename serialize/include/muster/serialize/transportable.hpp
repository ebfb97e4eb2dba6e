// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which types can go to another process and back.
//
// Thread safety: types only.

#include <concepts>
#include <memory>
#include <optional>
#include <queue>
#include <ranges>
#include <stack>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/max_value_bytes.hpp>

namespace muster {

/// Types that are sent as their bytes: trivially copyable, without serialize functions of their own, and not known to
/// point elsewhere. The compiler knows pointers, references and views, also as parts of the standard library's types;
/// a class of yours that holds them is sent as its bytes and means nothing when it arrives: say so (holds_pointers).
template <class T>
concept trivially_transportable = detail::plain_type<T>;

namespace detail {

/// Whether the parts of a container, tuple or owning pointer can be sent. cereal says yes to every vector, and looks at
/// its elements only when it is too late for a readable message.
template <class T>
consteval bool parts_are_transportable();

}  // namespace detail

/// Types that cereal can take apart and put together again.
template <class T>
concept archivable =
    std::is_object_v<T> && !detail::refers_elsewhere<T> && std::default_initializable<T> &&
    cereal::traits::is_output_serializable<T, output_archive>::value &&
    cereal::traits::is_input_serializable<T, input_archive>::value && detail::parts_are_transportable<T>();

namespace detail {

/// Types that can be sent, whatever their size, as parts of others.
template <class T>
concept sendable_value = trivially_transportable<T> || archivable<T>;

/// Whether it is no larger than what can cross by itself, nor has elements that are and would be decoded on the stack.
template <class T>
consteval bool fits();

}  // namespace detail

/// Types that can be arguments and results of tasks. Their size is limited: max_value_bytes.hpp says what is counted.
template <class T>
concept transportable = detail::sendable_value<T> && detail::fits<T>();

namespace detail {

/// Whether it is a pointer, view or reference, or has one in it as a container, tuple or owning pointer has parts.
template <class T>
consteval bool leads_elsewhere();

template <class T>
struct parts_of {
  static consteval bool transportable_all() { return true; }
  static consteval bool lead_elsewhere() { return false; }
  static consteval bool all_fit() { return true; }
};
template <std::ranges::range T>
  requires(!std::is_same_v<std::ranges::range_value_t<T>, T>)
struct parts_of<T> {
  using part = std::remove_cv_t<std::ranges::range_value_t<T>>;
  static consteval bool transportable_all() { return sendable_value<part>; }
  static consteval bool lead_elsewhere() { return leads_elsewhere<part>(); }
  static consteval bool all_fit() { return has_fitting_elements<T>() && parts_of<part>::all_fit(); }
};
template <class... Ts>
struct parts_of<std::tuple<Ts...>> {
  static consteval bool transportable_all() { return (sendable_value<std::remove_cv_t<Ts>> && ...); }
  static consteval bool lead_elsewhere() { return (leads_elsewhere<std::remove_cv_t<Ts>>() || ...); }
  static consteval bool all_fit() { return (parts_of<std::remove_cv_t<Ts>>::all_fit() && ...); }
};
template <class A, class B>
struct parts_of<std::pair<A, B>> : parts_of<std::tuple<A, B>> {};
template <class... Ts>
struct parts_of<std::variant<Ts...>> : parts_of<std::tuple<Ts...>> {};
template <class T>
struct parts_of<std::optional<T>> : parts_of<std::tuple<T>> {};
template <class T, class Container>
struct parts_of<std::queue<T, Container>> : parts_of<Container> {};
template <class T, class Container>
struct parts_of<std::stack<T, Container>> : parts_of<Container> {};
template <class T, class Container, class Less>
struct parts_of<std::priority_queue<T, Container, Less>> : parts_of<Container> {};

/// What an owning pointer points to needs no default constructor (cereal's load_and_construct), and of a polymorphic
/// class the real type is known only when it is sent.
template <class T>
struct pointee_of {
  static consteval bool lead_elsewhere() { return leads_elsewhere<T>(); }
  static consteval bool all_fit() { return parts_of<T>::all_fit(); }
  static consteval bool transportable_all() {
    if constexpr (!std::is_object_v<T> || std::is_unbounded_array_v<T> || refers_elsewhere<T>) {
      return false;
    } else if constexpr (std::is_polymorphic_v<T>) {
      return true;
    } else {
      return cereal::traits::is_output_serializable<T, output_archive>::value &&
             cereal::traits::is_input_serializable<T, input_archive>::value && parts_are_transportable<T>();
    }
  }
};
template <class T, class Deleter>
struct parts_of<std::unique_ptr<T, Deleter>> : pointee_of<std::remove_cv_t<T>> {};
template <class T>
struct parts_of<std::shared_ptr<T>> : pointee_of<std::remove_cv_t<T>> {};
template <class T>
struct parts_of<std::weak_ptr<T>> : pointee_of<std::remove_cv_t<T>> {};

template <class T>
consteval bool parts_are_transportable() {
  return parts_of<T>::transportable_all();
}

template <class T>
consteval bool fits() {
  return sizeof(T) <= max_value_bytes && parts_of<T>::all_fit();
}

template <class T>
consteval bool leads_elsewhere() {
  if constexpr (refers_elsewhere<T>) {
    return true;
  } else {
    return parts_of<T>::lead_elsewhere();
  }
}

}  // namespace detail

namespace detail {

/// The elements of a map are pairs with a constant first part, which nobody could decode into.
template <class T>
struct without_constant_parts {
  using type = T;
};
template <class A, class B>
struct without_constant_parts<std::pair<A, B>> {
  using type = std::pair<std::remove_const_t<A>, std::remove_const_t<B>>;
};

}  // namespace detail

/// What an argument of type `Argument` is sent as: itself without reference and const; text for a C string.
template <class Argument>
using sent_as =
    std::conditional_t<std::is_convertible_v<Argument, const char*> && std::is_pointer_v<std::decay_t<Argument>>,
                       std::string, typename detail::without_constant_parts<std::decay_t<Argument>>::type>;

namespace detail {

// In a function of its own, so that the compiler's message leads with the sentence and the type.
template <class T>
consteval void require_transportable() {
  static_assert(sendable_value<T> || !leads_elsewhere<T>(),
                "muster: a pointer, view or reference means nothing in another process: send the value itself "
                "(std::string instead of std::string_view, std::vector instead of std::span)");
  static_assert(
      !holds_pointers<T> || sendable_value<T>,
      "muster: this class is declared to hold pointers (muster::holds_pointers), which mean nothing in another "
      "process: give it a cereal serialize() function that sends what they point to");
  static_assert(leads_elsewhere<T>() || holds_pointers<T> || sendable_value<T>,
                "muster: this type cannot be sent to another process: give it a cereal serialize() function and a "
                "default constructor, or make it trivially copyable");
  require_fitting<T>();
}

}  // namespace detail

}  // namespace muster
