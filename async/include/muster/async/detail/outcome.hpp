// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>  // std::monostate

#include <muster/serialize/detail/value_or.hpp>
#include <muster/serialize/result.hpp>

namespace muster::detail {

/// Why there is no value: a failed task, or an exception of a callback.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class failure {
public:
  failure() noexcept = default;
  explicit failure(std::exception_ptr thrown) noexcept : thrown_(std::move(thrown)) {}
  /// Of what muster threw, which is no exception of the program's: the error has its code.
  [[nodiscard]] static failure of_library(std::exception_ptr thrown) noexcept;
  /// Where there is no memory for it, the exception that says so.
  explicit failure(error_info error) noexcept;

  [[nodiscard]] error_info error() const noexcept;
  /// What raise() would throw.
  [[nodiscard]] std::exception_ptr exception() const noexcept;
  [[noreturn]] void raise() const;

private:
  [[nodiscard]] error_info captured() const noexcept;

  // Errors are long and rare: values stay short for them.
  std::shared_ptr<const error_info> error_;
  std::exception_ptr thrown_;
  errc code_ = errc::remote_exception;
};

/// How something ended in this process: a value, a failed task, or an exception of a callback. Moving it does not
/// throw, so an end is never lost on its way: a value whose own moves may throw is moved by of_value() and get() alone.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: unsafe. Cost: a value whose moves may throw, and a
/// large one, is allocated, so that large values stay off the stacks that an end goes through.
template <class R>
class outcome {
  static consteval bool is_allocated() {
    if constexpr (std::is_void_v<R>) {
      return false;
    } else {
      constexpr std::size_t large = 1024;
      return sizeof(R) > large || !std::is_nothrow_move_constructible_v<R>;
    }
  }
  static constexpr bool is_boxed = is_allocated();
  using plain = std::conditional_t<std::is_void_v<R>, std::monostate, R>;
  using stored = std::conditional_t<is_boxed, std::unique_ptr<plain>, plain>;

public:
  template <class... Value>
  static outcome of_value(Value&&... value) {
    if constexpr (is_boxed) {
      return outcome(std::in_place, std::make_unique<R>(std::forward<Value>(value)...));
    } else {
      return outcome(std::in_place, std::forward<Value>(value)...);
    }
  }
  /// What `make` gives, made where it stays if it is allocated. Throws what that throws.
  template <class Make>
  static outcome of_made(Make&& make) {
    if constexpr (is_boxed) {
      return outcome(std::in_place, std::unique_ptr<R>(new R(std::forward<Make>(make)())));
    } else {
      return outcome(std::in_place_type<stored>, std::forward<Make>(make));
    }
  }
  static outcome of_failure(failure why) noexcept { return outcome(other_tag(), std::move(why)); }
  static outcome of_error(error_info error) noexcept { return of_failure(failure(std::move(error))); }
  static outcome of_exception(std::exception_ptr exception) noexcept {
    return of_failure(failure(std::move(exception)));
  }
  /// What calling `what` gives.
  template <class F>
  static outcome of_call(F&& what) noexcept {
    try {
      if constexpr (std::is_void_v<R>) {
        std::forward<F>(what)();
        return of_value();
      } else {
        return of_made(std::forward<F>(what));
      }
    } catch (...) {
      return of_exception(std::current_exception());
    }
  }

  [[nodiscard]] bool has_value() const noexcept { return content_.has_value(); }

  /// The value, moved out, or the exception, thrown.
  R get() && {
    if (!has_value()) why().raise();
    if constexpr (!std::is_void_v<R>) return std::move(value());
  }

  [[nodiscard]] muster::result<R> to_result() && {
    if (!has_value()) return error();
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      return std::move(value());
    }
  }

  /// Requires: !has_value().
  [[nodiscard]] const failure& why() const noexcept { return content_.other(); }
  [[nodiscard]] error_info error() const noexcept { return why().error(); }
  /// What get() would throw. Requires: !has_value().
  [[nodiscard]] std::exception_ptr exception() const noexcept { return why().exception(); }

  /// The failure of this one as the outcome of something that needed its value.
  template <class Other>
  [[nodiscard]] outcome<Other> failure_as() const noexcept {
    return outcome<Other>::of_failure(why());
  }

private:
  template <class... Args>
  explicit outcome(Args&&... args) : content_(std::forward<Args>(args)...) {}

  plain& value() {
    if constexpr (is_boxed) {
      return *content_.value();
    } else {
      return content_.value();
    }
  }

  value_or<stored, failure> content_;
};

}  // namespace muster::detail
