// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a share of a call does alike on the host and on devices, and what it does on devices.
//
// Thread safety: pure functions; safe.

#include <cstddef>
#include <span>
#include <vector>

#include <muster/collectives/reduction.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/detail/device_rule_pass.hpp>
#include <muster/parallel/detail/rank_variable.hpp>
#include <muster/parallel/detail/share_run.hpp>
#include <muster/parallel/output_op.hpp>

namespace muster::detail {

[[nodiscard]] reduction_op reduction_of(output_op op);

/// What was offered of one update, by the ranks that had rows.
/// Lifetime: borrows the values.
struct joined_contributions {
  std::vector<const tensor*> values;
  std::vector<double> weights;
};
[[nodiscard]] joined_contributions join(std::span<const std::vector<contribution>> offered, std::size_t which,
                                        output_op op);

/// What the host has for a rank's copy on its device: all of the rank's, or of what a rule remembers the rank's part.
[[nodiscard]] tensor value_here(const rank_variable& variable, named_copy live, std::size_t rank, std::size_t ranks);

/// Elements [first, last) of a contiguous tensor, in one dimension.
[[nodiscard]] tensor elements(const tensor& which, row_range part);

}  // namespace muster::detail
