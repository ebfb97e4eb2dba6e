// SPDX-License-Identifier: BSL-1.0
#pragma once

// From a dtype to its C++ type, and over the elements of tensors of one shape.
//
// Thread safety: pure functions; safe. The elements need their own discipline.

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <muster/base/assert.hpp>
#include <muster/device/tensor.hpp>

namespace muster::detail {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// Calls `what` with a std::type_identity of the type of `type`'s elements.
template <class F>
decltype(auto) visit_dtype(dtype type, const F& what) {
  switch (type) {
    case dtype::boolean: return what(std::type_identity<bool>());
    case dtype::i8: return what(std::type_identity<std::int8_t>());
    case dtype::i16: return what(std::type_identity<std::int16_t>());
    case dtype::i32: return what(std::type_identity<std::int32_t>());
    case dtype::i64: return what(std::type_identity<std::int64_t>());
    case dtype::u8: return what(std::type_identity<std::uint8_t>());
    case dtype::u16: return what(std::type_identity<std::uint16_t>());
    case dtype::u32: return what(std::type_identity<std::uint32_t>());
    case dtype::u64: return what(std::type_identity<std::uint64_t>());
    case dtype::f16: return what(std::type_identity<f16>());
    case dtype::bf16: return what(std::type_identity<bf16>());
    case dtype::f32: return what(std::type_identity<float>());
    case dtype::f64: return what(std::type_identity<double>());
    case dtype::c64: return what(std::type_identity<std::complex<float>>());
    case dtype::c128: break;
  }
  MUSTER_ASSERT(type == dtype::c128);
  return what(std::type_identity<std::complex<double>>());
}

/// Elements that lie at equal distances.
struct run {
  std::byte* first = nullptr;
  std::ptrdiff_t step_bytes = 0;
};

/// Those that lie side by side.
[[nodiscard]] inline run adjacent(dtype type, const std::byte* first) {
  return {.first = const_cast<std::byte*>(first), .step_bytes = static_cast<std::ptrdiff_t>(dtype_size(type))};
}

template <std::size_t N>
using runs = std::array<run, N>;

template <std::size_t N, class F>
bool walk(const tensor_shape& shape, const std::array<const tensor*, N>& tensors, std::size_t dimension, runs<N> at,
          const F& what) {
  const auto step = [&](std::size_t each) {
    return tensors[each]->strides()[dimension] * static_cast<std::ptrdiff_t>(dtype_size(tensors[each]->dtype()));
  };
  if (dimension == shape.size()) return what(at, std::size_t{1});
  for (std::size_t each = 0; each < N; ++each) at[each].step_bytes = step(each);
  if (dimension + 1 == shape.size()) return what(at, shape[dimension]);
  for (std::size_t index = 0; index < shape[dimension]; ++index) {
    if (!walk(shape, tensors, dimension + 1, at, what)) return false;
    for (std::size_t each = 0; each < N; ++each) at[each].first += step(each);
  }
  return true;
}

/// Calls `what` with runs of elements, one run of each tensor, and their length, in row-major order, until it returns
/// false; says whether it never did. Contiguous tensors are one run. Requires: all have the same shape.
template <class F, class... Tensors>
bool for_each_run(const F& what, const Tensors&... tensors) {
  constexpr std::size_t count = sizeof...(Tensors);
  const std::array<const tensor*, count> all{&tensors...};
  runs<count> at{run{tensors.data(), static_cast<std::ptrdiff_t>(dtype_size(tensors.dtype()))}...};
  if (all[0]->size() == 0) return true;
  if ((tensors.is_contiguous() && ...)) return what(at, all[0]->size());
  return walk(all[0]->shape(), all, 0, at, what);
}

}  // namespace muster::detail
