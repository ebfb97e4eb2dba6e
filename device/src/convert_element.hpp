// SPDX-License-Identifier: BSL-1.0
#pragma once

// One number in the type of another dtype; the rules are those of muster/device/detail/convert.hpp. All of it is
// arithmetic and selection, so that loops over it can be vectorised.
//
// Thread safety: pure functions; safe.

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "element_kind.hpp"

namespace muster::detail {

__extension__ using wide_int = __int128;

/// The number as a float, of the two next to it the one with an odd mantissa if it is none itself. Rounded once more,
/// to a format of 22 bits of mantissa or less, that gives what rounding the number itself would: two roundings to
/// nearest would not.
template <class T>
[[nodiscard]] constexpr float rounded_to_odd(T value) noexcept {
  const auto nearest = static_cast<float>(value);
  if constexpr (std::numeric_limits<T>::digits > std::numeric_limits<float>::digits) {
    using exact = std::conditional_t<std::is_integral_v<T>, wide_int, double>;
    const auto given = static_cast<exact>(value);
    const auto found = static_cast<exact>(nearest);
    const bool above = found > given;
    const bool below = found < given;
    const bool too_large = given < 0 ? below : above;
    const auto bits = std::bit_cast<std::uint32_t>(nearest) - std::uint32_t{too_large};
    return std::bit_cast<float>(bits | std::uint32_t{above || below});
  }
  return nearest;
}

template <class T>
[[nodiscard]] constexpr bool is_nan(T value) noexcept {
  return value != value;  // NOLINT(misc-redundant-expression): a NaN alone is unequal to itself
}

/// Towards zero, and into the range.
template <class To, class From>
[[nodiscard]] constexpr To nearest_integer(From value) noexcept {
  constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
  // 2^digits, which is a From where the largest To need not be; and the last From before it.
  constexpr auto end = static_cast<From>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1)) * 2;
  constexpr auto last = end * (1 - std::numeric_limits<From>::epsilon() / 2);
  const auto above_low = value > low ? value : low;
  const auto within = above_low < last ? above_low : last;
  const auto found = static_cast<To>(is_nan(value) ? From(0) : within);
  return value >= end ? std::numeric_limits<To>::max() : found;
}

template <class To, class From>
[[nodiscard]] constexpr To converted(From value) noexcept {
  if constexpr (is_complex<From> && is_complex<To>) {
    return To(value);
  } else if constexpr (is_complex<From>) {
    if constexpr (std::is_same_v<To, bool>)
      return value != From();
    else
      return converted<To>(value.real());
  } else if constexpr (is_complex<To>) {
    return To(converted<typename To::value_type>(value));
  } else if constexpr (is_half<From>) {
    return converted<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (is_half<To>) {
    return To(rounded_to_odd(value));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return nearest_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace muster::detail
