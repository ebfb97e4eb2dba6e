// SPDX-License-Identifier: BSL-1.0
#pragma once

// What combine.cpp and the units that are compiled for one instruction set each know of one another.
//
// Thread safety: pure functions; safe.

#include <cstddef>

#include <muster/collectives/detail/combine.hpp>

namespace muster::detail {

/// The pieces in which arrays are gone through.
inline constexpr std::size_t chunk_bytes = 8192;

/// What a kernel is to do. Requires: an input or more, an output, an element.
struct combine_job {
  const std::byte* const* inputs;
  std::size_t input_count;
  std::byte* const* outputs;
  std::size_t output_count;
  std::size_t count;
  stores how;
};

/// Does the job; streaming stores are not fenced.
using combine_kernel = void (*)(const combine_job& job);

/// Gives the kernel of an op and a dtype, or null where there is none.
using combine_kernels = combine_kernel (*)(reduction_op op, dtype type);

/// For any processor that the library was built for.
combine_kernel baseline_kernel(reduction_op op, dtype type);

/// For processors with AVX2 and F16C. Requires: has_avx2().
combine_kernel avx2_kernel(reduction_op op, dtype type);

/// `combine` with the kernels of one instruction set.
void combine_by(combine_kernels kernels, const reduction& how, dtype type, std::span<const std::byte* const> inputs,
                std::span<std::byte* const> outputs, std::size_t count, stores how_to_store);

}  // namespace muster::detail
