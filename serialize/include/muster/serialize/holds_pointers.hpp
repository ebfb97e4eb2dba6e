// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which types mean nothing in another process, since they point into this one.
//
// Thread safety: types only.

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>

namespace muster {

/// Whether a class that could be copied as its bytes holds pointers. Nobody can see that from outside, so such a class
/// would be sent, and what it points to would not: its reader reads an address of another process. Say it where the
/// class is written, and the compiler refuses to send it, alone or as a part of others, unless it has a serialize
/// function:
///
///     struct node { int key; node* next; };
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

}  // namespace detail

}  // namespace muster
