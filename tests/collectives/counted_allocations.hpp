// SPDX-License-Identifier: BSL-1.0
#pragma once

// For programs that link counted_allocations.cpp: all of their operators new come by there.

#include <cstddef>

namespace muster::test {

/// Of all threads since the program began.
[[nodiscard]] std::size_t allocations() noexcept;
/// Of this one.
[[nodiscard]] std::size_t own_allocations() noexcept;

}  // namespace muster::test
