// SPDX-License-Identifier: BSL-1.0
#pragma once

// Whether two tensors hold the same numbers. There is no operator==: it could as well compare handles, or elements one
// by one.
//
// Thread safety: all functions are safe to call from any thread, while nobody writes the elements.
// Cost: one pass over the elements, which ends at the first difference.

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

}  // namespace muster
