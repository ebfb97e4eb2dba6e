// SPDX-License-Identifier: BSL-1.0
#pragma once

// Sums of tensors in double: what averages and sums of several slices and ranks are computed in.
//
// Thread safety: safe for distinct elements.

#include <cstddef>
#include <span>

#include <muster/device/dtype.hpp>

namespace muster::detail {

/// Complex numbers are two numbers each.
[[nodiscard]] std::size_t numbers_of(dtype type, std::size_t elements) noexcept;

/// Each of `sums` grows by `weight` times its counterpart in an array of dtype `type`.
void add_scaled(std::span<double> sums, const std::byte* values, dtype type, double weight);

/// Writes sums ÷ divisor as elements of a floating-point or complex dtype, rounded; the types of 16 bits by way of
/// float.
void write_divided(std::byte* values, dtype type, std::span<const double> sums, double divisor);

}  // namespace muster::detail
