// SPDX-License-Identifier: BSL-1.0
#pragma once

// Whether two tensors hold the same numbers, and where. There is no operator==: it could as well compare handles, or
// elements one by one. What NumPy calls array_equal, isclose, allclose, less and so on; other than there, both must be
// of one dtype, because nothing here converts what it was not asked to: see convert.hpp. What lies on a device is
// copied to the host, each tensor for itself, and what comes of it lies there.
//
// Thread safety: all functions are safe to call from any thread, while nobody writes the elements.
// Cost: one pass over the elements, which ends where the answer is known; and what tensor::to costs for those on
// devices. A tensor that is asked several things is better copied once.

#include <cstdint>

#include <muster/device/tensor.hpp>

namespace muster {

/// What two NaNs are to one another.
enum class nans : std::uint8_t { differ, same };

/// How far apart numbers may be that count as close: |a - b| <= absolute + relative * |b|. Infinities are close to
/// themselves. A complex number is a NaN if a part of it is.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct closeness {
  double relative = 1e-5;                    ///< part of |b|
  double absolute = 1e-8;                    ///< in the numbers' own unit
  muster::nans nans = muster::nans::differ;  ///< whether two NaNs are close to one another
};

/// Same dtype, same shape, same elements; zeros of either sign are equal. Nothing is broadcast: all(compare(…)) does.
[[nodiscard]] bool equal(const tensor& a, const tensor& b, nans how = nans::differ);

/// Same dtype, same shape, and all elements close to one another. Nothing is broadcast: all(is_close(…)) does.
[[nodiscard]] bool all_close(const tensor& a, const tensor& b, closeness how = {});

/// How an element of one tensor compares with that of another.
enum class comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };

/// Which elements of `a` compare so with those of `b`: a tensor of bool in local memory. Where the shapes are not the
/// same, both are broadcast, as by tensor::broadcast_to, to the least that holds both. A NaN is not_equal to
/// everything, and nothing else.
/// Throws errc::invalid_argument for shapes that do not fit, for two dtypes, and for complex numbers asked for their
/// order.
[[nodiscard]] tensor compare(const tensor& a, comparison how, const tensor& b);

/// The same with one number. It may be of another type; throws errc::invalid_argument where tensor::fill would not
/// take it.
template <tensor_element T>
[[nodiscard]] tensor compare(const tensor& a, comparison how, T number) {
  const auto one = tensor::empty(a.dtype(), {}, memory::local);
  one.fill(number);
  return compare(a, how, one);
}

/// Which elements of `a` are close to those of `b`; shapes and errors as of compare.
[[nodiscard]] tensor is_close(const tensor& a, const tensor& b, closeness how = {});

/// How many elements are not zero, or true.
[[nodiscard]] std::size_t count_nonzero(const tensor& what);
/// Whether there is an element that is not zero, or true.
[[nodiscard]] bool any(const tensor& what);
/// Whether there is none that is zero, or false; true of an empty tensor.
[[nodiscard]] bool all(const tensor& what);

}  // namespace muster
