// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace muster::detail {

/// Memory for one operation of Asio at a time, so that waiting or posting again allocates nothing.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <std::size_t Bytes>
struct handler_room {
  alignas(std::max_align_t) std::array<std::byte, Bytes> bytes;
  bool taken = false;
};

/// Gives Asio a room's memory; the heap's where that is taken or too small.
///
/// Thread safety: as the room.
template <class T>
class room_allocator {
public:
  using value_type = T;

  template <std::size_t Bytes>
  explicit room_allocator(handler_room<Bytes>& room) noexcept : bytes_(room.bytes), taken_(&room.taken) {}
  template <class Other>
  room_allocator(const room_allocator<Other>& other) noexcept  // NOLINT(google-explicit-constructor): rebinding
      : bytes_(other.bytes_), taken_(other.taken_) {}

  [[nodiscard]] T* allocate(std::size_t count) {
    if (*taken_ || count * sizeof(T) > bytes_.size()) return std::allocator<T>().allocate(count);
    *taken_ = true;
    return reinterpret_cast<T*>(bytes_.data());
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (reinterpret_cast<std::byte*>(memory) != bytes_.data()) {
      return std::allocator<T>().deallocate(memory, count);
    }
    *taken_ = false;
  }
  template <class Other>
  bool operator==(const room_allocator<Other>& other) const noexcept {
    return bytes_.data() == other.bytes_.data();
  }

private:
  template <class Other>
  friend class room_allocator;

  std::span<std::byte> bytes_;
  bool* taken_;
};

}  // namespace muster::detail
