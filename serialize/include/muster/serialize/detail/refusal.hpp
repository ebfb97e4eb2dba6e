// SPDX-License-Identifier: BSL-1.0
#pragma once

// Why a type cannot be sent, and the sentence that says what to do instead.
//
// Thread safety: types only.

#include <span>  // and the concepts of iterators and views, without the rest of <ranges>
#include <type_traits>

#include <muster/serialize/detail/spelling.hpp>
#include <muster/serialize/holds_pointers.hpp>

namespace muster::detail {

enum class refusal {
  none,               ///< it can be sent
  pointer,            ///< a pointer, reference, view or iterator
  declared_pointers,  ///< holds_pointers
  closure,            ///< a lambda
  standard,           ///< a class of the standard library that stands for something in this process
  abstract_class,
  hidden_members,  ///< trivially copyable; the compiler cannot see whether it holds pointers
  no_functions,    ///< neither plain nor known to cereal
  stateful,        ///< a comparator or hash has state, which cereal does not send
  deleter,         ///< of a std::unique_ptr
  owner_of_class,  ///< a pointer that cereal would send, if it had been told the class
  inherited,       ///< the function that would be called is that of a base, which leaves members out
  constant,        ///< nothing can be decoded into it
  no_default,      ///< it is decoded into a value that is constructed first
  immovable
};

/// A refusal and the type that is refused, which may be a part of the one that was asked about.
template <class T, refusal Why>
struct verdict {
  using type = T;
  static constexpr refusal why = Why;
};
using accepted = verdict<void, refusal::none>;

/// The first of them that refuses.
template <class... Verdicts>
struct first_refusal {
  using type = accepted;
};
template <class First, class... Others>
struct first_refusal<First, Others...> {
  using type = typename std::conditional_t<First::why == refusal::none, first_refusal<Others...>,
                                           std::type_identity<First>>::type;
};

/// Why cereal has no function for it that could be used.
template <class T>
consteval refusal refusal_of_unknown() {
  if constexpr (holds_pointers<T>) {
    return refusal::declared_pointers;
  } else if constexpr (is_closure<T>) {
    return refusal::closure;
  } else if constexpr (std::is_class_v<T> && (std::input_or_output_iterator<T> || std::ranges::view<T>)) {
    return refusal::pointer;
  } else if constexpr (is_standard_class<T>) {
    return refusal::standard;
  } else if constexpr (std::is_abstract_v<T>) {
    return refusal::abstract_class;
  } else if constexpr (std::is_trivially_copyable_v<T>) {
    return refusal::hidden_members;
  } else {
    return refusal::no_functions;
  }
}

/// In a function of its own, so that the compiler's message leads with the sentence, and then names the type.
template <class T, refusal Why>
consteval void require_accepted() {
  static_assert(Why != refusal::pointer,
                "muster: a pointer, view, iterator or reference means nothing in another process: send the value "
                "itself (std::string instead of std::string_view, std::vector instead of std::span, std::unique_ptr "
                "or std::shared_ptr instead of a pointer)");
  static_assert(Why != refusal::declared_pointers,
                "muster: this class is declared to hold pointers (muster::holds_pointers), which mean nothing in "
                "another process: give it a cereal serialize() function that sends what they point to");
  static_assert(Why != refusal::closure,
                "muster: a lambda cannot be an argument, result or element: its captures may be references. Send the "
                "values that it captures, and call a function with them on the other side");
  static_assert(Why != refusal::standard,
                "muster: this class of the standard library stands for something in this process and cannot be sent: "
                "send the values that it was made of, and make it again on the other side");
  static_assert(Why != refusal::abstract_class,
                "muster: an object of an abstract class cannot be sent by value: send a std::unique_ptr or "
                "std::shared_ptr to it, and register its derived classes with CEREAL_REGISTER_TYPE");
  static_assert(Why != refusal::hidden_members,
                "muster: the compiler cannot see that this class is plain bytes, since it has a member that is not, a "
                "private member, a constructor, or is a union: give it a cereal serialize() function; or, where its "
                "bytes mean the same in another process, write "
                "template <> inline constexpr bool muster::is_plain_bytes<type> = true;");
  static_assert(Why != refusal::no_functions,
                "muster: this type cannot be sent to another process: give it a cereal serialize() function and a "
                "default constructor, or make it a trivially copyable struct");
  static_assert(Why != refusal::stateful,
                "muster: the comparator or hash of this container has state, a function pointer or a std::function, "
                "which is not sent with its elements: use a class without members, or send a std::vector");
  static_assert(Why != refusal::deleter,
                "muster: the deleter of a std::unique_ptr is not sent with it: use std::default_delete, or send the "
                "value itself");
  static_assert(
      Why != refusal::owner_of_class,
      "muster: a std::unique_ptr or std::shared_ptr to a class with virtual functions, or with "
      "load_and_construct(), is sent by cereal's functions: #include <cereal/types/polymorphic.hpp>, and give "
      "the class a serialize() function");
  static_assert(Why != refusal::inherited,
                "muster: this class would be sent by the serialize function of its base, without its own members: "
                "give it a serialize() of its own, which may begin with archive(cereal::base_class<base>(this))");
  static_assert(Why != refusal::constant,
                "muster: nothing can be received into a constant: drop the const (of a map's elements: "
                "std::pair<key, value> instead of value_type)");
  static_assert(Why != refusal::no_default,
                "muster: a value of this type is constructed before it is received into: give it a default "
                "constructor, or hold it in a std::vector if it is plain bytes");
  static_assert(Why != refusal::immovable,
                "muster: a value of this type cannot be moved to where it is received: send what it holds, or a "
                "std::unique_ptr to it");
}

}  // namespace muster::detail
