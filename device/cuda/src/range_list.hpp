// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace muster::detail {

/// Which parts of a piece of memory are free: first fit in the smallest range that fits, neighbours joined again.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: logarithmic in the number of free ranges, but taking, which looks at those until one fits exactly.
class range_list {
public:
  /// All is free.
  explicit range_list(std::size_t bytes) : size_(bytes) { ranges_.emplace(0, bytes); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t free_bytes() const noexcept { return free_bytes_of(ranges_); }
  [[nodiscard]] bool is_all_free() const noexcept { return ranges_.size() == 1 && ranges_.begin()->second == size_; }

  /// Where so many bytes can be had, which are taken then.
  [[nodiscard]] std::optional<std::size_t> take(std::size_t bytes);
  /// Requires: these were taken together.
  void give_back(std::size_t offset, std::size_t bytes);

private:
  using by_offset = std::map<std::size_t, std::size_t>;  // to bytes
  [[nodiscard]] static std::size_t free_bytes_of(const by_offset& ranges) noexcept;

  std::size_t size_;
  by_offset ranges_;
};

}  // namespace muster::detail
