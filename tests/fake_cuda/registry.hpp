// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "failure.hpp"

namespace fake_cuda {

/// A number that no handle has had before, nor NULL or what cuda.h takes for special streams.
inline std::uintptr_t next_handle() {
  static std::atomic<std::uintptr_t> last = 0x1000;
  return last += 0x10;
}

/// Live objects by handle. Handles are never used again, so that stale ones are found out.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Handle, class Object>
class registry {
public:
  Handle add(std::shared_ptr<Object> object) {
    const std::scoped_lock lock(mutex_);
    const auto handle = next_handle();
    objects_.emplace(handle, std::move(object));
    return as_handle(handle);
  }

  /// Throws `otherwise`.
  [[nodiscard]] std::shared_ptr<Object> find(Handle handle, CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) const {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(as_number(handle));
    require(found != objects_.end(), otherwise);
    return found->second;
  }

  [[nodiscard]] bool has(Handle handle) const {
    const std::scoped_lock lock(mutex_);
    return objects_.contains(as_number(handle));
  }

  std::shared_ptr<Object> remove(Handle handle, CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(as_number(handle));
    require(found != objects_.end(), otherwise);
    auto removed = std::move(found->second);
    objects_.erase(found);
    return removed;
  }

  template <class Predicate>
  std::vector<std::shared_ptr<Object>> remove_if(const Predicate& is_meant) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<Object>> removed;
    for (auto at = objects_.begin(); at != objects_.end();) {
      if (is_meant(*at->second)) {
        removed.push_back(std::move(at->second));
        at = objects_.erase(at);
      } else {
        ++at;
      }
    }
    return removed;
  }

  [[nodiscard]] std::vector<std::shared_ptr<Object>> all() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<Object>> found;
    for (const auto& [handle, object] : objects_) found.push_back(object);
    return found;
  }

  [[nodiscard]] std::size_t count() const {
    const std::scoped_lock lock(mutex_);
    return objects_.size();
  }

private:
  static Handle as_handle(std::uintptr_t number) {
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<Handle>(number);
    else
      return static_cast<Handle>(number);
  }
  static std::uintptr_t as_number(Handle handle) {
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<std::uintptr_t>(handle);
    else
      return static_cast<std::uintptr_t>(handle);
  }

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<Object>> objects_;
};

}  // namespace fake_cuda
