// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which classes are copied as their bytes.
//
// Thread safety: types only.

#include <compare>

#include <muster/base/device.hpp>

namespace muster {

/// Declares that the bytes of a trivially copyable class mean the same in another process, so that values of it are
/// sent as their bytes. The compiler finds that out by itself for a struct whose members are all public, at most 64,
/// and numbers, enums, arrays and structs of these. It cannot see the members of a class with private members or
/// constructors, nor which member of a union is in use: such a class needs this declaration, or a serialize function.
///
///     class money { public: explicit money(int cents); private: int cents_; };
///     template <>
///     inline constexpr bool muster::is_plain_bytes<money> = true;
///
/// Requires: specialised before the class is first sent; the class holds no pointer, reference or view, and nothing
/// else that is valid in one process only.
template <class T>
inline constexpr bool is_plain_bytes = false;

/// @cond
// Classes of muster and of the standard library whose members are private.

template <>
inline constexpr bool is_plain_bytes<device> = true;

template <>
inline constexpr bool is_plain_bytes<std::strong_ordering> = true;
template <>
inline constexpr bool is_plain_bytes<std::weak_ordering> = true;
template <>
inline constexpr bool is_plain_bytes<std::partial_ordering> = true;
/// @endcond
}  // namespace muster
