// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <muster/memory/detail/block.hpp>

namespace muster {

namespace detail {

/// What one process knows of a block that it has: one object for all its handles that came of one another.
struct holding {
  enum class manner : std::uint8_t {
    alone,    ///< no other process knows the block
    held,     ///< counted: the block lives on whatever others do
    borrowed  ///< somebody else keeps it alive meanwhile
  };

  arena* owner = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::atomic<std::uint32_t> handles = 1;
  // What follows is changed under the arena's mutex. A block that is not alone is known to others by the name that it
  // has then, and keeps it: who reads that it is not needs no lock to read the name.
  std::atomic<manner> how = manner::alone;
  block_ref block;
  std::uint32_t hold = 0;  // the descriptor of the hold
};

}  // namespace detail

/// A handle of a piece of the arena that several processes may have at once. Copies of it share the memory; when the
/// last process has let go of it the memory is free.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe. The bytes need their own discipline.
/// Process safety: a process that dies lets go of all it held, at whatever instruction; the others notice nothing.
/// Lifetime: borrows the arena, which must outlive all handles.
/// Cost: a copy is one uncontended increment in this process.
class shared_block {
public:
  shared_block() noexcept = default;
  shared_block(const shared_block& other) noexcept : holding_(other.holding_) {
    if (holding_ != nullptr) holding_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  shared_block(shared_block&& other) noexcept : holding_(std::exchange(other.holding_, nullptr)) {}
  shared_block& operator=(shared_block other) noexcept {
    std::swap(holding_, other.holding_);
    return *this;
  }
  ~shared_block() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept { return holding_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return holding_ != nullptr ? holding_->data : nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return holding_ != nullptr ? holding_->bytes : 0; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data(), size()}; }
  /// The arena that it is of; nullptr for an empty handle.
  [[nodiscard]] arena* owner() const noexcept { return holding_ != nullptr ? holding_->owner : nullptr; }
  /// Whether this is the only handle that came of this process's hold.
  [[nodiscard]] bool is_unique() const noexcept {
    return holding_ != nullptr && holding_->handles.load(std::memory_order_acquire) == 1;
  }

  void reset() noexcept {
    auto* const left = std::exchange(holding_, nullptr);
    if (left != nullptr && left->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) let_go(left);
  }

  /// The handle as a pointer to something aligned, for whoever wants the lowest bits for himself; readopt() makes it a
  /// handle again, once. Requires: not empty.
  [[nodiscard]] void* release() noexcept { return std::exchange(holding_, nullptr); }
  [[nodiscard]] static shared_block readopt(void* released) noexcept {
    return shared_block(static_cast<detail::holding*>(released));
  }

private:
  friend class arena;
  explicit shared_block(detail::holding* taken) noexcept : holding_(taken) {}
  static void let_go(detail::holding* left) noexcept;

  detail::holding* holding_ = nullptr;
};

}  // namespace muster
