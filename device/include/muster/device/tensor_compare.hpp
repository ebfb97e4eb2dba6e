// SPDX-License-Identifier: BSL-1.0
#pragma once

// Whether two tensors hold the same numbers, and where. There is no operator==: it could as well compare handles, or
// elements one by one.
//
// Thread safety: all functions are safe to call from any thread, while nobody writes the elements.
// Cost: one pass over the elements, which ends where the answer is known.

#include <muster/device/tensor.hpp>

namespace muster {

/// How far apart numbers may be that count as close: |a - b| <= absolute + relative * |b|.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct closeness {
  double relative = 1e-5;
  double absolute = 1e-8;
};

/// Same dtype, same shape, same elements. A NaN is equal to nothing; zeros of either sign are equal.
[[nodiscard]] bool equal(const tensor& a, const tensor& b);

/// Same dtype, same shape, and all elements close to one another. Infinities are close to themselves, NaNs to nothing.
[[nodiscard]] bool all_close(const tensor& a, const tensor& b, closeness how = {});

enum class comparison { equal, not_equal, less, less_equal, greater, greater_equal };

/// Which elements of `a` compare so with those of `b`: a tensor of bool in the shape of `a`, in local memory. `b` is of
/// the shape of `a`, or has one element, with which all are compared. A NaN is not_equal to everything, and nothing
/// else.
/// Throws errc::invalid_argument for other shapes, for two dtypes, and for complex numbers asked for their order.
[[nodiscard]] tensor compare(const tensor& a, comparison how, const tensor& b);

/// How many elements are not zero, or true.
[[nodiscard]] std::size_t count_nonzero(const tensor& what);
/// Whether there is an element that is not zero, or true.
[[nodiscard]] bool any(const tensor& what);
/// Whether there is none that is zero, or false; true of an empty tensor.
[[nodiscard]] bool all(const tensor& what);

}  // namespace muster
