// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <complex>
#include <type_traits>

#include <muster/device/float16.hpp>

namespace muster::test {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

}  // namespace muster::test
