// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tensors as kernels take them: few dimensions, and packs where there can be some.
//
// Thread safety: pure functions; safe.

#include <cstddef>
#include <cstdint>

#include "kernel_arguments.hpp"
#include "kernel_set.hpp"

namespace muster::detail {

/// An address on a device, as kernels are told it.
[[nodiscard]] inline std::byte* device_pointer(CUdeviceptr address) noexcept {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): the device's, not ours
}

[[nodiscard]] bool is_complex_type(dtype type) noexcept;
/// What the parts of complex numbers are; of others, what they are themselves.
[[nodiscard]] dtype part_type(dtype type) noexcept;

/// How the elements of two views are made pairs.
struct pairing {
  bool by_parts = false;  ///< complex numbers as two elements each
  bool in_order = false;  ///< index 0, 1, 2, … is row-major order; else whichever order goes well through memory
};

/// The elements of `to`, and those of `from` in the same places, in no packs. Dimensions of one element are left out,
/// and such are joined as lie one in another. Requires: the same shape, of at least one element.
[[nodiscard]] kernel_elements paired(const cuda_view& to, const cuda_view& from, pairing how = {});

/// Whether the elements of both lie side by side, in the order of their indexes.
[[nodiscard]] bool are_adjacent(const kernel_elements& elements, std::size_t to_bytes, std::size_t from_bytes) noexcept;

/// Elements of those sizes in packs, if they can be: of pack_size, aligned.
void set_packs(kernel_elements& elements, std::size_t to_bytes, std::size_t from_bytes) noexcept;

/// The largest of 1, 2, 4, 8 and 16 bytes in units of which these can be copied: elements become such units.
/// Requires: both have elements of `bytes`.
[[nodiscard]] std::uint32_t widen(kernel_elements& elements, std::size_t bytes) noexcept;

/// How many times a kernel does something: with a pack, or with an element.
[[nodiscard]] std::uint64_t items_of(const kernel_elements& elements, std::size_t largest_bytes) noexcept;

}  // namespace muster::detail
