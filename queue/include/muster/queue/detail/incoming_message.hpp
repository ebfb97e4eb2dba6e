// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <muster/queue/detail/message_ring.hpp>
#include <muster/queue/detail/taken_message.hpp>
#include <muster/serialize/detail/attachments.hpp>

namespace muster {

/// What becomes of handles that are decoded from a message, should it go back.
enum class message_keeping : std::uint8_t {
  when_accepted,  ///< they are the message's: it does not go back
  when_decoded    ///< they are this process's own from the start
};

/// A message that this process has claimed. It stays whole until it is accepted: the blocks that are decoded from it
/// are lent by it until then, or held besides.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the ring.
class incoming_message final : public attachment_source {
public:
  incoming_message(message_ring& ring, ring_position at,
                   message_keeping keeping = message_keeping::when_accepted) noexcept
      : ring_(ring), at_(at), form_(ring.form_at(at)), keeping_(keeping) {}
  incoming_message(const incoming_message&) = delete;
  incoming_message& operator=(const incoming_message&) = delete;
  /// As put_back(), or as discard() where that must not be.
  ~incoming_message();

  /// The frame, where it lies. Throws errc::corrupted when there is none.
  [[nodiscard]] std::span<const std::byte> open();
  /// Throws errc::corrupted when there is no such block, errc::out_of_memory when there is no descriptor for a hold on
  /// it, where it is to be kept when decoded.
  [[nodiscard]] shared_block take(std::uint64_t index) override;

  /// Takes it out of the queue: handles of its blocks that were decoded are this process's own from now on.
  /// Throws errc::corrupted when one of its holds is not there; it is out then, too.
  void accept();
  /// Takes it out of the queue, undecoded, with all that goes with it.
  /// Throws errc::corrupted when something of it is not there; it is out then, too.
  /// Requires: nothing was decoded; it is not kept when it is decoded.
  [[nodiscard]] taken_message take_out();
  /// Leaves it in the queue for others; nothing when it is out already. Handles of its blocks may exist besides.
  /// Requires: those were kept when they were decoded.
  void put_back() noexcept;
  /// Takes it out of the queue, with all that goes with it. Nothing when it is out already.
  void discard() noexcept;
  /// It cannot be decoded, as the exception says that is being handled: as discard(), since nobody else could either.
  /// But what is kept when decoded is put back where one of its blocks could not be had for want of memory or
  /// descriptors, or the exception is errc::out_of_memory: a copy in shared memory found no room.
  /// Requires: called inside a catch block.
  void give_up() noexcept;

private:
  [[nodiscard]] bool let_go() noexcept;
  template <class Get>
  auto obtain(Get get);
  [[nodiscard]] shared_block borrow(std::uint64_t name);
  bool receive(std::size_t index) noexcept;
  bool receive_all() noexcept;

  message_ring& ring_;
  const ring_position at_;
  const message_form form_;  // read once
  const message_keeping keeping_;
  bool claimed_ = true;
  bool is_wanting_ = false;  // memory or descriptors for a block
  shared_block block_;       // with the body, if that is not in the cell
  std::span<const std::byte> body_;
  std::vector<shared_block> lent_;  // by number; only those that were asked for
};

}  // namespace muster
