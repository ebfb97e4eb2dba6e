// SPDX-License-Identifier: BSL-1.0
#pragma once

// The arithmetic of reductions: several arrays become one, which is written wherever it is wanted.
//
// Thread safety: distinct objects: safe; threads, and processes, may combine different ranges of the same arrays at
// once. Shared objects: the elements need their own discipline.

#include <cstddef>
#include <span>

#include <muster/collectives/reduction.hpp>
#include <muster/device/detail/stores.hpp>
#include <muster/device/dtype.hpp>

namespace muster::detail {

/// Element i of every output becomes in[0][i] ∘ in[1][i] ∘ …, in this order, as `how` says of elements of dtype `type`;
/// with one input, a copy of it. Of bools every byte but 0 is true, and results are 0 or 1.
///
/// The result depends on the inputs alone, to the bit, but for which NaN a sum, average or product is: not on the
/// processor, on the thread's floating-point state, which stays as it is, on `how_to_store`, on alignment, or on how a
/// longer array was cut into calls. A function of the program's own is called in that state.
/// f16 and bf16 are accumulated in float and rounded once. avg divides once by the number of inputs: f16, bf16 and f32
/// in float, f64 in double, integers of up to 32 bits in 64 bits, those of 64 bits in 128.
/// Where an output is an input it is in the caches anyway, and all stores are normal.
///
/// Inputs and outputs are arrays of `count` elements, aligned as their type wants. An output may be the same memory as
/// an input; else an output overlaps nothing.
/// Throws errc::invalid_argument where `how` is not for `type`, with nothing written; and what a function of the
/// program's own throws, after which the outputs have whole new elements up to some place and none after it.
/// Visibility: whoever acquires what this thread released afterwards sees the results, however they were stored.
/// Requires: an input.
/// Works as follows: a piece that stays in the first cache is accumulated over all inputs, then written to all outputs.
/// Two inputs for one or two outputs go through registers only.
/// Cost: each input is read once and each output written once; 8 KiB of stack, no allocation.
void combine(const reduction& how, dtype type, std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs, std::size_t count, stores how_to_store);

/// Copies bytes between places that are the same, or do not overlap. Visibility as of `combine`.
void copy(std::byte* to, const std::byte* from, std::size_t bytes, stores how);

/// `copy` without its fence.
void put(std::byte* to, const std::byte* from, std::size_t bytes, stores how) noexcept;

/// After streaming stores: whatever is stored next is seen after them.
void fence(stores how) noexcept;

/// Whether this processor runs what is compiled for AVX2 and F16C, and there is such code.
[[nodiscard]] bool has_avx2() noexcept;

}  // namespace muster::detail
