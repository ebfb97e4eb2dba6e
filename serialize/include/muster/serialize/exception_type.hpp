// SPDX-License-Identifier: BSL-1.0
#pragma once

// Exceptions that cross from worker to parent as themselves. Those of the standard library do; others are registered:
//
//     struct parse_error : std::runtime_error { … template <class A> void serialize(A& a) { a(line); } };
//     MUSTER_REGISTER_EXCEPTION(parse_error)   // at namespace scope, in a header or source
//
// The caller catches a parse_error with the same line and the same what(). The state of the standard base travels by
// itself: the text of a std::runtime_error or std::logic_error, the code of a std::system_error, the paths of a
// filesystem_error. A class with a what() of its own must send by serialize() all members that what() reads. The text
// that what() returned in the worker is in remote_info() in any case.
//
// A registered type is one of these:
//
//  * It has a cereal serialize(), and a default constructor, one from std::string, which is called with what(), or
//    those of std::system_error.
//  * It has no members besides those of its standard base, and one of these constructors. A class that is derived from
//    std::exception itself, and constructed from std::string, may hold that one string.
//  * It is of another library, and exception_encoding is specialised for it.
//
// An exception of a type that is not registered is caught by its nearest base that is registered or standard, with the
// text of the original. remote_info() has the name of its type. The whole table: docs/design/exceptions.md.
//
// The registration is the one piece of static state in muster: an exception's type is all that a catch block knows,
// so something must lead from the type to its functions. It is filled before main(), or while a library is loaded.
// Types are told apart as the compiler does, not by name: two types of one name in unnamed namespaces are two.
//
// Thread safety: safe.

#include <atomic>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>

#include <muster/base/text.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/object_token.hpp>
#include <muster/serialize/detail/restored_exception.hpp>
#include <muster/serialize/error_info.hpp>
#include <muster/serialize/exception_encoding.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster {

/// How exceptions of one type are encoded and thrown again.
class exception_type {
public:
  /// `type`: that of the exceptions. Nothing finds this object before enrol().
  explicit exception_type(const std::type_info& type) noexcept : type_(type) {}
  exception_type(const exception_type&) = delete;
  exception_type& operator=(const exception_type&) = delete;

  /// Returns the type of the exceptions.
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
  ///@{
  [[nodiscard]] static const exception_type* find(const std::type_info& type) noexcept;
  [[nodiscard]] static const exception_type* find(object_token token) noexcept;
  ///@}

protected:
  ~exception_type();
  /// Enters this object into the table that find() looks at.
  void enrol() noexcept;  // before main(), or while a library is loaded

private:
  class registry;

  [[nodiscard]] static registry& registered() noexcept;

  const std::type_info& type_;
  mutable std::atomic<object_token> token_ = object_token::none;  // found out once
  mutable const exception_type* next_ = nullptr;                  // guarded by table_mutex
};

namespace detail {

template <class T>
class registered_exception final : public exception_type {
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
    output_archive counter;
    exception_encoding<T>::save(counter, *found);
    std::string state(counter.written(), '\0');
    output_archive out(std::as_writable_bytes(std::span(state)));
    exception_encoding<T>::save(out, *found);
    return state;
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
  static T restore(const error_info& info) {
    input_archive in(std::as_bytes(std::span(info.exception()->state)));
    T exception = exception_encoding<T>::load(in, info);
    if constexpr (standard_derived<T>) restore_standard_base(exception, info);
    return exception;
  }
};

}  // namespace detail

}  // namespace muster

/// Lets exceptions of type `...` cross processes as themselves. Use at namespace scope, once or in a header.
/// The type needs a cereal serialize() where it has members, and a default constructor, one from std::string, or those
/// of std::system_error.
#define MUSTER_REGISTER_EXCEPTION(...)                                                                             \
  namespace {                                                                                                      \
  [[maybe_unused]] const ::muster::detail::registered_exception<__VA_ARGS__> MUSTER_DETAIL_JOIN(muster_exception_, \
                                                                                                __COUNTER__);      \
  }
