// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <muster/queue/detail/message_ring.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/attachments.hpp>

namespace muster {

/// A message on its way into a queue. It is encoded before it has a cell, so that nobody waits for a serialize
/// function; its blocks are held for it from then on, and let go of when it does not go.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the ring.
class outgoing_message final : public attachment_sink {
public:
  explicit outgoing_message(message_ring& ring) noexcept : ring_(ring) {}
  outgoing_message(const outgoing_message&) = delete;
  outgoing_message& operator=(const outgoing_message&) = delete;
  ~outgoing_message();

  /// Room for a frame of so many bytes, with which so many blocks go. To be called once.
  /// Throws errc::not_serializable for too many blocks or bytes, errc::out_of_memory.
  [[nodiscard]] std::span<std::byte> make_room(std::size_t frame_bytes, std::size_t attachments);
  std::uint64_t attach(const shared_block& what) override;
  /// The frame has been written.
  void finish();

  [[nodiscard]] queue_result try_push();
  [[nodiscard]] queue_result push(deadline until);
  /// As message_ring::push.
  [[nodiscard]] queue_result push(deadline until, bool (*is_over)(void* of), void* of);

private:
  [[nodiscard]] message_view view() const noexcept;
  queue_result settle(queue_result found) noexcept;

  message_ring& ring_;
  message_form form_;
  alignas(frame_alignment) std::array<std::byte, 256> small_;  // indeterminate
  std::unique_ptr<std::byte[]> large_;                         // for cells that have more room
  std::span<std::byte> body_;
  shared_block block_;
  std::vector<std::uint64_t> holds_;
};

}  // namespace muster
