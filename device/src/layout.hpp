// SPDX-License-Identifier: BSL-1.0
#pragma once

// Where elements lie, worked out from numbers that may come from anywhere: nothing here overflows.
//
// Thread safety: pure functions; safe.

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <muster/device/dtype.hpp>
#include <muster/device/tensor_shape.hpp>

namespace muster::detail {

/// What contiguous elements take, or nothing where that is more than there are addresses. Sizes beside one of 0 count
/// as well: strides are made of them.
[[nodiscard]] std::optional<std::size_t> bytes_of(dtype type, const tensor_shape& shape) noexcept;

/// As bytes_of; throws errc::invalid_argument where that gives nothing.
[[nodiscard]] std::size_t require_bytes_of(dtype type, const tensor_shape& shape);

/// Requires: bytes_of gives something for that shape.
[[nodiscard]] std::size_t count_of(const tensor_shape& shape) noexcept;

/// Requires: bytes_of gives something for that shape.
[[nodiscard]] tensor_strides row_major(const tensor_shape& shape) noexcept;

/// Strides of dimensions of one element do not matter, nor any where there are no elements.
[[nodiscard]] bool is_row_major(const tensor_shape& shape, const tensor_strides& strides) noexcept;

/// The shape in which those of both are compared: last dimensions stand below one another, and where only one has a
/// dimension, or one has a size of 1 there, the other's size counts. Nothing where two other sizes meet.
[[nodiscard]] std::optional<tensor_shape> broadcast(const tensor_shape& a, const tensor_shape& b) noexcept;

/// The bytes, counted from the first element's address, that elements lie in.
struct byte_reach {
  std::ptrdiff_t first = 0;  ///< not positive
  std::ptrdiff_t last = 0;   ///< where the furthest element ends
};

/// Nothing where that is more than there are addresses; so the length of what is found does not overflow either.
[[nodiscard]] std::optional<byte_reach> reach_of(dtype type, const tensor_shape& shape,
                                                 const tensor_strides& strides) noexcept;

/// Elements whose first is `offset_bytes` into some memory.
struct placement {
  dtype type = dtype::f32;
  tensor_shape shape;
  tensor_strides strides;
  std::size_t offset_bytes = 0;
};

/// What addresses of elements are multiples of.
[[nodiscard]] std::size_t alignment_of(dtype type) noexcept;

/// Whether these elements can lie in `bytes`.
[[nodiscard]] bool fits(const placement& what, std::span<const std::byte> bytes) noexcept;

/// The same, of row-major ones that take `needed` bytes.
[[nodiscard]] bool fits_in_a_row(const placement& what, std::size_t needed, std::span<const std::byte> bytes) noexcept;

/// Why they cannot. Requires: !fits(what, bytes).
[[nodiscard]] std::string problem_of(const placement& what, std::span<const std::byte> bytes);

}  // namespace muster::detail
