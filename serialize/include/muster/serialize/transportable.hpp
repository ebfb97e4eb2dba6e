// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which types can go to another process and back.
//
// Thread safety: types only.

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/null_arguments.hpp>
#include <muster/serialize/max_value_bytes.hpp>

namespace muster {

/// Types that are sent as their bytes: trivially copyable, without serialize functions of their own, and without
/// anything in them that points into this process (is_plain_bytes).
template <class T>
concept trivially_transportable = detail::plain_type<T>;

namespace detail {

/// A verdict on T, and on the parts that it has as a container, tuple or owning pointer: cereal says yes to every
/// vector, and looks at its elements only when it is too late for a readable message.
template <class T>
consteval auto judge();

template <class T>
using verdict_on = decltype(judge<T>());

inline constexpr auto is_sent = []<class T>() { return writable<T> && readable<T>; };

}  // namespace detail

/// Types that can be taken apart and put together again.
template <class T>
concept archivable = std::is_object_v<T> && std::default_initializable<T> && detail::is_sent.template operator()<T>() &&
                     detail::verdict_on<T>::why == detail::refusal::none;

namespace detail {

/// Types that can be sent, whatever their size, as parts of others.
template <class T>
concept sendable_value = std::is_object_v<T> && verdict_on<T>::why == refusal::none;

/// Whether it is no larger than what can cross by itself, nor has elements that are and would be decoded on the stack.
template <class T>
consteval bool fits();

}  // namespace detail

/// Types that can be arguments and results of tasks. Their size is limited: max_value_bytes.hpp says what is counted.
template <class T>
concept transportable = detail::sendable_value<T> && detail::fits<T>();

namespace detail {

/// Of a part that is constructed before it is decoded into.
template <class T>
consteval auto judge_made_first() {
  using found = verdict_on<T>;
  if constexpr (found::why == refusal::none && !std::default_initializable<T>) {
    return verdict<T, refusal::no_default>();
  } else {
    return found();
  }
}
template <class... Ts>
using all_made_first = typename first_refusal<decltype(judge_made_first<Ts>())...>::type;

/// The parts that decide whether a type can be sent, and whether they fit.
template <class T, standard_form Form = standard_form_of<T>>
struct parts_of {
  using verdict = accepted;
  static consteval bool all_fit() { return true; }
};

template <class T>
struct element_parts {
  using verdict = all_made_first<T>;
  static consteval bool all_fit() { return parts_of<T>::all_fit(); }
};
template <class T>
struct parts_of<T, standard_form::sequence> : element_parts<typename T::value_type> {};
template <class T>
struct parts_of<T, standard_form::valarray> : element_parts<typename T::value_type> {};
template <class T>
struct parts_of<T, standard_form::optional> : element_parts<typename T::value_type> {};
template <class T>
struct parts_of<T, standard_form::array> : element_parts<std::remove_extent_t<T>> {};
template <class T>
  requires std::is_class_v<T>
struct parts_of<T, standard_form::array> : element_parts<typename T::value_type> {};
template <class T>
struct parts_of<T, standard_form::vector> : element_parts<typename T::value_type> {
  using element = typename T::value_type;
  using verdict = typename std::conditional_t<bulk_element<element>, parts_of<void>, element_parts<element>>::verdict;
};

template <class Container, class... Parts>
struct keyed_parts {
  using verdict = all_made_first<Parts...>;
  static consteval bool all_fit() { return has_fitting_elements<Container>() && (parts_of<Parts>::all_fit() && ...); }
};
template <class T>
struct parts_of<T, standard_form::keyed> : keyed_parts<T, typename T::key_type> {};
template <class T>
  requires requires { typename T::mapped_type; }
struct parts_of<T, standard_form::keyed> : keyed_parts<T, typename T::key_type, typename T::mapped_type> {};

template <class List>
struct listed_parts;
template <class... Ts>
struct listed_parts<type_list<Ts...>> {
  using verdict = typename first_refusal<verdict_on<Ts>...>::type;
  using verdict_made_first = all_made_first<Ts...>;
  static consteval bool all_fit() { return (parts_of<Ts>::all_fit() && ...); }
};
template <class T>
struct parts_of<T, standard_form::tuple> : listed_parts<template_arguments<T>> {};
template <class T>
struct parts_of<T, standard_form::variant> : listed_parts<template_arguments<T>> {
  using verdict = typename listed_parts<template_arguments<T>>::verdict_made_first;
};
template <class T>
struct parts_of<T, standard_form::adaptor> : parts_of<typename T::container_type> {};

/// What an owning pointer points to needs no default constructor (cereal's load_and_construct), and of a polymorphic
/// class the real type is known only when it is sent.
template <class T>
consteval auto judge_pointee() {
  if constexpr (!std::is_object_v<T> || std::is_unbounded_array_v<T>) {
    return verdict<T, refusal::standard>();
  } else if constexpr (std::is_polymorphic_v<T>) {
    return accepted();
  } else if constexpr (constexpr auto why = refusal_of_part<T>(is_sent); why != refusal::none) {
    return verdict<T, why>();
  } else if constexpr (!std::default_initializable<T> &&
                       !cereal::traits::has_load_and_construct<T, input_archive>::value) {
    return verdict<T, refusal::no_default>();
  } else {
    return typename parts_of<T>::verdict();
  }
}
template <class T>
struct pointee_of {
  using verdict = decltype(judge_pointee<T>());
  static consteval bool all_fit() { return parts_of<T>::all_fit(); }
};
template <class T>
  requires has_own_deleter<T>
struct parts_of<T, standard_form::none> {
  using verdict = detail::verdict<typename T::deleter_type, refusal::deleter>;
  static consteval bool all_fit() { return true; }
};
template <class T>
struct parts_of<T, standard_form::unique_owner> : pointee_of<std::remove_cv_t<typename T::element_type>> {};
template <class T>
struct parts_of<T, standard_form::shared_owner> : pointee_of<std::remove_cv_t<typename T::element_type>> {};
template <class T>
struct parts_of<T, standard_form::shared_observer> : pointee_of<std::remove_cv_t<typename T::element_type>> {};

template <class T>
consteval auto judge() {
  if constexpr (std::is_reference_v<T>) {
    return verdict<T, refusal::pointer>();
  } else if constexpr (std::is_const_v<T>) {
    return verdict<T, refusal::constant>();
  } else if constexpr (constexpr auto why = refusal_of_part<T>(is_sent); why != refusal::none) {
    return verdict<T, why>();
  } else if constexpr (plain_type<T>) {  // NOLINT(bugprone-branch-clone): asked in this order
    return accepted();
  } else if constexpr (parts_of<T>::verdict::why != refusal::none) {
    return typename parts_of<T>::verdict();
  } else if constexpr (!std::default_initializable<T>) {
    return verdict<T, refusal::no_default>();
  } else if constexpr (!std::move_constructible<T>) {
    return verdict<T, refusal::immovable>();
  } else {
    return accepted();
  }
}

template <class T>
consteval bool fits() {
  return sizeof(T) <= max_value_bytes && parts_of<T>::all_fit();
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
using sent_as = std::conditional_t<detail::is_c_string<Argument>, std::string,
                                   typename detail::without_constant_parts<std::decay_t<Argument>>::type>;

namespace detail {

template <class T>
consteval void require_transportable() {
  using found = verdict_on<T>;
  require_accepted<typename found::type, found::why>();
  require_fitting<T>();
}

}  // namespace detail

}  // namespace muster
