// SPDX-License-Identifier: BSL-1.0
#pragma once

// The two floating-point formats of 16 bits, as storage: they are kept so, and computed with as float.
//
// Thread safety: values and pure functions; safe.

#include <bit>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

namespace detail {

/// `value / 2^places`, to the nearest integer; a tie goes to the even one. Requires: 0 < places < 32.
[[nodiscard]] constexpr std::uint32_t shift_to_nearest_even(std::uint32_t value, std::uint32_t places) noexcept {
  const auto odd = value >> places & 1U;
  return (value + (std::uint32_t{1} << (places - 1)) - 1 + odd) >> places;
}

[[nodiscard]] constexpr std::uint16_t bits_of_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = bits & 0x7fff'ffffU;
  const auto with_sign = [bits](std::uint32_t rest) {
    return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | rest);
  };
  if (magnitude > 0x7f80'0000U) return with_sign(0x7e00U | (magnitude >> 13U & 0x3ffU));  // not a number, made quiet
  if (magnitude >= 0x4780'0000U) return with_sign(0x7c00U);                               // from 2^16: infinite
  if (magnitude < 0x3300'0000U) return with_sign(0);                                      // below 2^-25
  if (magnitude >= 0x3880'0000U) return with_sign(shift_to_nearest_even(magnitude - (112U << 23U), 13));
  const auto mantissa = (magnitude & 0x007f'ffffU) | 0x0080'0000U;  // subnormal: in units of 2^-24
  return with_sign(shift_to_nearest_even(mantissa, 126U - (magnitude >> 23U)));
}

[[nodiscard]] constexpr float float_of_f16(std::uint16_t bits) noexcept {
  const auto sign = (bits & 0x8000U) << 16U;
  const auto exponent = bits >> 10U & 0x1fU;
  const auto mantissa = bits & 0x3ffU;
  if (exponent == 0) {
    const auto magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const auto widened = exponent == 0x1fU ? 0xffU : exponent + 112U;
  return std::bit_cast<float>(sign | (widened << 23U) | (mantissa << 13U));
}

[[nodiscard]] constexpr std::uint16_t bits_of_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fff'ffffU) > 0x7f80'0000U) return static_cast<std::uint16_t>(bits >> 16U | 0x40U);
  return static_cast<std::uint16_t>((std::uint64_t{bits} + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

}  // namespace detail

/// IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of mantissa; largest finite value 65504.
///
/// Conversion from float rounds to nearest, ties to even, and keeps infinities, NaNs and the sign of zero; conversion
/// to float is exact.
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class f16 {
public:
  f16() = default;
  /// Rounds `value` to the nearest number of this format, ties to even.
  constexpr explicit f16(float value) noexcept : bits_(detail::bits_of_f16(value)) {}
  /// Returns the number that these bits are in memory: the sign in bit 15, the exponent in bits 10 to 14, the mantissa
  /// below.
  [[nodiscard]] static constexpr f16 from_bits(std::uint16_t bits) noexcept {
    f16 made(0.0F);
    made.bits_ = bits;
    return made;
  }

  /// Returns the bits of this number, as from_bits() takes them.
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
  /// Converts to the same number.
  constexpr operator float() const noexcept { return detail::float_of_f16(bits_); }  // NOLINT: it loses nothing

private:
  std::uint16_t bits_;
};

/// The upper half of an IEEE 754 binary32: the range of float, 7 bits of mantissa.
///
/// Conversion from float rounds to nearest, ties to even, and keeps infinities, NaNs and the sign of zero; conversion
/// to float is exact.
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class bf16 {
public:
  bf16() = default;
  /// Rounds `value` to the nearest number of this format, ties to even.
  constexpr explicit bf16(float value) noexcept : bits_(detail::bits_of_bf16(value)) {}
  /// Returns the number that these bits are in memory: the sign in bit 15, the exponent in bits 7 to 14, the mantissa
  /// below.
  [[nodiscard]] static constexpr bf16 from_bits(std::uint16_t bits) noexcept {
    bf16 made(0.0F);
    made.bits_ = bits;
    return made;
  }

  /// Returns the bits of this number, as from_bits() takes them.
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
  /// Converts to the same number.
  constexpr operator float() const noexcept {  // NOLINT: it loses nothing
    return std::bit_cast<float>(std::uint32_t{bits_} << 16U);
  }

private:
  std::uint16_t bits_;
};

}  // namespace muster
