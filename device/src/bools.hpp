// SPDX-License-Identifier: BSL-1.0
#pragma once

// Bools that lie side by side, as bytes: of those that come from elsewhere any but 0 is true.
//
// Thread safety: safe for distinct elements.

#include <cstddef>

namespace muster::detail {

/// Writes 1 for each that is true and 0 for the others. They may overlap.
void copy_bools(std::byte* to, const std::byte* from, std::size_t count) noexcept;

/// The greatest of the bytes; 0 of none. All are C++'s bools where it is 0 or 1.
[[nodiscard]] unsigned greatest_byte(const std::byte* first, std::size_t count) noexcept;

}  // namespace muster::detail
