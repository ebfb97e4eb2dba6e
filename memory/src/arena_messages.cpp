// SPDX-License-Identifier: BSL-1.0
// Holds that lie in messages: whoever is named in one answers for it, and nobody's death drops those of everybody.
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/arena.hpp>

namespace muster {

std::uint64_t arena::hand_over(shared_block&& last) {
  const auto given = std::move(last);
  auto& mine = *given.holding_;
  if (!given.is_unique()) return send(given);
  require_own(mine);
  const scoped_lock lock(mutex_);
  if (mine.how == detail::holding::manner::alone) share(mine);
  if (mine.how == detail::holding::manner::borrowed) mine.hold = add_hold(mine.block.handle());
  mine.how = detail::holding::manner::borrowed;
  return send_hold(mine.hold);
}

// Looked at again behind the target: the hold may have gone meanwhile, and its descriptor be another's.
shared_block arena::borrow_sent(std::uint64_t name) {
  const auto hold = block_ref::of_handle(name);
  const auto is_there = [&] {
    if (!hold || hold.descriptor >= blocks_.size()) return false;
    const auto found = blocks_.read(hold.descriptor).owner;
    return found.state == block_state::sent && found.generation == hold.generation;
  };
  const bool was_there = is_there();
  const auto target = was_there ? blocks_.at(hold.descriptor).target.load(std::memory_order_acquire) : 0;
  if (!was_there || !is_there()) {
    throw error(errc::corrupted, text("a message names hold ", hold.descriptor, " of generation ", hold.generation,
                                      ", but there is no such hold: somebody has overwritten the message"));
  }
  return borrow(target);
}

void arena::receive_for(const shared_block& borrowed, std::uint64_t name) {
  auto received = receive(name);
  auto& mine = *borrowed.holding_;
  auto& other = *received.holding_;
  if (mine.block != other.block) {
    throw error(errc::corrupted, text("a message named block ", mine.block.descriptor, ", and names block ",
                                      other.block.descriptor, " now: somebody has overwritten it"));
  }
  const scoped_lock lock(mutex_);
  // Where it has a hold already, that one goes: the other is still named in the message, which may be there again
  // should this process die.
  std::swap(mine.hold, other.hold);
  const auto had = mine.how.exchange(detail::holding::manner::held);
  other.how = had;
}

// Another thread of this process may have received it meanwhile: then there is a record.
void arena::entrust(std::uint64_t name, participant_id from) noexcept {
  const auto hold = block_ref::of_handle(name);
  if (!hold || hold.descriptor >= blocks_.size()) return;
  const scoped_lock lock(mutex_);
  if (record_of(hold.descriptor).state != block_state::free) return;
  const block_ownership everybodys{
      .generation = hold.generation, .owner = participant_id::everybody, .state = block_state::sent};
  auto expected = everybodys;
  expected.owner = from;
  if (blocks_.change(hold.descriptor, expected, everybodys)) return;
  expected.state = block_state::hold;  // the dead one had received it, and the message is there again
  blocks_.change(hold.descriptor, expected, everybodys);
}

// Before it is the carrier's it is this process's, which holds the carrier; so whoever drops the last hold on that sees
// that there is something to look for.
void arena::entrust(std::uint64_t name, const shared_block& carrier) noexcept {
  const auto hold = block_ref::of_handle(name);
  if (!hold || hold.descriptor >= blocks_.size()) return;
  const scoped_lock lock(mutex_);
  const block_ownership mine{.generation = hold.generation, .owner = options_.self, .state = block_state::sent};
  if (known_of(hold.descriptor).state != block_state::free || blocks_.read(hold.descriptor).owner != mine) return;
  blocks_.at(carrier.holding_->block.descriptor).target.store(1, std::memory_order_relaxed);
  auto everybodys = mine;
  everybodys.owner = participant_id::everybody;
  blocks_.change(hold.descriptor, mine, everybodys);
}

bool arena::is_sole(const shared_block& which) const {
  if (!which.is_unique()) return false;
  const auto& mine = *which.holding_;
  const scoped_lock lock(mutex_);
  if (mine.how == detail::holding::manner::alone) return true;
  const share_word found(blocks_.count_of(mine.block.descriptor));
  return mine.how == detail::holding::manner::held && found.count() == 1;
}

std::size_t arena::capacity_of(const shared_block& which) const noexcept {
  const auto found = blocks_.read(which.holding_->block.descriptor);
  return is_run(found) ? std::max<std::size_t>(which.size(), found.capacity) : which.size();
}

}  // namespace muster
