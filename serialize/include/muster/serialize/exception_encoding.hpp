// SPDX-License-Identifier: BSL-1.0
#pragma once

// How the state of an exception is encoded and restored.
//
// Thread safety: static functions only; safe.

#include <cstddef>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/restored_exception.hpp>
#include <muster/serialize/error_info.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster {

namespace detail {

template <class T>
concept archived_exception = cereal::traits::is_output_serializable<T, output_archive>::value &&
                             cereal::traits::is_input_serializable<T, input_archive>::value;

template <class T>
concept constructed_from_text = standard_derived<T> && std::is_constructible_v<T, const std::string&>;

template <class T, class Base>
concept derives_from = std::is_convertible_v<T*, Base*>;

/// As muster::error and std::filesystem::filesystem_error, in this order.
template <class T>
concept constructed_from_code_and_text =
    derives_from<T, std::system_error> && std::is_constructible_v<T, std::error_code, const std::string&>;
template <class T>
concept constructed_from_text_and_code =
    derives_from<T, std::system_error> && std::is_constructible_v<T, const std::string&, std::error_code>;

template <class T>
concept constructed_from_standard_state = std::is_default_constructible_v<T> || constructed_from_text<T> ||
                                          constructed_from_code_and_text<T> || constructed_from_text_and_code<T>;

/// what(), which T may hide.
inline const char* what_of(const std::exception& exception) noexcept { return text_or_none(exception.what()); }

/// The size of the largest standard class that T is derived from.
template <class T>
consteval std::size_t standard_base_bytes() {
  if constexpr (derives_from<T, error>) return sizeof(error);
  if constexpr (derives_from<T, std::filesystem::filesystem_error>) return sizeof(std::filesystem::filesystem_error);
  if constexpr (derives_from<T, std::system_error>) return sizeof(std::system_error);
  if constexpr (derives_from<T, std::runtime_error>) return sizeof(std::runtime_error);
  if constexpr (derives_from<T, std::logic_error>) return sizeof(std::logic_error);
  return standard_derived<T> ? sizeof(std::exception) : 1;
}

/// Whether T has no members besides those of its standard base and the text of its constructor.
template <class T>
consteval bool has_only_text() {
  constexpr bool may_hold_text = constructed_from_text<T> && standard_base_bytes<T>() == sizeof(std::exception);
  return sizeof(T) == standard_base_bytes<T>() ||
         (may_hold_text && sizeof(T) == sizeof(std::exception) + sizeof(std::string));
}

// In a function of its own, so that the compiler's message leads with the sentence and the type.
template <class T>
consteval bool require_exception() {
  static_assert(std::is_class_v<T>, "muster: only classes can be registered as exceptions");
  static_assert(archived_exception<T> || has_only_text<T>(),
                "muster: a registered exception has members that would be lost: give it a cereal serialize() function "
                "that sends them (an empty one, if they need not be sent)");
  static_assert(constructed_from_standard_state<T>,
                "muster: a registered exception needs a default constructor, or a constructor from std::string that "
                "takes what(), or those of std::system_error");
  require_fitting<T>();
  return true;
}

/// Restores the state that the standard base of an exception had in the worker. Does nothing without a standard base.
/// Throws errc::not_serializable, or an exception of a decoder, when the state cannot be decoded.
void restore_standard_base(std::exception& exception, const error_info& info);
/// Returns the text from which a constructor makes an exception whose what() is `wanted`. `made`: the what() of an
/// exception that it has made from `wanted`; the constructor may put something before or behind its text.
[[nodiscard]] std::string without_additions(const std::string& wanted, const std::string& made);

}  // namespace detail

/// Encodes and restores exceptions of type T: by its serialize(), or from its text. Specialise it for a type of another
/// library that has neither, before the type is registered:
///
///     template <>
///     struct muster::exception_encoding<other::failure> {
///       static void save(muster::output_archive& out, const other::failure& thrown) { out(thrown.number()); }
///       static other::failure load(muster::input_archive& in, const muster::error_info& info) {
///         int number = 0;
///         in(number);
///         return other::failure(number, info.message());
///       }
///     };
///     MUSTER_REGISTER_EXCEPTION(other::failure)
///
/// The state of T's standard base (text, code, paths) is restored after load().
template <class T>
struct exception_encoding {
  static_assert(detail::require_exception<T>());

  /// Writes what T's serialize() sends; nothing for a T without one.
  static void save(output_archive& out, const T& exception) {
    if constexpr (detail::archived_exception<T>) out(exception);
  }

  /// `info`: of the original; its message is the text.
  [[nodiscard]] static T load(input_archive& in, const error_info& info) {
    T exception = construct(info.message());
    if constexpr (detail::archived_exception<T>) {
      // Before, because load() of T may read it.
      if constexpr (detail::standard_derived<T>) detail::restore_standard_base(exception, info);
      in(exception);
    }
    return exception;
  }

private:
  static T construct(const std::string& what) {
    constexpr bool from_nothing =
        std::is_default_constructible_v<T> && (detail::archived_exception<T> || !detail::constructed_from_text<T>);
    if constexpr (from_nothing) {
      return T{};
    } else if constexpr (detail::constructed_from_text<T>) {
      T first(what);
      const std::string made = detail::what_of(first);
      if (made == what) return first;
      return T(detail::without_additions(what, made));
    } else if constexpr (detail::constructed_from_code_and_text<T>) {
      return T(std::error_code(), what);
    } else if constexpr (detail::constructed_from_text_and_code<T>) {
      return T(what, std::error_code());
    } else {
      __builtin_unreachable();  // such a type does not compile
    }
  }
};

}  // namespace muster
