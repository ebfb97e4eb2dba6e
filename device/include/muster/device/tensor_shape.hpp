// SPDX-License-Identifier: BSL-1.0
#pragma once

// Shapes and strides: one number for each dimension.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <ostream>
#include <span>

#include <muster/base/requirements.hpp>

namespace muster {

namespace detail {

/// Throws errc::invalid_argument.
[[noreturn]] void throw_too_many_dimensions(std::size_t count, std::size_t most);

}  // namespace detail

/// One number for each dimension, the outermost first; no dimension at all is allowed. No allocation.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
template <class T>
class per_dimension {
public:
  /// How many dimensions there may be.
  static constexpr std::size_t most = 8;

  constexpr per_dimension() noexcept = default;
  /// Throws errc::invalid_argument for more than `most` numbers.
  ///@{
  constexpr per_dimension(std::initializer_list<T> values)
      : per_dimension(std::span<const T>(values.begin(), values.size())) {}
  constexpr explicit per_dimension(std::span<const T> values) : count_(values.size()) {
    if (values.size() > most) detail::throw_too_many_dimensions(values.size(), most);
    for (std::size_t at = 0; at < count_; ++at) values_[at] = values[at];
  }
  ///@}

  /// How many dimensions.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return count_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return count_ == 0; }
  /// Requires: dimension < size().
  [[nodiscard]] constexpr T& operator[](std::size_t dimension) noexcept { return values_[dimension]; }
  [[nodiscard]] constexpr const T& operator[](std::size_t dimension) const noexcept { return values_[dimension]; }
  [[nodiscard]] constexpr const T* begin() const noexcept { return values_.data(); }
  [[nodiscard]] constexpr const T* end() const noexcept { return values_.data() + count_; }

  /// One more dimension, inside all others. Throws errc::invalid_argument when there are `most` already.
  constexpr void push_back(T value) {
    if (count_ == most) detail::throw_too_many_dimensions(count_ + 1, most);
    values_[count_++] = value;
  }
  /// The same without the outermost dimension. Requires: !empty().
  [[nodiscard]] constexpr per_dimension without_first() const {
    return per_dimension(std::span<const T>(begin() + 1, count_ - 1));
  }

  [[nodiscard]] friend constexpr bool operator==(const per_dimension& a, const per_dimension& b) noexcept {
    if (a.count_ != b.count_) return false;
    for (std::size_t at = 0; at < a.count_; ++at) {
      if (a.values_[at] != b.values_[at]) return false;
    }
    return true;
  }

  /// As Python prints a tuple: (), (3,), (3, 4).
  friend std::ostream& operator<<(std::ostream& out, const per_dimension& values) {
    out << '(';
    for (std::size_t at = 0; at < values.count_; ++at) out << (at == 0 ? "" : ", ") << values[at];
    return out << (values.count_ == 1 ? ",)" : ")");
  }

private:
  std::array<T, most> values_{};
  std::size_t count_ = 0;
};

/// How many elements there are along each dimension.
using tensor_shape = per_dimension<std::size_t>;

/// How many elements further in memory the next one along each dimension is.
using tensor_strides = per_dimension<std::ptrdiff_t>;

}  // namespace muster
