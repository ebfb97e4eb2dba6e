// SPDX-License-Identifier: BSL-1.0
#pragma once

// The other side of told_program.hpp, without muster: what a peer's program does with its input.

#include <chrono>
#include <cstddef>
#include <functional>
#include <iostream>

namespace bench {

/// Does what it is told until the end of its input. `run(n)` does the thing n times.
inline void obey(const std::function<void(std::size_t)>& run) {
  for (long count = 0; std::cin >> count;) {
    if (count > 0) run(static_cast<std::size_t>(count));
    for (long each = count; each < 0; ++each) {
      const auto start = std::chrono::steady_clock::now();
      run(1);
      std::cout << std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count() << ' ';
    }
    std::cout << std::endl;
  }
}

}  // namespace bench
