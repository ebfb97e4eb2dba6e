// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster::detail {

template <class T, class Deleter = std::default_delete<T>>
class owning_list;

/// A place in one owning_list at a time. A base of what is kept there.
///
/// Thread safety: the list's.
template <class T>
class list_link {
private:
  template <class Each, class Deleter>
  friend class owning_list;

  T* next_in_list_ = nullptr;
};

/// Objects with a list_link, which it owns, first in, first out. Adding and removing one allocates nothing.
///
/// Not Boost's intrusive list: futures, which hold such objects, would bring its headers into every program.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class T, class Deleter>
class owning_list {
public:
  using pointer = std::unique_ptr<T, Deleter>;

  owning_list() = default;
  owning_list(const owning_list&) = delete;
  owning_list& operator=(const owning_list&) = delete;
  ~owning_list() {
    while (pop_front() != nullptr) continue;
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void push_back(pointer each) noexcept {
    T* const added = each.release();
    link(*added).next_in_list_ = nullptr;
    append(added, added);
    ++size_;
  }
  /// Null when it is empty.
  [[nodiscard]] pointer pop_front() noexcept {
    if (first_ == nullptr) return nullptr;
    pointer first(first_);
    first_ = link(*first).next_in_list_;
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return first;
  }
  /// Moves all of `other` behind its own.
  void take(owning_list& other) noexcept {
    if (other.empty()) return;
    append(std::exchange(other.first_, nullptr), std::exchange(other.last_, nullptr));
    size_ += std::exchange(other.size_, 0);
  }

private:
  static list_link<T>& link(T& of) noexcept { return of; }

  void append(T* first, T* last) noexcept {
    if (last_ != nullptr) {
      link(*last_).next_in_list_ = first;
    } else {
      first_ = first;
    }
    last_ = last;
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace muster::detail
