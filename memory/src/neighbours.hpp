// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/memory_budget.hpp>
#include <muster/memory/detail/arena.hpp>

namespace muster::detail {

/// While it lives, the other arenas of this process take into account what has been claimed in this one and not been
/// written yet: a program has several domains if it has pools of their own (`isolated`), has joined another, or is a
/// worker that has pools.
///
/// Thread safety: distinct objects: safe.
/// Process safety: a forked child has no neighbours but those that it makes.
/// Lifetime: borrows the arena.
class neighbour {
public:
  explicit neighbour(const arena& which);
  neighbour(const neighbour&) = delete;
  neighbour& operator=(const neighbour&) = delete;
  ~neighbour();

private:
  const arena& which_;
};

/// What memory there is for that arena: of what is available, what its neighbours will take is not.
///
/// Thread safety: safe; also under an arena's lock.
/// Cost: that of available_memory(), and of arena::untouched_bytes() for each neighbour.
[[nodiscard]] memory_budget budget_beside_neighbours(const arena& of);

}  // namespace muster::detail
