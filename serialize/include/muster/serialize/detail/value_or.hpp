// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// Chooses the other one of value_or.
struct other_tag {};

/// A value, or something else in its place: what std::variant is for two, whose tables of functions cost a compiler
/// more than all that is done with a result.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
template <class T, class Other>
  requires std::is_nothrow_default_constructible_v<Other> && std::is_nothrow_move_constructible_v<Other>
class value_or {
public:
  template <class... Args>
  explicit value_or(std::in_place_t /*value*/, Args&&... args) : value_(std::forward<Args>(args)...) {}
  /// Of what `make` gives, which is made in its place.
  template <class Make>
  value_or(std::in_place_type_t<T> /*value*/, Make&& make) : value_(std::forward<Make>(make)()) {}
  explicit value_or(other_tag /*tag*/, Other other) noexcept : other_(std::move(other)), has_value_(false) {}

  value_or(value_or&& from) noexcept(std::is_nothrow_move_constructible_v<T>) { take(std::move(from)); }
  value_or(const value_or& from)
    requires std::copy_constructible<T> && std::copy_constructible<Other>
  {
    take(from);
  }
  /// Where a move of a value throws, there is an empty other one instead.
  value_or& operator=(value_or&& from) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (this != &from) replace(std::move(from));
    return *this;
  }
  value_or& operator=(const value_or& from)
    requires std::copy_constructible<T> && std::copy_constructible<Other>
  {
    if (this != &from) replace(value_or(from));
    return *this;
  }
  ~value_or() { destroy(); }

  [[nodiscard]] bool has_value() const noexcept { return has_value_; }
  /// Requires: has_value().
  [[nodiscard]] T& value() noexcept { return value_; }
  [[nodiscard]] const T& value() const noexcept { return value_; }
  /// Requires: !has_value().
  [[nodiscard]] Other& other() noexcept { return other_; }
  [[nodiscard]] const Other& other() const noexcept { return other_; }

private:
  // Into room that holds nothing.
  template <class From>
  void take(From&& from) {
    const bool is_value = from.has_value_;
    if (is_value) {
      ::new (static_cast<void*>(std::addressof(value_))) T(std::forward<From>(from).value_);
    } else {
      ::new (static_cast<void*>(std::addressof(other_))) Other(std::forward<From>(from).other_);
    }
    has_value_ = is_value;
  }

  void replace(value_or&& from) {
    destroy();
    if constexpr (std::is_nothrow_move_constructible_v<T>) {
      take(std::move(from));
    } else {
      try {
        take(std::move(from));
      } catch (...) {
        ::new (static_cast<void*>(std::addressof(other_))) Other();
        has_value_ = false;
        throw;
      }
    }
  }

  void destroy() noexcept {
    if (has_value_) {
      std::destroy_at(std::addressof(value_));
    } else {
      std::destroy_at(std::addressof(other_));
    }
  }

  union {
    T value_;
    Other other_;
  };
  bool has_value_ = true;
};

}  // namespace muster::detail
