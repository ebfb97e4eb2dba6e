// SPDX-License-Identifier: BSL-1.0
#pragma once

// Exceptions that cross from worker to parent as themselves. Those of the standard library do; others are registered:
//
//     struct parse_error : std::runtime_error { … template <class A> void serialize(A& a) { a(line); } };
//     MUSTER_REGISTER_EXCEPTION(parse_error)   // at namespace scope, in a header or source
//
// The registration is the one piece of static state in muster: an exception's type is all that a catch block knows,
// so something must lead from the type to its functions. It is filled before main() and only read afterwards.
//
// Thread safety: safe.

#include <exception>
#include <string>
#include <type_traits>
#include <typeinfo>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/exceptions.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster {

/// How exceptions of one type are encoded and thrown again.
class exception_type {
public:
  explicit exception_type(const std::type_info& type) noexcept : type_(&type) {}
  exception_type(const exception_type&) = delete;
  exception_type& operator=(const exception_type&) = delete;

  [[nodiscard]] std::string name() const;

  /// The exception's state as bytes. Requires: `exception` points to one of exactly this type, or derived from it.
  [[nodiscard]] virtual std::string save(const std::exception_ptr& exception) const = 0;
  /// Throws it again, with `info` attached.
  [[noreturn]] virtual void raise(const error_info& info, const std::string& state) const = 0;

  /// The registered type of that name, or nullptr.
  [[nodiscard]] static const exception_type* find(const std::string& name);

protected:
  ~exception_type() = default;
  void enrol() noexcept;  // before main(), or while a library is loaded

private:
  const std::type_info* type_;
  const exception_type* next_ = nullptr;
};

namespace detail {

/// `T` with its origin.
template <class T>
class with_origin final : public T, public remote_details {
public:
  with_origin(T original, error_info info) : T(std::move(original)), remote_details(std::move(info)) {}
};

template <class T>
[[noreturn]] void throw_with_origin(T exception, const error_info& info) {
  if constexpr (std::is_class_v<T> && !std::is_final_v<T>) {
    throw with_origin<T>(std::move(exception), info);
  } else {
    throw exception;  // NOLINT(misc-throw-by-value-catch-by-reference): it is a value
  }
}

template <class T>
class registered_exception final : public exception_type {
  static_assert(std::is_class_v<T>, "muster: only classes can be registered as exceptions");
  static_assert(archivable<T> || std::is_constructible_v<T, const std::string&>,
                "muster: a registered exception needs a cereal serialize() and a default constructor, or a constructor "
                "from std::string that takes what()");

  static_assert((require_fitting<T>(), true));

public:
  registered_exception() noexcept : exception_type(typeid(T)) { enrol(); }

  [[nodiscard]] std::string save(const std::exception_ptr& exception) const override {
    try {
      std::rethrow_exception(exception);
    } catch (const T& caught) {
      if constexpr (archivable<T>) {
        return encode(caught);
      } else {
        return {};
      }
    }
  }

  [[noreturn]] void raise(const error_info& info, const std::string& state) const override {
    if constexpr (archivable<T>) {
      throw_with_origin(decode(state), info);
    } else {
      throw_with_origin(T(info.message()), info);
    }
  }

private:
  static std::string encode(const T& exception) {
    output_archive counter;
    counter(exception);
    std::string state(counter.written(), '\0');
    output_archive out(std::as_writable_bytes(std::span(state)));
    out(exception);
    return state;
  }

  static T decode(const std::string& state) {
    input_archive in(std::as_bytes(std::span(state)));
    T exception{};
    in(exception);
    return exception;
  }
};

}  // namespace detail

}  // namespace muster

#define MUSTER_DETAIL_JOIN_2(a, b) a##b
#define MUSTER_DETAIL_JOIN(a, b) MUSTER_DETAIL_JOIN_2(a, b)

/// Lets exceptions of type `...` cross processes as themselves. Use at namespace scope, once or in a header.
/// The type needs a cereal serialize() and a default constructor, or a constructor from std::string.
#define MUSTER_REGISTER_EXCEPTION(...)                                                                             \
  namespace {                                                                                                      \
  [[maybe_unused]] const ::muster::detail::registered_exception<__VA_ARGS__> MUSTER_DETAIL_JOIN(muster_exception_, \
                                                                                                __COUNTER__);      \
  }
