// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <iosfwd>

#include <muster/device/tensor.hpp>

namespace muster {

/// Prints the elements in nested brackets, then the dtype; of more than a thousand only three at each end of every
/// dimension, and then the shape. All is written as NumPy 1 does: numbers with the fewest digits that tell each from
/// its neighbours in its type, at most eight after the point, the points below one another; bools as True and False;
/// lines of 75 characters at most, unless one element is longer.
///
///     tensor([[1, 2],
///             [3, 4]], i32)
///
/// Thread safety: safe to call from any thread, while nobody writes the elements.
std::ostream& operator<<(std::ostream& out, const tensor& what);

}  // namespace muster
