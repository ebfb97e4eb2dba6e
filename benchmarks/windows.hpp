// SPDX-License-Identifier: BSL-1.0
#pragma once

// Many tasks under way at a time.

#include <cstddef>
#include <vector>

#include "workloads.hpp"

namespace bench {

inline constexpr std::size_t window = 256;

/// Keeps `window` futures under way.
template <class Submit>
void run_window(std::size_t count, Submit submit) {
  std::vector<decltype(submit())> under_way(window);
  for (std::size_t index = 0; index < count; ++index) {
    auto& slot = under_way[index % window];
    if (slot.valid()) slot.get();
    slot = submit();
  }
  for (auto& each : under_way) {
    if (each.valid()) each.get();
  }
}

inline int added(int a, int b) { return a + b; }

inline side window_on(const muster::pool& pool) {
  return {.name = "apply_async",
          .run = [&pool](std::size_t count) { run_window(count, [&] { return pool.apply_async(added, 2, 3); }); }};
}

}  // namespace bench
