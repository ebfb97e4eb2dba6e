// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <type_traits>
#include <utility>
#include <variant>  // std::monostate

#include <muster/serialize/detail/value_or.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

/// A value, or why there is none. `R` may be void.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
template <class R>
class result {
  using stored = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

public:
  using value_type = R;

  /// Makes a result without an error.
  result()
    requires std::is_void_v<R>
      : content_(std::in_place) {}
  /// Makes a result of a value, or of the error that is the reason why there is none.
  ///@{
  result(stored value)  // NOLINT(google-explicit-constructor): a value is a result
    requires(!std::is_void_v<R>)
      : content_(std::in_place, std::move(value)) {}
  result(error_info error) : content_(detail::other_tag(), std::move(error)) {}  // NOLINT: so is an error
  ///@}

  /// Returns whether there is a value, and no error().
  [[nodiscard]] bool has_value() const noexcept { return content_.has_value(); }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

  /// The value; throws what get() of the future would have thrown.
  ///@{
  std::add_lvalue_reference_t<R> value() & {
    require_value();
    if constexpr (!std::is_void_v<R>) return content_.value();
  }
  std::add_lvalue_reference_t<std::add_const_t<R>> value() const& {
    require_value();
    if constexpr (!std::is_void_v<R>) return content_.value();
  }
  R value() && {
    require_value();
    if constexpr (!std::is_void_v<R>) return std::move(content_.value());
  }
  ///@}

  /// Requires: has_value().
  [[nodiscard]] std::add_lvalue_reference_t<stored> operator*() & noexcept { return content_.value(); }
  [[nodiscard]] std::add_lvalue_reference_t<const stored> operator*() const& noexcept { return content_.value(); }
  [[nodiscard]] stored&& operator*() && noexcept { return std::move(content_.value()); }
  [[nodiscard]] stored* operator->() noexcept { return &content_.value(); }
  [[nodiscard]] const stored* operator->() const noexcept { return &content_.value(); }

  /// Requires: !has_value().
  [[nodiscard]] const error_info& error() const noexcept { return content_.other(); }

private:
  void require_value() const {
    if (!has_value()) error().raise();
  }

  detail::value_or<stored, error_info> content_;
};

}  // namespace muster
