// SPDX-License-Identifier: BSL-1.0
#pragma once

// For programs that link allocations.cpp, whose operators new all their allocations come by.

#include <cstddef>

namespace muster::test {

/// Of all threads since the program began.
[[nodiscard]] std::size_t allocations() noexcept;
/// Of this one.
[[nodiscard]] std::size_t own_allocations() noexcept;

/// Threads whose allocations a failing_allocation counts.
enum class allocating_threads {
  caller,      ///< the thread that made it
  supervisor,  ///< the library's thread that watches workers
  others       ///< all but these two
};

/// Makes one allocation fail, the `index`-th of those threads while it exists: operator new throws std::bad_alloc.
///
/// Thread safety: one exists at a time.
class failing_allocation {
public:
  failing_allocation(allocating_threads of, std::size_t index);
  failing_allocation(const failing_allocation&) = delete;
  failing_allocation& operator=(const failing_allocation&) = delete;
  ~failing_allocation();

  /// Whether there were enough allocations for one to fail.
  [[nodiscard]] bool has_failed() const noexcept;
};

}  // namespace muster::test
