// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster {

class arena;

/// A block named across processes: trivially copyable, 16 bytes, safe to keep in shared memory because it is checked
/// whenever it is resolved.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct block_ref {
  std::uint32_t descriptor = 0;
  std::uint32_t generation = 0;  ///< 0: names nothing
  std::uint64_t size_bytes = 0;  ///< how much of the block is used; `whole`: all that there is

  static constexpr std::uint64_t whole = UINT64_MAX;

  /// The block in one word, without the size; 0 names nothing.
  [[nodiscard]] constexpr std::uint64_t handle() const noexcept {
    return std::uint64_t{descriptor} << 32U | generation;
  }
  /// The whole block that a handle names.
  [[nodiscard]] static constexpr block_ref of_handle(std::uint64_t handle) noexcept {
    return {.descriptor = static_cast<std::uint32_t>(handle >> 32U),
            .generation = static_cast<std::uint32_t>(handle),
            .size_bytes = whole};
  }

  [[nodiscard]] constexpr explicit operator bool() const noexcept { return generation != 0; }
  friend constexpr bool operator==(const block_ref&, const block_ref&) noexcept = default;
};

/// Owns a piece of the arena and releases it.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Process safety: one process owns a block at a time. When it dies its blocks are freed, except those that another
/// process has adopted by then.
/// Lifetime: borrows the arena, which must outlive the block.
class block {
public:
  block() noexcept = default;
  block(block&& other) noexcept
      : arena_(std::exchange(other.arena_, nullptr)), ref_(std::exchange(other.ref_, {})), data_(other.data_) {}
  block& operator=(block&& other) noexcept {
    block moved(std::move(other));
    moved.swap(*this);
    return *this;
  }
  ~block() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(ref_); }
  [[nodiscard]] block_ref ref() const noexcept { return ref_; }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return ref_.size_bytes; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size()}; }

  /// Says that only the first `size_bytes` are used. Requires: size_bytes <= size().
  void shrink(std::size_t size_bytes) noexcept;

  /// Gives the block to whoever adopts the returned reference; until then it dies with this process.
  [[nodiscard]] block_ref lend() noexcept;

  /// Releases the block now.
  void reset() noexcept {
    if (arena_ != nullptr) release();
  }

  void swap(block& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(ref_, other.ref_);
    std::swap(data_, other.data_);
  }

private:
  friend class arena;
  block(arena& owner, block_ref ref, std::byte* data) noexcept : arena_(&owner), ref_(ref), data_(data) {}
  void release() noexcept;

  arena* arena_ = nullptr;
  block_ref ref_;
  std::byte* data_ = nullptr;
};

/// As arena::allocate, for callers that need no more of an arena.
[[nodiscard]] block allocate(arena& from, std::size_t bytes, unsigned copies = 0);

}  // namespace muster
