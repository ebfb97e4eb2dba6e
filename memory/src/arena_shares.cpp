// SPDX-License-Identifier: BSL-1.0
// Blocks that several processes hold at once. Every hold is a descriptor with its holder's name in it, so that the
// holds of a dead process are found; how many there are is counted in the block's own descriptor.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/arena.hpp>

namespace muster {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

std::uint32_t descriptor_of(std::uint64_t name) { return block_ref::of_handle(name).descriptor; }

extent_run run_of(const block_snapshot& found) {
  return {.first = found.offset / extent_bytes, .count = extents_for(found.capacity)};
}

[[noreturn]] void throw_no_block(const char* what, std::uint64_t name, const std::string& why) {
  const auto ref = block_ref::of_handle(name);
  throw error(errc::corrupted,
              text(what, " of block ", ref.descriptor, ", generation ", ref.generation, ", was to be used, but ", why,
                   ": it is of another domain, or whoever sent it has let go of it"));
}

}  // namespace

void shared_block::let_go(detail::holding* left) noexcept {
  left->owner->let_go(*left);
  delete left;
}

shared_block arena::allocate_shared(std::size_t bytes) {
  auto made = std::make_unique<detail::holding>();
  const scoped_lock lock(mutex_);
  auto taken = allocate_run(std::max<std::size_t>(bytes, 1), 0);
  made->owner = std::exchange(taken.arena_, nullptr);
  made->data = taken.data();
  made->bytes = bytes;
  made->block = taken.ref();
  return shared_block(made.release());
}

shared_block arena::allocate_cell() {
  auto made = std::make_unique<detail::holding>();
  const scoped_lock lock(mutex_);
  reach(offset_of_cells);  // which may throw, once
  auto taken = make_live(bind(offset_of_cells, 0), 0);
  made->owner = std::exchange(taken.arena_, nullptr);
  made->data = taken.data();
  made->block = taken.ref();
  return shared_block(made.release());
}

// A process that works for another, or has joined it, takes part in that one's domain, and is the host of a second one
// where it needs one without it: before it takes part, and for pools of its own.
std::string_view detail::why_apart(const arena& here, const arena& there) noexcept {
  const bool is_of_host_here = here.self() == participant_id::host;
  const bool is_of_host_there = there.self() == participant_id::host;
  if (is_of_host_here && is_of_host_there) return "A pool made with `isolated` has a domain of its own";
  if (!is_of_host_here && !is_of_host_there) return "Each host that a program has joined has a domain of its own";
  if (is_of_host_here)
    return "Pools that a worker makes, or a program that has joined another, have a domain of their own";
  return "The other domain is this process's own, where lies what was made before muster::init or muster::join "
         "(objects at namespace "
         "scope are, and each worker makes its own: make them in a function instead), and what a worker's own pools "
         "return";
}

void arena::require_own(const detail::holding& which) const {
  if (which.owner == this) return;
  throw error(
      errc::invalid_argument,
      text("a block of ", text_of_bytes(which.bytes),
           " belongs to another domain: copy it to send it here, as tensor::clone(memory::local) or transfer::copy "
           "does. ",
           detail::why_apart(*this, *which.owner)));
}

std::uint64_t arena::name_of(const shared_block& which) {
  auto& mine = *which.holding_;
  require_own(mine);
  if (mine.how.load(std::memory_order_acquire) == detail::holding::manner::alone) {
    const scoped_lock lock(mutex_);
    if (mine.how == detail::holding::manner::alone) share(mine);
  }
  return mine.block.handle();
}

shared_block arena::borrow(std::uint64_t name) {
  shared_block made;
  borrow_into(made, name);
  return made;
}

void arena::borrow_into(shared_block& handle, std::uint64_t name) {
  using enum detail::holding::manner;
  const auto found = find_shared(name);
  reach(found.offset + found.capacity);
  const bool reusable = handle.is_unique() && handle.owner() == this && handle.holding_->how.load(relaxed) == borrowed;
  if (!reusable) handle = shared_block(std::make_unique<detail::holding>().release());
  auto& made = *handle.holding_;
  made.owner = this;
  made.data = bytes_.data() + found.offset;
  made.bytes = found.capacity;
  made.how.store(borrowed, relaxed);
  made.block = block_ref::of_handle(name);
}

void arena::keep(const shared_block& borrowed) {
  auto& mine = *borrowed.holding_;
  const scoped_lock lock(mutex_);
  if (mine.how != detail::holding::manner::borrowed) return;
  mine.hold = add_hold(mine.block.handle());
  mine.how = detail::holding::manner::held;
}

void arena::unkeep(const shared_block& kept) noexcept {
  auto& mine = *kept.holding_;
  if (mine.how != detail::holding::manner::held) return;
  const scoped_lock lock(mutex_);
  drop_hold(mine.hold, mine.block.handle());
  mine.how = detail::holding::manner::borrowed;
}

std::uint64_t arena::send(const shared_block& which) { return send_new_hold(which, 0); }

std::uint64_t arena::send(const shared_block& which, const shared_block& carrier) {
  return send_new_hold(which, name_of(carrier));
}

// The carrier is written while nobody else can have the hold: whoever receives it takes it out again.
std::uint64_t arena::send_new_hold(const shared_block& which, std::uint64_t carrier) {
  auto& mine = *which.holding_;
  require_own(mine);
  const scoped_lock lock(mutex_);
  if (mine.how == detail::holding::manner::alone) share(mine);
  const auto hold = add_hold(mine.block.handle());
  blocks_.at(hold).offset.store(carrier, relaxed);
  return send_hold(hold);
}

// Whoever receives it keeps it.
std::uint64_t arena::send_hold(std::uint32_t hold) {
  const block_ref sent{.descriptor = hold, .generation = record_of(hold).generation, .size_bytes = 0};
  set_hold_state(hold, block_state::sent);
  end_use(record_of(hold));
  record_of(hold) = {};
  --holds_;
  return sent.handle();
}

shared_block arena::receive(std::uint64_t name) {
  const auto hold = block_ref::of_handle(name);
  if (hold.descriptor >= blocks_.size()) throw_no_block("a hold", name, "there is no such descriptor");
  const auto target = blocks_.at(hold.descriptor).target.load(relaxed);
  auto made = borrow(target);
  const scoped_lock lock(mutex_);
  if (record_of(hold.descriptor).state != block_state::free) {  // to be dropped once, by whoever has it here
    throw_no_block("a hold", name, "this process has it already");
  }
  for (;;) {
    const auto found = blocks_.read(hold.descriptor).owner;
    auto mine = found;
    mine.owner = options_.self;
    mine.state = block_state::hold;
    const bool is_sent = hold && found.state == block_state::sent && found.generation == hold.generation;
    if (!is_sent) throw_no_block("a hold", name, "no such hold was sent");
    if (blocks_.change(hold.descriptor, found, mine)) break;  // else its sender has just entrusted it to everybody
  }
  blocks_.at(hold.descriptor).offset.store(0, relaxed);  // it may be sent on, in something else
  record_of(hold.descriptor) = {.generation = hold.generation, .state = block_state::hold};
  made.holding_->hold = hold.descriptor;
  made.holding_->how = detail::holding::manner::held;
  ++holds_;
  return made;
}

// The last handle is gone, so nobody changes the holding any more.
void arena::let_go(detail::holding& left) noexcept {
  if (left.how == detail::holding::manner::borrowed || !made_in_.is_here()) return;
  const scoped_lock lock(mutex_);
  switch (left.how.load(relaxed)) {
    case detail::holding::manner::alone: release_live(left.block); break;
    case detail::holding::manner::held: drop_hold(left.hold, left.block.handle()); break;
    case detail::holding::manner::borrowed: break;
  }
}

// Every field is read once, and is checked.
block_snapshot arena::find_shared(std::uint64_t name) const {
  auto ref = block_ref::of_handle(name);
  if (ref.descriptor >= blocks_.size()) throw_no_block("memory", name, "there is no such descriptor");
  const auto found = blocks_.read(ref.descriptor);
  if (!ref || found.owner.state != block_state::shared || found.owner.generation != ref.generation) {
    throw_no_block("memory", name, "nobody holds such a block");
  }
  if (!is_run(found) && !is_cell(found)) {
    throw_no_block("memory", name,
                   text("its descriptor has been overwritten: it would lie at ", found.offset, " and take ",
                        found.capacity, " of ", bytes_.size(), " bytes"));
  }
  return found;
}

// The block is given to everybody in one store. Its extents follow: should this process die in between, recovery gives
// them to the block, before it drops this process's hold. The count follows too: who counts himself into this life of
// the block, though he means an earlier one, finds its name in the word, and so does his recovery.
void arena::share(detail::holding& alone) {
  const auto descriptor = alone.block.descriptor;
  const auto run = record_of(descriptor).run();
  const auto hold = bind_hold(alone.block.handle());
  const auto change = next_change();
  auto& shared = blocks_.at(descriptor);
  blocks_.at(hold).change.store(change, relaxed);
  set_hold_state(hold, block_state::adding);
  shared.target.store(0, relaxed);
  shared.home.store(static_cast<std::uint16_t>(participant_id::everybody), relaxed);
  publish(descriptor, participant_id::everybody, block_state::shared);
  shared.count.store(share_word(change, options_.self, 1).bits(), std::memory_order_release);
  set_hold_state(hold, block_state::hold);
  extents_.share(options_.self, descriptor, run);
  if (std::exchange(record_of(descriptor), {}).is_own) {  // it is used by way of the hold
    record_of(hold).capacity = run.size_bytes();
    record_of(hold).is_own = true;
  }
  --live_blocks_;
  ++holds_;
  alone.hold = hold;
  alone.how = detail::holding::manner::held;
}

std::uint32_t arena::bind_hold(std::uint64_t target) {
  if (options_.members.empty()) throw error(errc::invalid_argument, "this arena has no table of participants");
  const auto hold = bind_free(0, 0);
  if (!hold)
    throw_exhausted(
        0, 0, text("all ", blocks_.size(), " descriptors of blocks and holds are taken (domain_options::max_blocks)"));
  const auto generation = std::max(blocks_.read(*hold).owner.generation + 1, 1U);
  record_of_bound(*hold) = {.generation = generation, .state = block_state::hold};
  blocks_.at(*hold).target.store(target, std::memory_order_release);  // behind the end of the hold that was there
  return *hold;
}

std::uint32_t arena::add_hold(std::uint64_t target) {
  static_cast<void>(find_shared(target));
  const auto hold = bind_hold(target);
  const auto change = next_change();
  blocks_.at(hold).change.store(change, relaxed);
  set_hold_state(hold, block_state::adding);
  if (!change_count(descriptor_of(target), 1, change)) {
    forget(hold);
    throw_no_block("memory", target,
                   text("nobody holds it any more, or as often as can be (", share_word::most, " times)"));
  }
  // The block that was found may have ended since, and another begun in its descriptor: that one is held now.
  const auto held = present_name(descriptor_of(target));
  blocks_.at(hold).target.store(held, relaxed);
  set_hold_state(hold, block_state::hold);
  ++holds_;
  if (held == target) return hold;
  drop_hold(hold, held);
  throw_no_block("memory", target, "nobody holds such a block any more");
}

void arena::drop_hold(std::uint32_t hold, std::uint64_t target) noexcept {
  const auto change = next_change();
  blocks_.at(hold).change.store(change, relaxed);
  set_hold_state(hold, block_state::dropping);
  const auto left = change_count(descriptor_of(target), -1, change);
  const bool is_last = left && left->count() == 0;
  const bool carries = is_last && blocks_.at(descriptor_of(target)).target.load(relaxed) != 0;
  if (is_last) take_over(target);
  forget(hold);
  --holds_;
  if (carries) drop_carried();
}

// Release: whoever finds the hold in this state sees which change it is about.
void arena::set_hold_state(std::uint32_t hold, block_state state) {
  const block_ownership word{.generation = record_of(hold).generation, .owner = options_.self, .state = state};
  blocks_.at(hold).word.store(word.pack(), std::memory_order_release);
}

std::uint64_t arena::next_change() noexcept {
  ++change_;
  options_.members[index_of(options_.self)].change.store(change_, relaxed);  // before it signs anything with it
  return change_;
}

participant_entry* arena::entry_of(participant_id who) const noexcept {
  return index_of(who) < options_.members.size() ? &options_.members[index_of(who)] : nullptr;
}

std::optional<share_word> arena::change_count(std::uint32_t descriptor, int by, std::uint64_t change) noexcept {
  return share_protocol::change_count(blocks_.at(descriptor).count, by, options_.self, change,
                                      [this](participant_id who) { return entry_of(who); });
}

// Nobody holds the block any more: it becomes this process's, and goes into its cache. Only extents that bear the
// block's mark are taken: a descriptor that somebody has overwritten cannot take others along; its own are free then.
void arena::take_over(std::uint64_t target) noexcept {
  const auto descriptor = descriptor_of(target);
  const auto found = blocks_.read(descriptor);
  auto mine = found.owner;
  mine.owner = options_.self;
  mine.state = block_state::live;
  const bool is_it =
      found.owner.state == block_state::shared && found.owner.generation == block_ref::of_handle(target).generation;
  if (!is_it || !blocks_.change(descriptor, found.owner, mine)) return;
  if (is_cell(found)) return forget(descriptor);
  const auto run = run_of(found);
  if (!is_run(found) || extents_.shared_count(descriptor, run) != run.count) {
    free_marked(descriptor);
    return forget(descriptor);
  }
  extents_.unshare(descriptor, options_.self, run);
  blocks_.at(descriptor).home.store(static_cast<std::uint16_t>(options_.self), relaxed);
  keep_or_free(descriptor, {.offset = found.offset,
                            .capacity = found.capacity,
                            .generation = mine.generation,
                            .home = options_.self,
                            .state = block_state::live});
}

// Holds that went with a block that is freed, each in this process's name first: should it die, recovery drops that
// one, and then the others, as it does with all if it died before it came here.
void arena::drop_carried() noexcept {
  for (std::uint32_t hold = 0; hold < blocks_.used_count(); ++hold) {
    try {
      if (take_carried(hold)) drop_hold(hold, blocks_.at(hold).target.load(relaxed));
    } catch (const std::bad_alloc&) {
      return;  // the next recovery drops them
    }
  }
}

// Looked at again once the carrier is known to be gone: nobody can receive it any more then. What was received before
// may be in another message by now, with the same word; but its carrier was taken out first.
bool arena::take_carried(std::uint32_t hold) {
  const auto found = blocks_.read(hold);
  const bool is_everybodys =
      found.owner.state == block_state::sent && found.owner.owner == participant_id::everybody && found.offset != 0;
  if (!is_everybodys || is_shared(found.offset)) return false;
  const auto again = blocks_.read(hold);
  if (again.owner != found.owner || again.offset != found.offset) return false;
  auto& mine = record_of(hold);
  auto taken = found.owner;
  taken.owner = options_.self;
  taken.state = block_state::hold;
  if (mine.state != block_state::free || !blocks_.change(hold, found.owner, taken)) return false;
  blocks_.at(hold).offset.store(0, relaxed);
  mine = {.generation = taken.generation, .state = block_state::hold};
  ++holds_;
  return true;
}

// In the cache; without memory for its record it is free.
void arena::keep_or_free(std::uint32_t descriptor, const record& taken) noexcept {
  try {
    record_of(descriptor) = taken;
  } catch (const std::bad_alloc&) {
    forget(descriptor);
    discard(taken.run());
    return extents_.release(options_.self, taken.run());
  }
  demand_.count_release();
  release_here(descriptor);
}

// All extents that are the block's, wherever its descriptor says that it lies. Their pages go first: what is free is
// somebody else's at once.
void arena::free_marked(std::uint32_t descriptor) noexcept {
  for (std::size_t extent = 0; extent < extents_.used_count(); ++extent) {
    const extent_run one{.first = extent, .count = 1};
    if (extents_.shared_count(descriptor, one) == 0) continue;
    discard(one);
    extents_.unshare(descriptor, participant_id::none, one);
  }
}

// ---- recovery

void arena::recover_shares(participant_id dead) {
  // First what the dead one had not yet given to its blocks, while its holds still keep them.
  for (std::uint32_t descriptor = 0; descriptor < blocks_.used_count(); ++descriptor) {
    const auto found = blocks_.read(descriptor);
    if (found.owner.state == block_state::shared && is_run(found)) extents_.share(dead, descriptor, run_of(found));
  }
  for (std::uint32_t hold = 0; hold < blocks_.used_count(); ++hold) recover_hold(hold, dead);
}

void arena::recover_hold(std::uint32_t hold, participant_id dead) {
  const auto found = blocks_.read(hold).owner;
  const bool has_counted = found.state == block_state::hold || found.state == block_state::sent;
  const bool is_hold = has_counted || found.state == block_state::adding || found.state == block_state::dropping;
  if (!is_hold || found.owner != dead || known_of(hold).state != block_state::free) return;
  auto mine = found;
  mine.owner = options_.self;
  mine.state = block_state::dropping;
  if (!blocks_.change(hold, found, mine)) return;  // somebody has received it
  const auto target = blocks_.at(hold).target.load(relaxed);
  const auto descriptor = descriptor_of(target);
  const bool changed = has_changed(descriptor, dead, blocks_.at(hold).change.load(relaxed));
  const bool has_just_added = found.state == block_state::adding && changed;
  const auto held = has_just_added ? present_name(descriptor) : target;  // which may be of a later life: add_hold()
  if (is_shared(held)) {
    const bool counted = has_counted || (found.state == block_state::adding) == changed;
    if (counted) static_cast<void>(change_count(descriptor, -1, next_change()));
    if (share_word(blocks_.count_of(descriptor)).count() == 0) take_over(held);
  }
  forget(hold);
}

// Whether the dead one's change of the block's count took place.
bool arena::has_changed(std::uint32_t descriptor, participant_id dead, std::uint64_t change) noexcept {
  const auto* const entry = entry_of(dead);
  return entry != nullptr && descriptor < blocks_.size() &&
         share_protocol::took_place(blocks_.at(descriptor).count, entry->confirmed, dead, change);
}

// Of the block that the descriptor is in this life of it.
std::uint64_t arena::present_name(std::uint32_t descriptor) const noexcept {
  const auto found = blocks_.read(descriptor).owner;
  return block_ref{.descriptor = descriptor, .generation = found.generation, .size_bytes = 0}.handle();
}

bool arena::is_shared(std::uint64_t name) const noexcept {
  const auto ref = block_ref::of_handle(name);
  if (ref.descriptor >= blocks_.size()) return false;
  const auto found = blocks_.read(ref.descriptor).owner;
  return found.state == block_state::shared && found.generation == ref.generation;
}

}  // namespace muster
