// SPDX-License-Identifier: BSL-1.0
#pragma once

// What arithmetic.cpp does with one element, or two. No branches that vectors could not take.
//
// Thread safety: pure functions; safe.

#include <complex>
#include <cstdint>
#include <type_traits>

#include "convert_element.hpp"
#include "element_kind.hpp"

namespace muster::detail {

// Sums and products wrap around, whatever the sign; nothing is promoted to an int, which does not.
template <class T>
using wrapping = std::conditional_t<sizeof(T) == sizeof(std::uint64_t), std::uint64_t, unsigned>;

struct add {
  static constexpr const char* name = "sum";
  template <class T>
  static constexpr T of(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
      return a || b;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<wrapping<T>>(a) + static_cast<wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
};

struct multiply {
  static constexpr const char* name = "prod";
  template <class T>
  static constexpr T of(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
      return a && b;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<wrapping<T>>(a) * static_cast<wrapping<T>>(b));
    } else if constexpr (is_complex<T>) {  // not what C has for infinities, which takes a call
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    } else {
      return a * b;
    }
  }
};

struct least {
  static constexpr const char* name = "min";
  template <class T>
  static constexpr T of(T a, T b) {
    return a <= b || is_nan(a) ? a : b;
  }
};

struct greatest {
  static constexpr const char* name = "max";
  template <class T>
  static constexpr T of(T a, T b) {
    return a >= b || is_nan(a) ? a : b;
  }
};

template <class Op, class T>
inline constexpr bool has = !is_complex<T> || std::is_same_v<Op, add> || std::is_same_v<Op, multiply>;

template <class Op, class T>
constexpr T joined(T a, T b) {
  if constexpr (is_half<T>) {
    return T(Op::of(static_cast<float>(a), static_cast<float>(b)));
  } else {
    return Op::of(a, b);
  }
}

// What a factor is rounded to.
template <class T>
struct part {
  using type = std::conditional_t<is_half<T>, float, T>;
};
template <class T>
struct part<std::complex<T>> {
  using type = T;
};
template <class T>
using part_of = typename part<T>::type;

template <class T>
constexpr T scaled(T value, part_of<T> factor) {
  if constexpr (is_half<T>) {
    return T(static_cast<float>(value) * factor);
  } else {
    return value * factor;
  }
}

template <class T>
constexpr T stepped(T y, part_of<T> factor, T x) {
  if constexpr (is_half<T>) {
    return T(static_cast<float>(y) + factor * static_cast<float>(x));
  } else {
    return y + factor * x;
  }
}

}  // namespace muster::detail
