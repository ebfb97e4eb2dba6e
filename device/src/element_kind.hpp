// SPDX-License-Identifier: BSL-1.0
#pragma once

// What kind of number an element is. A device's own types of elements specialise these.

#include <complex>
#include <type_traits>

#include <muster/device/float16.hpp>

namespace muster::detail {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// Kept in 16 bits, computed with as float.
template <class T>
inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

}  // namespace muster::detail
