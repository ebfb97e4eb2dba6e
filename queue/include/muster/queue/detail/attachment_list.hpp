// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <muster/memory/detail/shared_block.hpp>

namespace muster {

/// The blocks that go with a frame, kept while it is under way: mostly none, seldom more than one. Of the size of a
/// pointer, because every pending task has one.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: up to one block needs no allocation.
class attachment_list {
public:
  attachment_list() noexcept = default;
  /// With room for `count` blocks.
  explicit attachment_list(std::size_t count) {
    if (count > 1) tagged_ = reinterpret_cast<char*>(new shared_block[count]) + array_tag;
  }
  attachment_list(attachment_list&& other) noexcept : tagged_(std::exchange(other.tagged_, nullptr)) {}
  attachment_list& operator=(attachment_list&& other) noexcept {
    auto taken = std::move(other);
    std::swap(tagged_, taken.tagged_);
    return *this;
  }
  ~attachment_list() {
    if (tagged_ != nullptr) free();
  }

  /// Whether it has neither blocks nor room for several.
  [[nodiscard]] bool empty() const noexcept { return tagged_ == nullptr; }
  /// Requires: there is room for it; there is no `index`-th block yet; `what` is not empty.
  void set(std::size_t index, shared_block what) noexcept {
    if (is_array()) {
      array()[index] = std::move(what);
    } else {
      tagged_ = static_cast<char*>(what.release());
    }
  }

private:
  static constexpr std::size_t array_tag = 1;  // an odd address; else it is the one block

  [[nodiscard]] bool is_array() const noexcept { return reinterpret_cast<std::uintptr_t>(tagged_) % 2 == array_tag; }
  [[nodiscard]] shared_block* array() const noexcept { return reinterpret_cast<shared_block*>(tagged_ - array_tag); }
  void free() noexcept {
    if (is_array()) {
      delete[] array();
    } else {
      static_cast<void>(shared_block::readopt(tagged_));
    }
  }

  char* tagged_ = nullptr;
};

}  // namespace muster
