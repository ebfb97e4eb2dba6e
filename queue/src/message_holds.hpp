// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include <muster/memory/detail/arena.hpp>
#include <muster/queue/detail/message_form.hpp>

namespace muster {

/// The name at the index-th place from `at` on.
///
/// Thread safety: safe while nobody writes there.
[[nodiscard]] inline std::uint64_t read_name(const std::byte* at, std::size_t index = 0) noexcept {
  std::uint64_t name = 0;
  std::memcpy(&name, at + index * sizeof name, sizeof name);
  return name;
}

/// Calls `what` with the name of each hold that goes with a message, that of its block last. `room`: of the cell.
/// Throws errc::corrupted when the form is impossible or the block is not there.
///
/// Thread safety: safe while nobody writes the message.
template <class What>
void for_each_hold(arena& memory, const message_form& form, std::span<const std::byte> room, What what) {
  shared_block held;
  if (form.in_block) held = memory.borrow_sent(read_name(room.data()));
  const std::span<const std::byte> body = form.in_block ? std::span<const std::byte>(held.bytes()) : room;
  for (std::size_t index = 0; index < form.attachments && form.body_bytes() <= body.size(); ++index) {
    what(read_name(body.data() + form.names_offset(), index));
  }
  if (form.in_block) what(read_name(room.data()));
}

}  // namespace muster
