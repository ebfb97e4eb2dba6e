// SPDX-License-Identifier: BSL-1.0
#pragma once

// From every dtype to every other in one kernel, by way of the widest number of its kind; that takes the same numbers
// to the same ones as going there directly. And kernels of their own for what is common.

#include <muster/device/dtype.hpp>

#include "convert_element.hpp"
#include "device_elements.hpp"
#include "element_loops.hpp"

namespace muster::detail {

template <class To, class From>
__device__ void convert_elements(const convert_arguments& given) {
  map<To, From>(given.elements, [](From value) { return converted<To>(value); });
}

struct widest_number {
  enum class kind : std::uint8_t { negative_too, positive, real, complex };

  kind is;
  std::uint64_t whole;  // of integers, modulo 2^64
  double real;
  double imaginary;
};

template <class T>
__device__ widest_number widened(const std::byte* from) {
  using enum widest_number::kind;
  const T value = *reinterpret_cast<const stored<T>*>(from);
  if constexpr (is_complex<T>) {
    return {complex, 0, static_cast<double>(value.real()), static_cast<double>(value.imag())};
  } else if constexpr (is_half<T>) {
    return {real, 0, static_cast<double>(static_cast<float>(value)), 0};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {real, 0, static_cast<double>(value), 0};
  } else if constexpr (std::is_signed_v<T>) {
    return {negative_too, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), 0, 0};
  } else {
    return {positive, static_cast<std::uint64_t>(value), 0, 0};
  }
}

template <class T>
__device__ void narrow(std::byte* to, const widest_number& number) {
  auto& made = *reinterpret_cast<stored<T>*>(to);
  switch (number.is) {
    case widest_number::kind::negative_too: made = converted<T>(static_cast<std::int64_t>(number.whole)); break;
    case widest_number::kind::positive: made = converted<T>(number.whole); break;
    case widest_number::kind::real: made = converted<T>(number.real); break;
    case widest_number::kind::complex: made = converted<T>(complex_double(number.real, number.imaginary)); break;
  }
}

__device__ inline widest_number load_any(dtype type, const std::byte* from) {
  switch (type) {
    case dtype::boolean: return widened<bool>(from);
    case dtype::i8: return widened<std::int8_t>(from);
    case dtype::i16: return widened<std::int16_t>(from);
    case dtype::i32: return widened<std::int32_t>(from);
    case dtype::i64: return widened<std::int64_t>(from);
    case dtype::u8: return widened<std::uint8_t>(from);
    case dtype::u16: return widened<std::uint16_t>(from);
    case dtype::u32: return widened<std::uint32_t>(from);
    case dtype::u64: return widened<std::uint64_t>(from);
    case dtype::f16: return widened<half>(from);
    case dtype::bf16: return widened<brain_half>(from);
    case dtype::f32: return widened<float>(from);
    case dtype::f64: return widened<double>(from);
    case dtype::c64: return widened<complex_float>(from);
    default: return widened<complex_double>(from);
  }
}

__device__ inline void store_any(dtype type, std::byte* to, const widest_number& number) {
  switch (type) {
    case dtype::boolean: return narrow<bool>(to, number);
    case dtype::i8: return narrow<std::int8_t>(to, number);
    case dtype::i16: return narrow<std::int16_t>(to, number);
    case dtype::i32: return narrow<std::int32_t>(to, number);
    case dtype::i64: return narrow<std::int64_t>(to, number);
    case dtype::u8: return narrow<std::uint8_t>(to, number);
    case dtype::u16: return narrow<std::uint16_t>(to, number);
    case dtype::u32: return narrow<std::uint32_t>(to, number);
    case dtype::u64: return narrow<std::uint64_t>(to, number);
    case dtype::f16: return narrow<half>(to, number);
    case dtype::bf16: return narrow<brain_half>(to, number);
    case dtype::f32: return narrow<float>(to, number);
    case dtype::f64: return narrow<double>(to, number);
    case dtype::c64: return narrow<complex_float>(to, number);
    default: return narrow<complex_double>(to, number);
  }
}

__device__ inline void convert_any(const convert_arguments& given) {
  struct place {
    std::int64_t to;
    widest_number number;
  };
  const auto& elements = given.elements;
  const auto from = static_cast<dtype>(given.from);
  const auto to = static_cast<dtype>(given.to);
  for_each_index(
      elements.count,
      [&](std::uint64_t index) {
        const auto offsets = offsets_of(elements, index);
        return place{offsets.of[0], load_any(from, elements.first[1] + offsets.of[1])};
      },
      [&](std::uint64_t, const place& found) { store_any(to, elements.first[0] + found.to, found.number); });
}

}  // namespace muster::detail
