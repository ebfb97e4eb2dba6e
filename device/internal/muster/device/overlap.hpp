// SPDX-License-Identifier: BSL-1.0
#pragma once

// Whether tensors share elements. Bytes are compared and not ranges: the even and the odd columns of a matrix lie in
// one range and overlap nowhere.
//
// Thread safety: pure functions; safe.
// Cost: some comparisons where the memory is not the same, or both are contiguous; else some hundred at most for the
// slices, columns and transposes that programs have. Strides that have nothing to do with one another can take more; it
// ends after 16 384 steps, some tenths of a millisecond.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <muster/device/tensor.hpp>

namespace muster {

/// How the elements of two tensors lie to one another.
enum class overlap : std::uint8_t {
  none,    ///< no byte is part of both
  same,    ///< both have one dtype and shape, and each element is its counterpart in the other
  partial  ///< some bytes are part of both, in other places; or too many steps would tell
};

/// Throws errc::forked in a forked child that has not the memory of one. Tensors without elements overlap nothing.
[[nodiscard]] overlap overlap_of(const tensor& a, const tensor& b);

/// Whether two elements lie in one place, as those of broadcast_to() do; or too many steps would tell.
[[nodiscard]] bool repeats_elements(const tensor& which);

/// The row of `whole` with which `part` begins, where it is some of its rows: whole.slice(row, row + part.rows()). A
/// tensor without dimensions is one row. Nothing where it is not, and where rows of `whole` lie in one place.
/// Requires: rows of both have the same dtype and shape.
[[nodiscard]] std::optional<std::size_t> first_row_in(const tensor& whole, const tensor& part);

/// Addresses, of the host or of a device.
struct address_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  ///< behind the last byte
};

/// Between which all elements lie. Requires: there are some.
[[nodiscard]] address_range range_of(const tensor& which);

/// "the input, f32 (10,), lies at bytes 4 to 44, and the output, f32 (10,), at bytes 0 to 40 of the same memory".
/// `name`, `other_name`: of the tensors. Requires: they overlap.
[[nodiscard]] std::string describe_overlap(std::string_view name, const tensor& which, std::string_view other_name,
                                           const tensor& other);

/// "the output, f32 (10, 4) with strides (0, 1), has several elements in one place".
[[nodiscard]] std::string describe_repetition(std::string_view name, const tensor& which);

namespace detail {

/// What an operation reads that writes `to` as it goes: `from`, or a copy of it where they overlap in part.
///
/// Thread safety: an object belongs to one thread.
/// Lifetime: borrows `from`.
class apart_source {
public:
  /// Throws errc::out_of_memory.
  apart_source(const tensor& to, const tensor& from);
  apart_source(const apart_source&) = delete;
  apart_source& operator=(const apart_source&) = delete;

  [[nodiscard]] const tensor& operator*() const noexcept { return copy_ ? *copy_ : from_; }

private:
  const tensor& from_;
  std::optional<tensor> copy_;
};

}  // namespace detail

}  // namespace muster
