// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace muster {

/// Makes room for so many more elements, which push_back() then adds without allocating. Unlike reserve(size() + more),
/// which moves all elements each time, it grows by half of what there is at least: n calls take O(n) time together.
///
/// Thread safety: as of the vector's own functions.
template <class Vector>
void make_room(Vector& of, std::size_t more = 1) {
  const auto needed = of.size() + more;
  if (of.capacity() < needed) of.reserve(std::max(needed, of.size() + of.size() / 2));
}

}  // namespace muster
