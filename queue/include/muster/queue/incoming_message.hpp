// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <muster/queue/message_ring.hpp>
#include <muster/serialize/attachments.hpp>

namespace muster {

/// A message that this process has claimed. It stays whole until it is accepted: the blocks that are decoded from it
/// are lent by it until then.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the ring.
class incoming_message final : public attachment_source {
public:
  incoming_message(message_ring& ring, ring_position at) noexcept : ring_(ring), at_(at), form_(ring.form_at(at)) {}
  incoming_message(const incoming_message&) = delete;
  incoming_message& operator=(const incoming_message&) = delete;

  /// The frame, where it lies. Throws errc::corrupted when there is none.
  [[nodiscard]] std::span<const std::byte> open();
  [[nodiscard]] shared_block take(std::uint64_t index) override;

  /// Takes it out of the queue: handles of its blocks that were decoded are this process's own from now on.
  /// Throws errc::corrupted when one of its holds is not there; it is out then, too.
  void accept();
  /// Leaves it in the queue for others. Handles of its blocks that exist besides are this process's own from now on; if
  /// they cannot be made so, for want of descriptors, the message stays with this process until that one dies.
  void put_back() noexcept;
  /// Takes it out of the queue, with all that goes with it. Nothing when it is out already.
  void discard() noexcept;

private:
  bool receive(std::size_t index) noexcept;
  bool receive_all() noexcept;

  message_ring& ring_;
  const ring_position at_;
  const message_form form_;  // read once
  bool claimed_ = true;
  shared_block block_;  // with the body, if that is not in the cell
  std::span<const std::byte> body_;
  std::vector<shared_block> lent_;  // by number; only those that were asked for
};

}  // namespace muster
