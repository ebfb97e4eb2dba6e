// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <boost/intrusive/slist.hpp>

namespace muster::detail {

/// Objects with an slist hook, which it owns, first in, first out. Adding and removing one allocates nothing.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class T, class Deleter = std::default_delete<T>>
class owning_list {
public:
  using pointer = std::unique_ptr<T, Deleter>;

  owning_list() = default;
  owning_list(const owning_list&) = delete;
  owning_list& operator=(const owning_list&) = delete;
  ~owning_list() {
    while (pop_front() != nullptr) continue;
  }

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void push_back(pointer each) noexcept {
    all_.push_back(*each.release());
    ++size_;
  }
  /// Null when it is empty.
  [[nodiscard]] pointer pop_front() noexcept {
    if (all_.empty()) return nullptr;
    pointer first(&all_.front());
    all_.pop_front();
    --size_;
    return first;
  }
  /// Moves all of `other` behind its own.
  void take(owning_list& other) noexcept {
    all_.splice_after(all_.empty() ? all_.before_begin() : all_.last(), other.all_);
    size_ += std::exchange(other.size_, 0);
  }

private:
  boost::intrusive::slist<T, boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>> all_;
  std::size_t size_ = 0;
};

}  // namespace muster::detail
