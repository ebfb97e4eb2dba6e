// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which types can go to another process and back.
//
// Thread safety: types only.

#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <muster/serialize/archive.hpp>

namespace muster {

namespace detail {

template <class T>
inline constexpr bool refers_elsewhere = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>;
template <class Char, class Traits>
inline constexpr bool refers_elsewhere<std::basic_string_view<Char, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool refers_elsewhere<std::span<T, N>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::reference_wrapper<T>> = true;

}  // namespace detail

/// Types that are sent as their bytes: trivially copyable, and not known to point elsewhere.
template <class T>
concept trivially_transportable =
    std::is_object_v<T> && std::is_trivially_copyable_v<T> && std::move_constructible<T> && !detail::refers_elsewhere<T> && !std::is_array_v<T>;

/// Types that cereal can take apart and put together again.
template <class T>
concept archivable = std::is_object_v<T> && !detail::refers_elsewhere<T> && std::default_initializable<T> &&
                     cereal::traits::is_output_serializable<T, output_archive>::value &&
                     cereal::traits::is_input_serializable<T, input_archive>::value;

/// Types that can be arguments and results of tasks.
template <class T>
concept transportable = trivially_transportable<T> || archivable<T>;

/// What an argument of type `Argument` is sent as: itself without reference and const; text for a C string.
template <class Argument>
using sent_as = std::conditional_t<std::is_convertible_v<Argument, const char*> && std::is_pointer_v<std::decay_t<Argument>>,
                                   std::string, std::decay_t<Argument>>;

namespace detail {

// In a function of its own, so that the compiler's message leads with the sentence and the type.
template <class T>
consteval void require_transportable() {
  static_assert(!refers_elsewhere<T>,
                "muster: a pointer, view or reference means nothing in another process: send the value itself "
                "(std::string instead of std::string_view, std::vector instead of std::span)");
  static_assert(refers_elsewhere<T> || transportable<T>,
                "muster: this type cannot be sent to another process: give it a cereal serialize() function and a "
                "default constructor, or make it trivially copyable");
}

}  // namespace detail

}  // namespace muster
