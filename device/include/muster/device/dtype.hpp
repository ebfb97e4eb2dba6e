// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the elements of a tensor are.
//
// Thread safety: values and pure functions; safe.

#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <type_traits>

#include <muster/device/float16.hpp>

namespace muster {

/// The type of a tensor's elements. Stable values: they cross processes.
enum class dtype : std::uint8_t {
  boolean = 0,  ///< bool, one byte: any but 0 is true, and 1 is what is written
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  u8 = 5,
  u16 = 6,
  u32 = 7,
  u64 = 8,
  f16 = 9,    ///< muster::f16
  bf16 = 10,  ///< muster::bf16
  f32 = 11,   ///< float
  f64 = 12,   ///< double
  c64 = 13,   ///< std::complex<float>
  c128 = 14,  ///< std::complex<double>
};

/// How many dtypes there are; a number from elsewhere is one if it is less.
inline constexpr std::size_t dtype_count = 15;

/// Bytes per element. Requires: `type` is one of the enumerators.
[[nodiscard]] std::size_t dtype_size(dtype type) noexcept;

/// As the enumerator is called: "f32"; "bool" for boolean. Any other number gives "unknown".
[[nodiscard]] std::string_view dtype_name(dtype type) noexcept;

/// Prints dtype_name.
std::ostream& operator<<(std::ostream& out, dtype type);

namespace detail {

template <class T, class... Candidates>
inline constexpr bool is_one_of = (std::is_same_v<T, Candidates> || ...);

/// Characters are text, not numbers.
template <class T>
inline constexpr bool is_number =
    std::is_integral_v<T> && !is_one_of<T, bool, char, wchar_t, char8_t, char16_t, char32_t> &&
    sizeof(T) <= sizeof(std::int64_t);

// The enumerators of the integers follow one another by size.
template <class T>
consteval int dtype_number() {
  if constexpr (std::is_same_v<T, bool>) return 0;
  if constexpr (is_number<T>) return (std::is_signed_v<T> ? 1 : 5) + std::bit_width(sizeof(T)) - 1;
  if constexpr (std::is_same_v<T, f16>) return 9;
  if constexpr (std::is_same_v<T, bf16>) return 10;
  if constexpr (std::is_same_v<T, float>) return 11;
  if constexpr (std::is_same_v<T, double>) return 12;
  if constexpr (std::is_same_v<T, std::complex<float>>) return 13;
  if constexpr (std::is_same_v<T, std::complex<double>>) return 14;
  return -1;
}

/// A bool as it lies in memory. Other libraries and processes write there too, and of a byte that is neither 0 nor 1
/// C++ has no bool: here every byte but 0 is true. What is written is 0 or 1.
class stored_bool {
public:
  stored_bool() = default;
  constexpr stored_bool(bool value) noexcept : byte_(value ? 1 : 0) {}  // NOLINT: the same value
  constexpr operator bool() const noexcept { return byte_ != 0; }       // NOLINT: likewise

private:
  std::uint8_t byte_;
};
static_assert(sizeof(stored_bool) == 1 && std::is_trivially_copyable_v<stored_bool>);

/// What elements that are computed with as T are in memory.
template <class T>
using stored = std::conditional_t<std::is_same_v<T, bool>, stored_bool, T>;

}  // namespace detail

/// Types that can be a tensor's elements: bool, the integers of up to 64 bits (not characters), f16, bf16, float,
/// double, and complex numbers of the last two.
template <class T>
concept tensor_element = detail::dtype_number<std::remove_const_t<T>>() >= 0;

/// The dtype of elements that are T. Integers go by size and sign, so `long` and `long long` are both i64.
template <tensor_element T>
inline constexpr dtype dtype_of = static_cast<dtype>(detail::dtype_number<std::remove_const_t<T>>());

}  // namespace muster
