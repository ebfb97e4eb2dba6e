// SPDX-License-Identifier: BSL-1.0
#pragma once

// Memory for objects that come and go, of which as many are there at once every time.

#include <cstddef>
#include <memory>
#include <utility>

#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// Pieces of one size, kept for the next when they come back.
///
/// Thread safety: safe.
/// Cost: an uncontended lock; an allocation where no piece has come back, and for sizes other than the first.
class recycled_memory {
public:
  /// It keeps no more.
  static constexpr std::size_t most_kept = 1024;

  recycled_memory() noexcept = default;
  recycled_memory(const recycled_memory&) = delete;
  recycled_memory& operator=(const recycled_memory&) = delete;
  ~recycled_memory();

  /// Aligned as operator new does it.
  [[nodiscard]] void* take(std::size_t bytes) MUSTER_EXCLUDES(mutex_);
  /// Requires: take() gave it, for as many bytes.
  void put_back(void* piece, std::size_t bytes) noexcept MUSTER_EXCLUDES(mutex_);

private:
  struct kept_piece {
    kept_piece* next = nullptr;
  };

  mutex mutex_;
  std::size_t piece_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;  // 0: nothing was taken yet
  kept_piece* kept_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  std::size_t kept_count_ MUSTER_GUARDED_BY(mutex_) = 0;
};

/// For std::allocate_shared: an object and its count take one piece.
///
/// Thread safety: safe.
/// Lifetime: shares the memory, so that objects may outlive whoever made them.
template <class T>
class recycling_allocator {
public:
  using value_type = T;

  explicit recycling_allocator(std::shared_ptr<recycled_memory> from) noexcept : memory_(std::move(from)) {}
  template <class U>
  recycling_allocator(const recycling_allocator<U>& other) noexcept : memory_(other.memory()) {}

  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(memory_->take(count * sizeof(T))); }
  void deallocate(T* left, std::size_t count) noexcept { memory_->put_back(left, count * sizeof(T)); }

  [[nodiscard]] const std::shared_ptr<recycled_memory>& memory() const noexcept { return memory_; }
  template <class U>
  [[nodiscard]] bool operator==(const recycling_allocator<U>& other) const noexcept {
    return memory_ == other.memory();
  }

private:
  std::shared_ptr<recycled_memory> memory_;
};

}  // namespace muster::detail
