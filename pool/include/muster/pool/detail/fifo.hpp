// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// A row that grows at its end and shrinks at its beginning, in one piece of memory: std::deque, whose header every
/// program with a pool would read.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe. Cost: as std::vector.
template <class T>
class fifo {
public:
  [[nodiscard]] bool empty() const noexcept { return first_ == items_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size() - first_; }

  void push_back(T item) {
    if (first_ > items_.size() / 2) drop_taken();
    items_.push_back(std::move(item));
  }
  /// Requires: !empty().
  [[nodiscard]] T take_front() {
    T item(std::move(items_[first_++]));
    if (empty()) drop_taken();
    return item;
  }
  /// Requires: !empty().
  [[nodiscard]] T& front() noexcept { return items_[first_]; }

  [[nodiscard]] auto begin() noexcept { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  [[nodiscard]] auto end() noexcept { return items_.end(); }

private:
  // What was moved from.
  void drop_taken() noexcept {
    items_.erase(items_.begin(), begin());
    first_ = 0;
  }

  std::vector<T> items_;
  std::size_t first_ = 0;
};

}  // namespace muster::detail
