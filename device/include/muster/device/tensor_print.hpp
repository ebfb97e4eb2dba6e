// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <iosfwd>

#include <muster/device/tensor.hpp>

namespace muster {

/// Prints the elements in nested brackets, then the dtype; of more than a thousand only three at each end of every
/// dimension, and then the shape. Numbers are written as NumPy 1 does: the fewest digits that tell each from its
/// neighbours in its type, at most eight after the point, the points below one another.
///
///     tensor([[1, 2],
///             [3, 4]], i32)
///
/// Thread safety: safe to call from any thread, while nobody writes the elements.
std::ostream& operator<<(std::ostream& out, const tensor& what);

}  // namespace muster
