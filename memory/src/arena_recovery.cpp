// SPDX-License-Identifier: BSL-1.0
// What a home does when a participant has died: its own, what was lent to the dead one, and what that was just doing.
#include <muster/memory/detail/arena.hpp>

#include <new>

namespace muster {

void arena::recover(participant_id dead) noexcept {
  const scoped_lock lock(mutex_);
  if (!options_.members.empty()) recover_shares(dead);
  for (std::uint32_t descriptor = 0; descriptor < blocks_.used_count(); ++descriptor) recover_block(descriptor, dead);
  recover_extents(dead);
  if (!options_.members.empty()) drop_carried();
  extent_hint_ = 0;
  block_hint_ = 0;
}

void arena::recover_block(std::uint32_t descriptor, participant_id dead) {
  const auto known = known_of(descriptor);
  if (known.state == block_state::live && known.home == dead) {  // adopted: its memory stays until it is released
    record_of(descriptor).home = options_.self;
    blocks_.at(descriptor).home.store(static_cast<std::uint16_t>(options_.self), std::memory_order_release);
    extents_.transfer(dead, options_.self, known.run());
    note_orphan(known);
    return;
  }
  const auto found = blocks_.read(descriptor);
  const bool names_the_dead = found.owner.owner == dead && found.owner.state != block_state::free;
  if (known.state == block_state::returned && names_the_dead) {  // lent to it: it comes back
    publish(descriptor, options_.self, block_state::returned);
    return;
  }
  if (known.state != block_state::free) return;  // ours, whatever the dead one may have scribbled over the word
  if (!names_the_dead) return;
  // Only a live block can be another's; of one that it was just binding, the other fields may be of an earlier life.
  if (found.home == dead || found.owner.state != block_state::live) {
    blocks_.unbind(descriptor);
  } else if (found.home == participant_id::everybody) {  // it was just giving the block to everybody, or taking it
    if (is_run(found)) {
      const extent_run run{.first = found.offset / extent_bytes, .count = extents_for(found.capacity)};
      extents_.unshare(descriptor, dead, run);  // freed with its others
    }
    blocks_.unbind(descriptor);
  } else {  // it had adopted the block from a home that lives on
    const record part{.offset = found.offset, .capacity = found.capacity};
    if (is_within(found)) extents_.transfer(dead, found.home, part.run());
    const block_ownership returned{
        .generation = found.owner.generation, .owner = found.home, .state = block_state::returned};
    blocks_.at(descriptor).word.store(returned.pack(), std::memory_order_release);
  }
}

// A small block whose home is dead: its extent is freed with the last block in it. Without memory to note that, the
// extent is kept, and its pieces are used again.
void arena::note_orphan(const record& adopted) noexcept {
  try {
    ++orphans_[adopted.run().first];
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
}

void arena::recover_extents(participant_id dead) {
  for (std::size_t extent = 0; extent < extents_.used_count(); ++extent) {
    if (extents_.owner_of(extent) != dead) continue;
    discard({extent, 1});
    extents_.release(dead, {extent, 1});
  }
}

}  // namespace muster
