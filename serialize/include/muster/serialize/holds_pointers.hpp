// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which types mean nothing in another process, since they point into this one.
//
// Thread safety: types only.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include <muster/base/requirements.hpp>

namespace muster {

/// Declares that a class holds pointers which the compiler cannot see, because they are numbers. Such a class would be
/// sent as its bytes, and its receiver would read an address of another process. With this declaration the compiler
/// refuses to send it, alone or as a part of others, unless it has a serialize function. Members that are pointers are
/// found without it (is_plain_bytes).
///
///     struct node { int key; std::uintptr_t next; };
///     template <>
///     inline constexpr bool muster::holds_pointers<node> = true;
///
/// Requires: specialised before the class is first sent.
template <class T>
inline constexpr bool holds_pointers = false;

namespace detail {

template <class T>
inline constexpr bool refers_elsewhere =
    std::is_reference_v<T> || std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>;
template <class Char, class Traits>
inline constexpr bool refers_elsewhere<std::basic_string_view<Char, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool refers_elsewhere<std::span<T, N>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::initializer_list<T>> = true;

}  // namespace detail

}  // namespace muster
