// SPDX-License-Identifier: BSL-1.0
#include "queue_keeper.hpp"

#include <exception>
#include <utility>

#include <muster/queue/message_protocol.hpp>

#include "message_holds.hpp"

namespace muster {

queue_keeper::queue_keeper(domain& where, shared_block memory, const ring_memory& ring)
    : domain_(where),
      memory_(std::move(memory)),
      ring_(ring),
      recovery_(where.recoveries().add(recovery_stage::queues, [this](participant_id dead) { recover(dead); })) {}

// In a forked child what is left in it is its parent's.
queue_keeper::~queue_keeper() {
  recovery_ = {};
  if (!made_in_.is_here()) return;
  for (std::size_t index = 0; index < ring_.capacity(); ++index) drop_message(index);
}

// Holds first: while the dead one's name is in the cell, nobody else touches it. A cell that names nobody, because
// somebody has overwritten it, is as good as one of the dead.
void queue_keeper::recover(participant_id dead) noexcept {
  for (std::size_t index = 0; index < ring_.capacity(); ++index) {
    const auto whose = names_nobody(index).value_or(dead);
    inherit_holds(index, whose);
    message_protocol::recover(ring_.cell(index), whose);
  }
}

std::optional<participant_id> queue_keeper::names_nobody(std::size_t index) const noexcept {
  const message_word found(ring_.cell(index).load(std::memory_order_seq_cst));
  if (found.state() != message_state::writing && found.state() != message_state::reading) return std::nullopt;
  if (domain_.participants().incarnation_of(found.owner())) return std::nullopt;
  return found.owner();
}

// The dead one may have sent a message and not yet entrusted its holds to everybody, or have taken some of one that is
// read again now. The message may be taken, and the cell written anew, while we read: then what we have read does not
// count. It counts if the cell still has the message afterwards, and its holds are nobody else's then.
void queue_keeper::inherit_holds(std::size_t index, participant_id dead) noexcept {
  // A write that changes nothing: what was read before it stays before it.
  const auto has_message = [&](const message_word& as) {
    const message_word found(ring_.cell(index).fetch_or(0, std::memory_order_seq_cst));
    return found.has_message() && found.lap() == as.lap();
  };
  const message_word found(ring_.cell(index).load(std::memory_order_seq_cst));
  const auto form = ring_.form(index);
  if (!found.has_message() || form.is_plain()) return;
  const auto inherit = [&](std::uint64_t name) {
    if (has_message(found)) domain_.blocks().entrust(name, dead);
  };
  const auto room = ring_.room(index);
  if (form.in_block) inherit(read_name(room.data()));  // it may have been received, and is as it was sent again
  try {
    for_each_hold(domain_.blocks(), form, room, inherit);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is gone, or somebody has overwritten it
  }
}

void queue_keeper::drop_message(std::size_t index) noexcept {
  const message_word found(ring_.cell(index).load(std::memory_order_acquire));
  const auto form = ring_.form(index);
  if (found.state() != message_state::ready || form.is_plain()) return;
  try {
    for_each_hold(domain_.blocks(), form, ring_.room(index),
                  [&](std::uint64_t name) { domain_.blocks().receive(name).reset(); });
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): somebody has overwritten it
  }
}

}  // namespace muster
