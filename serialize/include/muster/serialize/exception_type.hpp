// SPDX-License-Identifier: BSL-1.0
#pragma once

// Exceptions that cross from worker to parent as themselves. Those of the standard library do; others are registered:
//
//     struct parse_error : std::runtime_error { … template <class A> void serialize(A& a) { a(line); } };
//     MUSTER_REGISTER_EXCEPTION(parse_error)   // at namespace scope, in a header or source
//
// What arrives is a parse_error with the same line, and with what its standard base holds: the text of a
// std::runtime_error or std::logic_error, the code of a std::system_error, the paths of a filesystem_error. So what()
// says what it said in the worker. A class that has a what() of its own sends by serialize() what that needs; where it
// does not, remote_info() has the worker's text all the same.
//
// A type is one of these:
//
//  * It has a cereal serialize(), and a default constructor or one from std::string, which is called with what().
//  * It has no members besides those of its standard base, and one of these constructors. A class that is derived from
//    std::exception itself, and constructed from std::string, may hold that one string.
//
// An exception of a type that is not registered is caught by its nearest base that is registered or standard, with the
// text of the original. remote_info() has the name of its type.
//
// The registration is the one piece of static state in muster: an exception's type is all that a catch block knows,
// so something must lead from the type to its functions. It is filled before main(), or while a library is loaded.
// Types are told apart as the compiler does, not by name: two types of one name in unnamed namespaces are two.
//
// Thread safety: safe.

#include <atomic>
#include <concepts>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/restored_exception.hpp>
#include <muster/serialize/exceptions.hpp>
#include <muster/serialize/object_token.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster {

/// How exceptions of one type are encoded and thrown again.
class exception_type {
public:
  explicit exception_type(const std::type_info& type) noexcept : type_(type) {}
  exception_type(const exception_type&) = delete;
  exception_type& operator=(const exception_type&) = delete;

  [[nodiscard]] const std::type_info& type() const noexcept { return type_; }
  /// As written in the source.
  [[nodiscard]] std::string name() const;
  /// Names the type in other processes.
  [[nodiscard]] object_token token() const noexcept;

  /// Returns the state of the exception as bytes, or nothing where it is not caught as this type. Throws what
  /// serialize() throws.
  [[nodiscard]] virtual std::optional<std::string> save(const std::exception_ptr& exception) const = 0;
  /// Throws the exception that `info` was made of; a remote_exception where it cannot be restored.
  /// Requires: called in the handler of the inner exception, if there is one.
  [[noreturn]] virtual void raise(const error_info& info) const = 0;

  /// Returns the registration of exactly that type, or nullptr.
  /// Lifetime: until the library that has registered it is unloaded.
  [[nodiscard]] static const exception_type* find(const std::type_info& type) noexcept;
  [[nodiscard]] static const exception_type* find(object_token token) noexcept;

protected:
  ~exception_type();
  void enrol() noexcept;  // before main(), or while a library is loaded

private:
  class registry;

  [[nodiscard]] static registry& registered() noexcept;

  const std::type_info& type_;
  mutable std::atomic<object_token> token_ = object_token::none;  // found out once
  mutable const exception_type* next_ = nullptr;                  // guarded by the registry's lock
};

namespace detail {

template <class T>
concept archived_exception = cereal::traits::is_output_serializable<T, output_archive>::value &&
                             cereal::traits::is_input_serializable<T, input_archive>::value;

template <class T>
concept constructed_from_text = standard_derived<T> && std::is_constructible_v<T, const std::string&>;

template <class T, class Base>
concept derives_from = std::is_convertible_v<T*, Base*>;

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

/// Whether T has no more members than what its standard base and the text of its constructor restore.
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
  static_assert(std::is_default_constructible_v<T> || constructed_from_text<T>,
                "muster: a registered exception needs a default constructor, or a constructor from std::string that "
                "takes what()");
  static_assert(!archived_exception<T> || parts_are_transportable<T>(),
                "muster: a registered exception has parts that cannot be sent to another process");
  require_fitting<T>();
  return true;
}

/// Gives an exception what its standard base held in the worker. Does nothing for one that has none.
void restore_standard_base(std::exception& exception, const error_info& info);
/// Returns what to construct an exception from, so that its what() is `wanted`, when `made` came of constructing it
/// from that: a constructor may put something before or behind its text.
[[nodiscard]] std::string without_additions(const std::string& wanted, const std::string& made);

template <class T>
class registered_exception final : public exception_type {
  static_assert(require_exception<T>());

public:
  registered_exception() noexcept : exception_type(typeid(T)) { enrol(); }
  ~registered_exception() = default;

  [[nodiscard]] std::optional<std::string> save(const std::exception_ptr& exception) const override {
    const T* found = nullptr;
    try {
      std::rethrow_exception(exception);
    } catch (const T& caught) {
      found = &caught;  // `exception` holds it
    } catch (...) {     // NOLINT(bugprone-empty-catch): of another type, or a T twice
    }
    if (found == nullptr) return std::nullopt;
    return encode(*found);
  }

  [[noreturn]] void raise(const error_info& info) const override {
    std::optional<T> restored;
    std::string reason;
    try {
      restored.emplace(restore(info));
    } catch (const std::exception& failure) {
      reason = text_or_none(failure.what());
    } catch (...) {
      reason = "an exception that is not derived from std::exception";
    }
    if (!restored) raise_unrestored(info, reason);
    throw_restored(std::move(*restored), info);
  }

private:
  static std::string encode(const T& exception) {
    if constexpr (archived_exception<T>) {
      output_archive counter;
      counter(exception);
      std::string state(counter.written(), '\0');
      output_archive out(std::as_writable_bytes(std::span(state)));
      out(exception);
      return state;
    } else {
      return {};
    }
  }

  static T restore(const error_info& info) {
    T exception = construct(info.message());
    restore_base(exception, info);
    if constexpr (archived_exception<T>) {
      input_archive in(std::as_bytes(std::span(info.exception()->state)));
      in(exception);
      if (!has_text(exception, info)) restore_base(exception, info);  // its load() has made the base anew
    }
    return exception;
  }

  static T construct(const std::string& what) {
    if constexpr (std::is_default_constructible_v<T> && (archived_exception<T> || !constructed_from_text<T>)) {
      return T{};
    } else {
      T first(what);
      const std::string made = text_or_none(first.what());
      if (made == what) return first;
      return T(without_additions(what, made));
    }
  }

  static void restore_base(T& exception, const error_info& info) {
    if constexpr (standard_derived<T>) restore_standard_base(exception, info);
  }

  static bool has_text(const T& exception, const error_info& info) {
    if constexpr (standard_derived<T>) {
      return info.message() == text_or_none(exception.what());
    } else {
      return true;
    }
  }
};

}  // namespace detail

}  // namespace muster

/// Lets exceptions of type `...` cross processes as themselves. Use at namespace scope, once or in a header.
/// The type needs a cereal serialize() where it has members, and a default constructor or one from std::string.
#define MUSTER_REGISTER_EXCEPTION(...)                                                                             \
  namespace {                                                                                                      \
  [[maybe_unused]] const ::muster::detail::registered_exception<__VA_ARGS__> MUSTER_DETAIL_JOIN(muster_exception_, \
                                                                                                __COUNTER__);      \
  }
