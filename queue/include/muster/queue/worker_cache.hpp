// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <memory>
#include <utility>

#include <muster/memory/block.hpp>

namespace muster {

/// Values that a worker decoded from blocks and will need again, because many tasks refer to the same block. The last
/// few are kept, and dropped when the worker goes to sleep.
///
/// Thread safety: an object belongs to the worker's thread.
class worker_cache {
public:
  /// The value made from block `key`, or the one that `make()` makes now. Throws what `make` throws.
  template <class T, class Make>
  [[nodiscard]] std::shared_ptr<T> find_or_make(block_ref key, Make make) {
    for (const auto& each : entries_) {
      if (each.key == key && each.type == type_mark<T>()) return std::static_pointer_cast<T>(each.value);
    }
    auto made = std::make_shared<T>(make());
    entries_[next_] = {.key = key, .type = type_mark<T>(), .value = made};
    next_ = (next_ + 1) % entries_.size();
    return made;
  }

  void clear() noexcept { entries_ = {}; }

private:
  struct entry {
    block_ref key;
    const void* type = nullptr;
    std::shared_ptr<void> value;
  };

  // A different address for each type; within one process that is identity enough.
  template <class T>
  static const void* type_mark() noexcept {
    static const char mark = 0;
    return &mark;
  }

  std::array<entry, 4> entries_;
  std::size_t next_ = 0;
};

}  // namespace muster
