// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace bench {

/// The bounded queue between threads that everybody writes first: a ring under a mutex, and two conditions.
template <class T>
class mutex_ring {
public:
  explicit mutex_ring(std::size_t capacity) : cells_(capacity) {}

  void push(const T& value) {
    {
      std::unique_lock lock(mutex_);
      there_is_room_.wait(lock, [this] { return count_ < cells_.size(); });
      cells_[(first_ + count_) % cells_.size()] = value;
      ++count_;
    }
    there_is_one_.notify_one();
  }

  T pop() {
    std::unique_lock lock(mutex_);
    there_is_one_.wait(lock, [this] { return count_ > 0; });
    const auto value = cells_[first_];
    first_ = (first_ + 1) % cells_.size();
    --count_;
    lock.unlock();
    there_is_room_.notify_one();
    return value;
  }

private:
  std::mutex mutex_;
  std::condition_variable there_is_one_;
  std::condition_variable there_is_room_;
  std::vector<T> cells_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace bench
