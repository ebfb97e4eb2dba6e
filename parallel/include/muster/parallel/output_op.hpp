// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string_view>

#include <muster/collectives/reduction.hpp>

namespace muster {

/// How one value comes of those of all slices and ranks of a call. Stable values: they cross processes.
///
/// Thread safety: a value; safe.
enum class output_op : std::uint8_t {
  avg = 0,  ///< the mean, weighted by how many rows each value is of. Of integers: floating-point (f64)
  sum = 1,  ///< floating-point numbers are added as f64, and rounded once; integers wrap around. Of tensors of bools:
            ///< whether any is true, as of reduction_op; count_true says how many are
  prod = 2,
  min = 3,
  max = 4,
  gather = 5,         ///< tensors: one after the other along the first dimension, by rank, then by slice
  none = 6,           ///< all of them, by rank, then by slice: one for each that has rows. Tensors of less than 64 KiB,
                      ///< which is what shared memory comes in, are in memory::local then
  mean_of_ranks = 7,  ///< the mean of the ranks' means, however many rows each had
  count_true = 8,     ///< how many are true, or not 0: std::int64_t; of tensors i64, element by element
};

/// As the enumerator is called. Any other number gives "unknown".
[[nodiscard]] std::string_view output_op_name(output_op op) noexcept;

/// Whether there is a value for no rows at all: 0 (sum, count_true), 1 (prod), or nothing (gather, none). Of tensors
/// neither dtype nor shape is known then: it is f32, for count_true i64, without dimensions, and for gather f32 of
/// shape (0).
[[nodiscard]] constexpr bool has_identity(output_op op) noexcept {
  return op == output_op::sum || op == output_op::prod || op == output_op::gather || op == output_op::none ||
         op == output_op::count_true;
}

}  // namespace muster
