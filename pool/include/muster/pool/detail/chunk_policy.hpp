// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <muster/base/detail/duration.hpp>

namespace muster::detail {

/// How many elements the next chunk of a map gets.
///
/// It works as follows. A chunk should take about `target`: long enough that its fixed cost of about a microsecond is
/// nothing, short enough that workers end together. How long an element takes is measured; the first chunks have one
/// element and the size grows at most 32-fold at a time, so one quick element does not mislead. Near the end a chunk
/// gets at most half a worker's share of what is left (guided self-scheduling, Polychronopoulos and Kuck, 1987), but no
/// less than `least` takes.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class chunk_policy {
public:
  static constexpr std::chrono::nanoseconds target = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds least = std::chrono::microseconds(20);

  struct limits {
    std::size_t workers = 1;
    std::size_t given = 0;  ///< a fixed size; 0: by time
    std::size_t most = 0;   ///< never more; 0: no such limit
  };

  explicit chunk_policy(limits settings) noexcept : limits_(settings) {}

  /// The size of the next chunk when `remaining` elements are left, or nobody knows how many (SIZE_MAX).
  /// Requires: remaining > 0. The result is between 1 and remaining.
  [[nodiscard]] std::size_t next(std::size_t remaining) const noexcept;

  /// So many workers share the elements from now on. Requires: workers > 0.
  void set_workers(std::size_t workers) noexcept { limits_.workers = workers; }
  /// Learns from a chunk that is done.
  void observe(std::size_t elements, std::chrono::nanoseconds elapsed) noexcept;

private:
  [[nodiscard]] std::size_t elements_in(std::chrono::nanoseconds time) const noexcept;

  limits limits_;
  double element_nanoseconds_ = 0;  // 0: nothing observed yet
  std::size_t ceiling_ = 1;         // by growth
};

}  // namespace muster::detail
