// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>

namespace muster::detail {

/// What a run of bytes is filled with, again and again: an element, as often as it fits.
using fill_pattern = std::array<std::byte, 16>;

/// Requires: the element's size divides the pattern's.
///
/// Thread safety: safe.
template <class T>
[[nodiscard]] fill_pattern pattern_of(const T& element) noexcept {
  std::array<T, sizeof(fill_pattern) / sizeof(T)> same;
  same.fill(element);
  return std::bit_cast<fill_pattern>(same);
}

/// Fills the run with the pattern, beginning with its first byte. A long run goes past the caches: nobody who reads it
/// later would find its begin there, and a line that is not read before it is written is half the way to memory.
///
/// Thread safety: distinct runs: safe.
void fill_run(std::byte* to, std::size_t bytes, const fill_pattern& with) noexcept;

}  // namespace muster::detail
