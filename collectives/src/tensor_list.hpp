// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/group_options.hpp>
#include <muster/device/tensor.hpp>

namespace muster::detail {

// Several tensors in one call: they go as one row.

/// Throws errc::invalid_argument unless all are of one type.
void require_one_type(std::span<const tensor> list);

/// Of how many there are, and of the shapes of all.
[[nodiscard]] std::uint64_t fingerprint_of(std::span<const tensor> list);

/// A copy of all of their elements, one tensor's behind the other's, where the first one lies. Of no tensors, no f32.
/// Requires: all are of one type.
[[nodiscard]] tensor joined_row(std::span<const tensor> list);

/// Copies the elements of such a row to where they belong.
void take_apart(const tensor& row, std::span<const tensor> list);

/// Where the lists of tensors differ that ranks call one operation with: "tensor 1 is (2,) on rank 0, (3,) on rank 1,
/// missing on rank 2"; empty where they have as many tensors, of the same shapes. The same on all ranks.
/// Called by all ranks, behind the first exchange of a call that all of them refuse. Throws group_error.
/// Cost: two exchanges for each 60 tensors up to the first that differs, and two more.
[[nodiscard]] std::string difference_of_lists(rank_end& end, const char* operation, const call_options& how,
                                              std::span<const tensor> own);

}  // namespace muster::detail
