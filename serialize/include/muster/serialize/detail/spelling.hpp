// SPDX-License-Identifier: BSL-1.0
#pragma once

// How the compiler spells a type, for sentences that no trait could choose.
//
// Thread safety: pure functions; safe.

#include <string_view>

#include <muster/base/requirements.hpp>

namespace muster::detail {

template <class T>
consteval const char* function_spelled_with() {
  return __PRETTY_FUNCTION__;
}

/// As GCC and Clang print it; never used to tell types apart.
template <class T>
consteval std::string_view spelling_of() {
  const std::string_view whole = function_spelled_with<T>();
  return whole.substr(whole.find("T = ") + 4);
}

/// Classes of the standard library: there is no use in advising anybody to change them.
template <class T>
inline constexpr bool is_standard_class = spelling_of<T>().starts_with("std::");

template <class T>
inline constexpr bool is_closure = spelling_of<T>().find("lambda") != std::string_view::npos;

}  // namespace muster::detail
