// SPDX-License-Identifier: BSL-1.0
#pragma once

// What elements are in kernels, where they are not what they are on the host: with the device's own conversions of
// 16-bit formats, which give the same bits, but for which NaN one is; and complex numbers without std::complex, whose
// operators are the host's.

#include <cstdint>

#include <muster/device/float16.hpp>

#include "element_kind.hpp"

namespace muster::detail {

__host__ __device__ inline std::uint16_t half_of(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  return bits_of_f16(value);
#endif
}

__host__ __device__ inline float float_of_half(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  return float_of_f16(bits);
#endif
}

__host__ __device__ inline std::uint16_t brain_half_of(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  return bits_of_bf16(value);
#endif
}

/// f16.
class half {
public:
  half() = default;
  __host__ __device__ explicit half(float value) : bits_(half_of(value)) {}
  __host__ __device__ operator float() const { return float_of_half(bits_); }

private:
  std::uint16_t bits_;
};

/// bf16.
class brain_half {
public:
  brain_half() = default;
  __host__ __device__ explicit brain_half(float value) : bits_(brain_half_of(value)) {}
  __host__ __device__ operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16U); }

private:
  std::uint16_t bits_;
};

template <class T>
class complex_number {
public:
  using value_type = T;

  complex_number() = default;
  __host__ __device__ complex_number(T real, T imaginary = T()) : real_(real), imaginary_(imaginary) {}
  template <class U>
  __host__ __device__ explicit complex_number(complex_number<U> other)
      : real_(static_cast<T>(other.real())), imaginary_(static_cast<T>(other.imag())) {}

  __host__ __device__ T real() const { return real_; }
  __host__ __device__ T imag() const { return imaginary_; }

  __host__ __device__ friend bool operator==(complex_number a, complex_number b) {
    return a.real_ == b.real_ && a.imaginary_ == b.imaginary_;
  }

private:
  T real_;
  T imaginary_;
};

using complex_float = complex_number<float>;
using complex_double = complex_number<double>;

template <>
inline constexpr bool is_half<half> = true;
template <>
inline constexpr bool is_half<brain_half> = true;
template <class T>
inline constexpr bool is_complex<complex_number<T>> = true;

}  // namespace muster::detail
