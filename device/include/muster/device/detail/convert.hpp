// SPDX-License-Identifier: BSL-1.0
#pragma once

// The same numbers in another dtype. Of tensors, and of spans, for elements that are in no tensor.
//
// Thread safety: all functions are safe to call from any thread, while nobody writes the elements that they read.

#include <cstddef>
#include <span>
#include <type_traits>

#include <muster/device/tensor.hpp>

namespace muster {

/// Whether every number of dtype `from` is one of dtype `to` too. As NumPy's can_cast(from, to, "safe"), except that
/// integers of 64 bits are no numbers of f64 and c128, which NumPy lets pass: from 2^53 on these skip some.
[[nodiscard]] bool is_lossless(dtype from, dtype to) noexcept;

/// The tensor itself if it is of that dtype already, else a contiguous one with the same shape and each element
/// converted, as convert_into has it. Throws errc::out_of_memory.
/// Cost: one pass, one allocation.
[[nodiscard]] tensor convert(const tensor& from, dtype to, memory where = memory::shared);

/// Sets each element of `to` to the one of `from` that is in its place, as a number of `to`'s dtype:
///
/// * f16, bf16, f32, f64: rounded once, to nearest, ties to even; beyond the range infinite.
/// * Integers from floating-point numbers: rounded towards zero; beyond the range the least or the largest; NaN is 0.
/// * Integers from integers: modulo 2^bits, as in C++ and NumPy.
/// * bool: whether it is not 0. NaN is not.
/// * From complex numbers: the real part, to anything that is not complex; but bool is false for 0 only.
///
/// Throws errc::invalid_argument unless the shapes are the same. Both may overlap: then `from` is read as it was
/// before, by way of a copy; throws errc::out_of_memory. Cost: one pass, no allocation where they do not overlap; where
/// both are contiguous, by vectors.
void convert_into(const tensor& to, const tensor& from);

namespace detail {

void convert_elements(dtype to_type, std::span<std::byte> to, dtype from_type, std::span<const std::byte> from);

}  // namespace detail

/// The same of elements of the program's own: `convert_into<float, double>(singles, doubles)`. Throws
/// errc::invalid_argument unless there are as many of both.
template <tensor_element To, tensor_element From>
  requires(!std::is_const_v<To>)
void convert_into(std::span<To> to, std::span<const From> from) {
  detail::convert_elements(dtype_of<To>, std::as_writable_bytes(to), dtype_of<From>, std::as_bytes(from));
}

}  // namespace muster
