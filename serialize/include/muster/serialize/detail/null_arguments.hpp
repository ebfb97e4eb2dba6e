// SPDX-License-Identifier: BSL-1.0
#pragma once

// What is null and must not be: C strings, which are sent as std::string, and functions to call.
//
// Thread safety: safe.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// Whether an argument is sent as the text that it points to.
template <class Argument>
inline constexpr bool is_c_string =
    std::is_convertible_v<Argument, const char*> && std::is_pointer_v<std::decay_t<Argument>>;

/// For require_text(): where it is not known which one of several it is.
inline constexpr std::size_t unnumbered = SIZE_MAX;

/// Throws errc::invalid_argument; `role` and `number` say which one is null.
[[noreturn]] void refuse_null_text(const char* role, std::size_t number);
[[noreturn]] void refuse_null_callable();

/// Throws errc::invalid_argument for a C string that is null; `role` says what it was to be.
template <class Argument>
void require_text(const char* role, std::size_t number, const Argument& argument) {
  if constexpr (is_c_string<Argument>) {
    const char* const text = argument;
    if (text == nullptr) refuse_null_text(role, number);
  }
}

/// The same of several, which are counted from 1.
template <class... Arguments>
void require_texts(const char* role, const Arguments&... arguments) {
  if constexpr ((is_c_string<Arguments> || ...)) {
    std::size_t number = 0;
    (require_text(role, ++number, arguments), ...);
  }
}

/// Throws errc::invalid_argument for a null pointer to a function or member.
template <class Callable>
void require_callable(const Callable& callable) {
  if constexpr (std::is_pointer_v<Callable> || std::is_member_pointer_v<Callable>) {
    if (callable == nullptr) refuse_null_callable();
  }
}

}  // namespace muster::detail
