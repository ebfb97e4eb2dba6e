// SPDX-License-Identifier: BSL-1.0
#pragma once

// Throwing an exception of another process as it was there: with its text, its origin and its inner exception.

#include <concepts>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/detail/thrown_object.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// Whether a T is caught as std::exception.
template <class T>
concept standard_derived = std::is_convertible_v<T*, std::exception*>;

/// The class whose what() a call of what() reaches, as far as the type of &T::what says.
template <class Class>
struct what_owner {
  using type = void;
};
template <class Class>
struct what_owner<const char* (Class::*)() const noexcept> {
  using type = Class;
};

template <class T, class... Classes>
inline constexpr bool is_among = (std::is_same_v<T, Classes> || ...);

/// Whether T has what() from a standard class. Another class's what() may be final, which nothing but an error of the
/// compiler tells.
template <class T>
consteval bool has_standard_what() {
  if constexpr (standard_derived<T> && requires { &T::what; }) {
    return is_among<typename what_owner<decltype(&T::what)>::type, std::exception, std::logic_error, std::runtime_error,
                    std::filesystem::filesystem_error, std::bad_exception, std::bad_alloc, std::bad_cast,
                    std::bad_typeid, error>;
  } else {
    return false;
  }
}

template <class T>
struct derived_probe : T {
  using T::T;
};

/// Whether a class derived from T can be constructed from a T. A virtual base may have no default constructor.
template <class T>
consteval bool is_derivable() {
  if constexpr (!std::is_class_v<T> || std::is_final_v<T>) {
    return false;
  } else {
    return (!std::is_default_constructible_v<T> || std::is_default_constructible_v<derived_probe<T>>) &&
           (!std::is_constructible_v<T, const std::string&> ||
            std::is_constructible_v<derived_probe<T>, const std::string&>);
  }
}

/// Returns whether a class derived from `type` would construct some base anew.
[[nodiscard]] bool has_virtual_base(const std::type_info& type) noexcept;

/// `T` with another text.
template <class T>
class with_what : public T {
public:
  with_what(T&& original, std::string what) : T(std::move(original)), what_(std::move(what)) {}

  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

private:
  std::string what_;
};

/// `T` around the exception that is being handled, as std::throw_with_nested throws it.
template <class T>
class with_inner final : public T, public std::nested_exception {
public:
  explicit with_inner(T&& original) : T(std::move(original)) {}
};

/// Lets `to` have the exception that is being handled, or none, as its inner one.
void set_inner(std::nested_exception& to, bool has_inner) noexcept;

/// Throws `exception`. Requires: called in the handler of the inner exception, if `info` has one.
template <class T>
[[noreturn]] void throw_with_inner(T&& exception, const error_info& info) {
  const bool has_inner = !info.nested().empty();
  if constexpr (std::is_convertible_v<T*, std::nested_exception*>) {
    set_inner(exception, has_inner);
  } else if constexpr (is_derivable<T>()) {
    if (has_inner) throw_with_origin(with_inner<T>(std::forward<T>(exception)), info);
  }
  throw_with_origin(std::forward<T>(exception), info);
}

/// Throws `exception`, with the original's what() where its own differs. Requires: as throw_with_inner; what() is not
/// final.
template <class T>
[[noreturn]] void throw_with_text(T&& exception, const error_info& info) {
  if (info.message() != text_or_none(exception.what())) {
    throw_with_inner(with_what<T>(std::forward<T>(exception), info.message()), info);
  }
  throw_with_inner(std::forward<T>(exception), info);
}

/// Throws `exception`, with the original's what() as far as what() is a standard one. Requires: as throw_with_inner.
template <class T>
[[noreturn]] void throw_restored(T&& exception, const error_info& info) {
  if constexpr (has_standard_what<T>() && is_derivable<T>()) {
    if (!has_virtual_base(typeid(T))) throw_with_text(std::forward<T>(exception), info);
  }
  throw_with_inner(std::forward<T>(exception), info);
}

}  // namespace muster::detail
