// SPDX-License-Identifier: BSL-1.0
#include "weighted_sum.hpp"

#include <complex>
#include <type_traits>

#include <muster/base/detail/float_state.hpp>
#include <muster/device/float16.hpp>

namespace muster::detail {

namespace {

template <class T>
void add_each(std::span<double> sums, const std::byte* values, double weight) {
  const auto* const from = reinterpret_cast<const stored<T>*>(values);
  for (std::size_t index = 0; index < sums.size(); ++index) {
    if constexpr (std::is_arithmetic_v<T>) {
      sums[index] += weight * static_cast<double>(T(from[index]));
    } else {
      sums[index] += weight * static_cast<double>(static_cast<float>(from[index]));
    }
  }
}

template <class T>
void write_each(std::byte* values, std::span<const double> sums, double divisor) {
  auto* const to = reinterpret_cast<T*>(values);
  for (std::size_t index = 0; index < sums.size(); ++index) {
    if constexpr (std::is_arithmetic_v<T>) {
      to[index] = static_cast<T>(sums[index] / divisor);
    } else {
      to[index] = T(static_cast<float>(sums[index] / divisor));
    }
  }
}

void add_scaled_in_state(std::span<double> sums, const std::byte* values, dtype type, double weight) {
  switch (type) {
    case dtype::boolean: return add_each<bool>(sums, values, weight);
    case dtype::i8: return add_each<std::int8_t>(sums, values, weight);
    case dtype::i16: return add_each<std::int16_t>(sums, values, weight);
    case dtype::i32: return add_each<std::int32_t>(sums, values, weight);
    case dtype::i64: return add_each<std::int64_t>(sums, values, weight);
    case dtype::u8: return add_each<std::uint8_t>(sums, values, weight);
    case dtype::u16: return add_each<std::uint16_t>(sums, values, weight);
    case dtype::u32: return add_each<std::uint32_t>(sums, values, weight);
    case dtype::u64: return add_each<std::uint64_t>(sums, values, weight);
    case dtype::f16: return add_each<f16>(sums, values, weight);
    case dtype::bf16: return add_each<bf16>(sums, values, weight);
    case dtype::f32:
    case dtype::c64: return add_each<float>(sums, values, weight);
    case dtype::f64:
    case dtype::c128: return add_each<double>(sums, values, weight);
  }
}

void write_divided_in_state(std::byte* values, dtype type, std::span<const double> sums, double divisor) {
  switch (type) {
    case dtype::f16: return write_each<f16>(values, sums, divisor);
    case dtype::bf16: return write_each<bf16>(values, sums, divisor);
    case dtype::f32:
    case dtype::c64: return write_each<float>(values, sums, divisor);
    default: return write_each<double>(values, sums, divisor);
  }
}

}  // namespace

std::size_t numbers_of(dtype type, std::size_t elements) noexcept {
  return type == dtype::c64 || type == dtype::c128 ? 2 * elements : elements;
}

void add_scaled(std::span<double> sums, const std::byte* values, dtype type, double weight) {
  in_fixed_float_state([&] { add_scaled_in_state(sums, values, type, weight); });
}

void write_divided(std::byte* values, dtype type, std::span<const double> sums, double divisor) {
  in_fixed_float_state([&] { write_divided_in_state(values, type, sums, divisor); });
}

}  // namespace muster::detail
