// SPDX-License-Identifier: BSL-1.0
#pragma once

// Fill, copy, accumulate, scale, axpy: what element_ops.hpp computes with one element, for all.

#include <muster/device/dtype.hpp>

#include "device_elements.hpp"
#include "element_loops.hpp"
#include "element_ops.hpp"

namespace muster::detail {

/// An element by its bytes alone.
struct alignas(16) sixteen_bytes {
  std::uint64_t halves[2];
};

template <class T>
__device__ void fill_units(const fill_arguments& given) {
  const auto value = *reinterpret_cast<const T*>(given.element);
  const auto& elements = given.elements;
  const auto nothing = [](std::uint64_t index) { return index; };
  if (!elements.is_packed) {
    for_each_index(elements.count, nothing, [&](std::uint64_t index, std::uint64_t) {
      element_at<T>(elements.first[0], offsets_of(elements, index).of[0]) = value;
    });
    return;
  }
  constexpr auto size = pack_size<T>;
  auto* const to = reinterpret_cast<T*>(elements.first[0]);
  pack<T, size> values;
  MUSTER_UNROLL
  for (unsigned each = 0; each < size; ++each) values.each[each] = value;
  const auto packs = packs_of<size>(elements);
  auto* const to_packs = reinterpret_cast<pack<T, size>*>(to + elements.head);
  for_each_index(packs, nothing, [&](std::uint64_t index, std::uint64_t) { to_packs[index] = values; });
  for_each_unpacked(elements, packs * size, [&](std::uint64_t index) { to[index] = value; });
}

__device__ inline void fill_elements(const fill_arguments& given) {
  switch (given.element_bytes) {
    case 1: return fill_units<std::uint8_t>(given);
    case 2: return fill_units<std::uint16_t>(given);
    case 4: return fill_units<std::uint32_t>(given);
    case 8: return fill_units<std::uint64_t>(given);
    default: return fill_units<sixteen_bytes>(given);
  }
}

template <class T>
__device__ void copy_units(const kernel_elements& elements) {
  map_strided<T, T>(elements, [](const T& value) { return value; });
}

/// Not of contiguous elements: for those the driver has a copy.
__device__ inline void copy_elements(const copy_arguments& given) {
  switch (given.element_bytes) {
    case 1: return copy_units<std::uint8_t>(given.elements);
    case 2: return copy_units<std::uint16_t>(given.elements);
    case 4: return copy_units<std::uint32_t>(given.elements);
    case 8: return copy_units<std::uint64_t>(given.elements);
    default: return copy_units<sixteen_bytes>(given.elements);
  }
}

/// Sums of complex numbers come as sums of their parts.
template <class T>
__device__ T joined_by(kernel_op op, T a, T b) {
  if constexpr (is_complex<T>) {
    return joined<multiply>(a, b);
  } else {
    switch (op) {
      case kernel_op::sum: return joined<add>(a, b);
      case kernel_op::prod: return joined<multiply>(a, b);
      case kernel_op::min: return joined<least>(a, b);
      default: return joined<greatest>(a, b);
    }
  }
}

template <class T>
__device__ void accumulate(const accumulate_arguments& given) {
  const auto op = given.op;
  join<stored<T>>(given.elements, [op](T into, T from) { return joined_by(op, into, from); });
}

template <class T>
__device__ void scale(const factor_arguments& given) {
  const auto factor = static_cast<part_of<T>>(given.factor);
  map<T, T>(given.elements, [factor](T value) { return scaled(value, factor); });
}

template <class T>
__device__ void divide(const factor_arguments& given) {
  const auto divisor = static_cast<part_of<T>>(given.factor);
  map<T, T>(given.elements, [divisor](T value) { return T(static_cast<part_of<T>>(value) / divisor); });
}

template <class T>
__device__ void axpy(const factor_arguments& given) {
  const auto factor = static_cast<part_of<T>>(given.factor);
  join<T>(given.elements, [factor](T y, T x) { return stepped(y, factor, x); });
}

}  // namespace muster::detail
