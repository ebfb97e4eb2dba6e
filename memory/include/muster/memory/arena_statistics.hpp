// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// Whether memory in big pieces is made of huge pages (2 MiB).
enum class huge_pages : std::uint8_t {
  none,
  /// Where the kernel gives them: fewer page faults and smaller page tables in all processes, for some milliseconds
  /// more per piece when it is populated first. Where it does not, pages are small, and only arena::statistics tells.
  where_possible
};

/// What an arena has given out.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct arena_statistics {
  std::size_t live_blocks = 0;   ///< allocated or adopted here, and not yet released, lent or shared
  std::size_t holds = 0;         ///< of this process, on blocks that are shared
  std::size_t held_bytes = 0;    ///< extents claimed by all processes
  std::size_t cached_bytes = 0;  ///< of those, freed runs kept warm by this one
  std::size_t slab_bytes = 0;    ///< of those, extents that this one has divided into small blocks, free or not
  std::size_t huge_bytes = 0;    ///< made of huge pages by this process so far
  std::size_t warm_bytes = 0;    ///< of those held, freed runs kept warm by all processes; read_participants(): by whom

  /// Of those held: blocks, and extents of small ones.
  [[nodiscard]] std::size_t in_use_bytes() const noexcept {
    return held_bytes > warm_bytes ? held_bytes - warm_bytes : 0;
  }
};

}  // namespace muster
