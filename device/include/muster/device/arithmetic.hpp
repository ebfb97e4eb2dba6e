// SPDX-License-Identifier: BSL-1.0
#pragma once

// Element by element, in place: what accumulating gradients and stepping along them takes. Of tensors, and of spans,
// for elements that are in no tensor.
//
//     muster::accumulate(total, gradient);                       // total += gradient
//     muster::axpy(-0.1, total, weights);                        // weights += -0.1 * total
//     muster::accumulate<float>(sums, part, element_op::max);    // of two vectors
//
// Integers wrap around; f16 and bf16 are computed in float and rounded once.
//
// What is read may overlap what is written, also in part (`accumulate(a.slice(0, 9), a.slice(1, 10))`): then it is read
// as it was before, by way of a copy. The same tensor twice needs none.
//
// Tensors that repeat elements (broadcast_to: a stride of 0) may be read. Into one on the host the places of an element
// are joined in turn. A device computes all places at the same time, so nothing is written into one there:
// errc::invalid_argument.
//
// Thread safety: all functions are safe to call from any thread, while nobody else uses the elements.
// Cost: one pass, no allocation where nothing overlaps in part; by vectors where the elements are adjacent, so that
// what is larger than the caches goes as fast as memory does.

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <muster/device/detail/arithmetic_op.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

/// Each element of `into` becomes what it and its counterpart in `from` are joined to. Throws errc::invalid_argument,
/// with nothing written, unless dtype and shape are the same, and for what the dtype has not.
void accumulate(const tensor& into, const tensor& from, element_op op = element_op::sum);

/// Each element is multiplied by `factor`, rounded to the dtype first (f16 and bf16: to float). For f16, bf16, f32, f64
/// and complex numbers; throws errc::invalid_argument for others.
void scale(const tensor& which, double factor);

/// y ← y + factor·x, as BLAS calls it: product and sum are rounded one after the other. Dtypes and errors as of scale,
/// the rest as of accumulate.
void axpy(double factor, const tensor& x, const tensor& y);

namespace detail {

void accumulate_elements(dtype type, std::span<std::byte> into, std::span<const std::byte> from, element_op op);
void scale_elements(dtype type, std::span<std::byte> which, double factor);
void axpy_elements(dtype type, double factor, std::span<const std::byte> x, std::span<std::byte> y);

}  // namespace detail

/// Of elements of the program's own: `accumulate<float>(sums, part)`. Throws errc::invalid_argument where there are not
/// as many of both.
///@{
template <tensor_element T>
void accumulate(std::span<T> into, std::span<const std::type_identity_t<T>> from, element_op op = element_op::sum) {
  detail::accumulate_elements(dtype_of<T>, std::as_writable_bytes(into), std::as_bytes(from), op);
}
template <tensor_element T>
void scale(std::span<T> which, double factor) {
  detail::scale_elements(dtype_of<T>, std::as_writable_bytes(which), factor);
}
template <tensor_element T>
void axpy(double factor, std::span<const std::type_identity_t<T>> x, std::span<T> y) {
  detail::axpy_elements(dtype_of<T>, factor, std::as_bytes(x), std::as_writable_bytes(y));
}
///@}

}  // namespace muster
