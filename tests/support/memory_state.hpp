// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/memory/domain.hpp>

namespace muster::test {

/// Nothing of the domain is in use: no block, no hold, no descriptor but those of cached runs.
[[nodiscard]] inline bool is_all_free(domain& where) {
  const auto found = where.blocks().read_statistics();
  return found.live_blocks == 0 && found.holds == 0 && found.held_bytes == found.cached_bytes &&
         where.keepsakes().size() == 0;
}

}  // namespace muster::test
