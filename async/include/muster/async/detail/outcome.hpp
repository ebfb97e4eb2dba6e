// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

#include <muster/serialize/exceptions.hpp>
#include <muster/serialize/result.hpp>

namespace muster::detail {

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
    outcome made;
    if constexpr (is_boxed) {
      made.content_.template emplace<0>(std::make_unique<R>(std::forward<Value>(value)...));
    } else {
      made.content_.template emplace<0>(std::forward<Value>(value)...);
    }
    return made;
  }
  /// What `make` gives, made where it stays if it is allocated. Throws what that throws.
  template <class Make>
  static outcome of_made(Make&& make) {
    outcome made;
    if constexpr (is_boxed) {
      made.content_.template emplace<0>(std::unique_ptr<R>(new R(std::forward<Make>(make)())));
    } else {
      made.content_.template emplace<0>(std::forward<Make>(make)());
    }
    return made;
  }
  /// Where there is no memory for it, the exception that says so.
  static outcome of_error(error_info error) noexcept {
    outcome made;
    try {
      made.content_.template emplace<1>(std::make_shared<const error_info>(std::move(error)));
    } catch (const std::bad_alloc&) {
      made.content_.template emplace<2>(std::current_exception());
    }
    return made;
  }
  static outcome of_exception(std::exception_ptr exception) {
    outcome made;
    made.content_.template emplace<2>(std::move(exception));
    return made;
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

  [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }

  /// The value, moved out, or the exception, thrown.
  R get() && {
    raise_if_failed();
    if constexpr (!std::is_void_v<R>) return std::move(value());
  }

  [[nodiscard]] muster::result<R> to_result() && {
    if (content_.index() != 0) return error();
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      return std::move(value());
    }
  }

  /// Requires: !has_value().
  [[nodiscard]] error_info error() const noexcept {
    if (const auto* failed = std::get_if<1>(&content_)) return error_info::copy_of(**failed);
    try {
      std::rethrow_exception(std::get<2>(content_));
    } catch (const std::exception& exception) {
      if (const auto* remote = remote_info(exception)) return error_info::copy_of(*remote);
      return capture_current_exception();
    } catch (...) {
      return capture_current_exception();
    }
  }

  /// What get() would throw. Requires: !has_value().
  [[nodiscard]] std::exception_ptr exception() const noexcept {
    try {
      raise_if_failed();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  /// The failure of this one as the outcome of something that needed its value.
  template <class Other>
  [[nodiscard]] outcome<Other> failure_as() const noexcept {
    outcome<Other> made;
    if (const auto* failed = std::get_if<1>(&content_)) {
      made.content_.template emplace<1>(*failed);
    } else {
      made.content_.template emplace<2>(std::get<2>(content_));
    }
    return made;
  }

private:
  template <class Other>
  friend class outcome;

  outcome() : content_(std::in_place_index<2>) {}

  plain& value() {
    if constexpr (is_boxed) {
      return *std::get<0>(content_);
    } else {
      return std::get<0>(content_);
    }
  }

  void raise_if_failed() const {
    if (const auto* failed = std::get_if<1>(&content_)) (*failed)->raise();
    if (const auto* thrown = std::get_if<2>(&content_)) std::rethrow_exception(*thrown);
  }

  // Errors are long and rare: values stay short for them.
  std::variant<stored, std::shared_ptr<const error_info>, std::exception_ptr> content_;
};

}  // namespace muster::detail
