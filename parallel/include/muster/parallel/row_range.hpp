// SPDX-License-Identifier: BSL-1.0
#pragma once

// How rows are dealt out: to ranks, and within a rank to the slices of a call.

#include <cstddef>

#include <muster/base/requirements.hpp>

namespace muster {

/// Rows from `first` to before `last`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct row_range {
  std::size_t first = 0;  ///< the first row, counted from 0
  std::size_t last = 0;   ///< the first row that is no part of it

  [[nodiscard]] constexpr std::size_t size() const noexcept { return last - first; }
  [[nodiscard]] constexpr bool empty() const noexcept { return first == last; }
  [[nodiscard]] friend constexpr bool operator==(const row_range&, const row_range&) noexcept = default;
};

/// The part of `whole` that is the `index`th of `parts`: rows first + floor(index·n/parts) to before
/// first + floor((index+1)·n/parts). The one rule by which muster deals out rows: parts differ by one row at most, and
/// together, in order, are the whole. Where there are fewer rows than parts some are empty.
/// Requires: index < parts; n·parts fits into 128 bits, which it does.
[[nodiscard]] constexpr row_range part_of(row_range whole, std::size_t index, std::size_t parts) noexcept {
  __extension__ using wide = unsigned __int128;
  const auto edge = [&](std::size_t at) {
    return whole.first + static_cast<std::size_t>(wide{whole.size()} * at / parts);
  };
  return {.first = edge(index), .last = edge(index + 1)};
}

}  // namespace muster
