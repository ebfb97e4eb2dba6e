// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/arena.hpp>

#include <algorithm>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "slab.hpp"

namespace muster {

bool arena::record::is_small() const noexcept { return capacity <= detail::slab::largest_bytes; }

arena::arena(extent_map extents, block_table blocks, std::span<std::byte> bytes, const unique_fd& memfd,
             options settings)
    : options_(std::move(settings)), bytes_(bytes), memfd_(memfd.get()), extents_(extents), blocks_(blocks) {
  const scoped_lock lock(mutex_);
  for (std::size_t index = 0; index < detail::slab::class_count(); ++index) {
    slabs_.push_back(std::make_unique<detail::slab>(index));
  }
  if (options_.members.empty()) return;
  // Where whoever had the number before has stopped: its signatures must not be taken for ours.
  auto& entry = options_.members[index_of(options_.self)];
  change_ = entry.change.load(std::memory_order_acquire);
  warm_told_ = &entry.warm;
  set_cached(0);
}

arena::~arena() = default;

// A page of them at first: holds come and go, and with few blocks none of them should be the one that allocates.
arena::record& arena::record_of(std::uint32_t descriptor) {
  constexpr std::size_t at_first = 4096 / sizeof(record);
  if (descriptor >= records_.size()) {
    records_.resize(std::max({std::size_t{descriptor} + 1, 2 * records_.size(), at_first}));
  }
  return records_[descriptor];
}

// What this process knows of it, without memory for more: for recovery and releases, which must not fail.
arena::record arena::known_of(std::uint32_t descriptor) const noexcept {
  return descriptor < records_.size() ? records_[descriptor] : record();
}

// Tells the others. Release: whoever finds the block by its word sees where it lies and what was written into it.
void arena::publish(std::uint32_t descriptor, participant_id owner, block_state state) {
  const block_ownership word{.generation = known_of(descriptor).generation, .owner = owner, .state = state};
  blocks_.at(descriptor).word.store(word.pack(), std::memory_order_release);
}

block arena::allocate(std::size_t bytes, unsigned copies) {
  const scoped_lock lock(mutex_);
  return bytes <= detail::slab::largest_bytes ? allocate_small(bytes) : allocate_run(bytes, copies);
}

block arena::allocate_small(std::size_t bytes) {
  auto& slab = *slabs_[detail::slab::class_of(bytes)];
  if (const auto descriptor = slab.take(blocks_, options_.self)) {
    record_of(*descriptor).state = block_state::cached;  // it may have come back from a borrower just now
    return make_live(*descriptor, bytes);
  }
  slab.make_room();
  auto offset = slab.cut();
  if (!offset) {
    static_cast<void>(admit(extent_bytes, 0));
    const auto run = extents_.claim(options_.self, 1, extent_hint_);
    if (!run) throw_exhausted(bytes, 0, "no part of the arena is free");
    extent_hint_ = run->first + 1;
    if (!populate(*run)) {
      extents_.release(options_.self, *run);
      throw_exhausted(bytes, 0, "the kernel has no memory for it");
    }
    slab.add_extent(*run);
    ++slab_extents_;
    offset = slab.cut();
  }
  MUSTER_ASSERT(offset.has_value());  // a fresh extent has room
  try {
    return make_live(bind(*offset, slab.chunk_bytes()), bytes);
  } catch (const std::exception&) {
    slab.put_back();
    throw;
  }
}

block arena::allocate_run(std::size_t bytes, unsigned copies) {
  const auto count = extents_for(bytes);
  // A cached run may be up to twice as long as needed: warm pages are worth more than address space.
  auto best = cache_.end();
  for (auto each = cache_.begin(); each != cache_.end(); ++each) {
    const auto length = record_of(*each).run().count;
    if (length < count || length > 2 * count) continue;
    // Of several the one that was freed last: it may be in the processor's caches, and those nobody needs get old.
    if (best == cache_.end() || length <= record_of(*best).run().count) best = each;
  }
  if (best == cache_.end()) return use_run(fresh_run(bytes, copies), bytes);
  const auto descriptor = *best;
  reach(record_of(descriptor).offset + record_of(descriptor).capacity);  // another process may have claimed it
  cache_.erase(best);
  set_cached(cached_bytes_ - record_of(descriptor).run().size_bytes());
  return use_run(descriptor, bytes);
}

block arena::use_run(std::uint32_t descriptor, std::size_t bytes) {
  auto& known = record_of(descriptor);
  known.is_own = true;
  demand_.take(known.capacity);
  ++run_uses_;
  return make_live(descriptor, bytes);
}

block arena::make_live(std::uint32_t descriptor, std::size_t bytes) {
  auto& known = record_of(descriptor);
  MUSTER_ASSERT(known.state == block_state::cached && known.capacity >= bytes);
  reach(known.offset + known.capacity);
  known.state = block_state::live;
  known.generation = std::max(known.generation + 1, 1U);
  blocks_.place(descriptor, known.home, known.offset, known.capacity);  // again: somebody may have overwritten it
  publish(descriptor, options_.self, block_state::live);
  ++live_blocks_;
  return {*this,
          {.descriptor = descriptor, .generation = known.generation, .size_bytes = bytes},
          bytes_.data() + known.offset};
}

std::uint32_t arena::fresh_run(std::size_t bytes, unsigned copies) {
  const auto count = extents_for(bytes);
  if (count > extents_.size()) throw_exhausted(bytes, copies, "the arena is smaller than that");
  const bool has_looked = admit(bytes, copies);
  auto run = extents_.claim(options_.self, count, place_for(count));
  if (!run && !cache_.empty()) {
    trim_cache(0);
    run = extents_.claim(options_.self, count, 0);
  }
  if (!run) throw_exhausted(bytes, copies, "no free part of the arena is that long");
  extent_hint_ = run->first + run->count;
  try {
    // Others may have been admitted at the same time: of two, one sees both claims.
    if (has_looked) static_cast<void>(require_room(bytes, copies, bytes * copies));
    if (!populate(*run)) throw_exhausted(bytes, copies, "the kernel has no memory for it");
    return bind(run->offset_bytes(), run->size_bytes());
  } catch (const std::exception&) {
    discard(*run);
    extents_.release(options_.self, *run);
    throw;
  }
}

std::uint32_t arena::bind(std::uint64_t offset, std::uint64_t capacity) {
  const auto descriptor = bind_free(offset, capacity);
  if (!descriptor)
    throw_exhausted(capacity, 0,
                    text("all ", blocks_.size(), " descriptors of blocks are taken (domain_options::max_blocks)"));
  record_of_bound(*descriptor) = {.offset = offset,
                                  .capacity = capacity,
                                  .generation = blocks_.read(*descriptor).owner.generation,
                                  .home = options_.self,
                                  .state = block_state::cached};
  return *descriptor;
}

// Those that were freed here last are free, unless another process has them by now: where many are taken, a hint that
// lies before them all would be looked on from each time.
std::optional<std::uint32_t> arena::bind_free(std::uint64_t offset, std::uint64_t capacity) noexcept {
  const auto hint = freed_count_ != 0 ? std::size_t{freed_[--freed_count_]} : block_hint_;
  const bool is_freed = hint != block_hint_;
  const auto found = blocks_.bind(options_.self, offset, capacity, hint);
  if (found && (!is_freed || *found != hint)) block_hint_ = *found + 1;
  return found;
}

// Of one that was free until now, and is again where this process has no memory to keep a record of it.
arena::record& arena::record_of_bound(std::uint32_t descriptor) {
  try {
    return record_of(descriptor);
  } catch (const std::exception&) {
    blocks_.unbind(descriptor);
    throw;
  }
}

bool arena::resolves(const block_snapshot& found, block_ref ref) const noexcept {
  return ref && found.owner.state == block_state::live && found.owner.generation == ref.generation &&
         (ref.size_bytes <= found.capacity || ref.size_bytes == block_ref::whole) && (is_run(found) || is_small(found));
}

bool arena::is_within(const block_snapshot& found) const noexcept {
  return found.capacity <= bytes_.size() && found.offset <= bytes_.size() - found.capacity;
}

// A place and a size that allocate_run() makes: who takes a block over relies on them ever after.
bool arena::is_run(const block_snapshot& found) const noexcept {
  return is_within(found) && found.capacity != 0 && found.capacity % extent_bytes == 0 &&
         found.offset % extent_bytes == 0;
}

bool arena::is_cell(const block_snapshot& found) noexcept {
  return found.capacity == 0 && found.offset == offset_of_cells;
}

// The same of allocate_small().
bool arena::is_small(const block_snapshot& found) const noexcept {
  return is_within(found) && detail::slab::cuts(found.offset, found.capacity);
}

block arena::adopt(block_ref ref) {
  const scoped_lock lock(mutex_);
  const auto found = ref.descriptor < blocks_.size() ? blocks_.read(ref.descriptor) : block_snapshot{};
  auto mine = found.owner;
  mine.owner = options_.self;
  const bool known = record_of(ref.descriptor < blocks_.size() ? ref.descriptor : 0).state != block_state::free;
  const bool is_there = !known && resolves(found, ref);
  if (is_there) reach(found.offset + found.capacity);
  if (!is_there || !blocks_.change(ref.descriptor, found.owner, mine)) {
    throw error(errc::corrupted,
                text("block ", ref.descriptor, " of generation ", ref.generation, " and ", ref.size_bytes,
                     " bytes was handed over, but there is no such block (its descriptor has it at ", found.offset,
                     ", with ", found.capacity, " of ", bytes_.size(), " bytes): the process that lent it misbehaves"));
  }
  record taken{.offset = found.offset,
               .capacity = found.capacity,
               .generation = ref.generation,
               .home = found.home,
               .state = block_state::live};
  if (!taken.is_small()) {
    // A run moves over whole, so that its memory can be given back here. The home is written last: recovery of this
    // process finds the block by its word, and whatever extents moved so far by their owners.
    extents_.transfer(found.home, options_.self, taken.run());
    taken.home = options_.self;
    blocks_.at(ref.descriptor).home.store(static_cast<std::uint16_t>(options_.self), std::memory_order_release);
  }
  record_of(ref.descriptor) = taken;
  ++live_blocks_;
  ref.size_bytes = std::min<std::uint64_t>(ref.size_bytes, found.capacity);
  return {*this, ref, bytes_.data() + found.offset};
}

void arena::reclaim(block_ref ref) {
  {
    const scoped_lock lock(mutex_);
    if (record_of(ref.descriptor).state == block_state::returned) {  // the slab looks for it among those it has lent
      publish(ref.descriptor, options_.self, block_state::returned);
      return;
    }
  }
  adopt(ref).reset();
}

std::span<std::byte> arena::view(block_ref ref) const {
  const auto found = ref.descriptor < blocks_.size() ? blocks_.read(ref.descriptor) : block_snapshot{};
  if (!resolves(found, ref)) {
    throw error(errc::corrupted, text("block ", ref.descriptor, " of generation ", ref.generation,
                                      " was referred to, but there is no such block"));
  }
  reach(found.offset + found.capacity);
  return bytes_.subspan(found.offset, std::min<std::uint64_t>(ref.size_bytes, found.capacity));
}

void arena::lend(block_ref ref) noexcept {
  const scoped_lock lock(mutex_);
  --live_blocks_;
  end_use(record_of(ref.descriptor));
  const auto known = std::exchange(record_of(ref.descriptor), {});
  if (!known.is_small() || known.home != options_.self) return;
  record_of(ref.descriptor) = known;  // it comes back to the slab
  record_of(ref.descriptor).state = block_state::returned;
  slabs_[detail::slab::class_of(known.capacity)]->remember_lent(ref.descriptor);
}

// In a forked child blocks, records and the lock are the parent's.
void arena::release(block_ref ref) noexcept {
  if (!made_in_.is_here()) return;
  const scoped_lock lock(mutex_);
  release_live(ref);
}

void arena::release_live(block_ref ref) noexcept {
  auto& known = record_of(ref.descriptor);
  MUSTER_ASSERT(known.state == block_state::live && known.generation == ref.generation);
  --live_blocks_;
  if (known.capacity == 0) return forget(ref.descriptor);
  if (!known.is_own && !known.is_small()) demand_.count_release();
  end_use(known);
  if (known.home == options_.self) {
    release_here(ref.descriptor);
  } else {
    publish(ref.descriptor, known.home, block_state::returned);
    record_of(ref.descriptor) = {};
  }
}

void arena::release_here(std::uint32_t descriptor) {
  auto& known = record_of(descriptor);
  if (orphans_.contains(known.run().first)) {
    release_orphan(descriptor);
    return;
  }
  known.state = block_state::cached;
  publish(descriptor, options_.self, block_state::cached);
  if (known.is_small()) {
    slabs_[detail::slab::class_of(known.capacity)]->put(descriptor);
  } else {
    cache_run(descriptor);
  }
}

void arena::release_orphan(std::uint32_t descriptor) {
  const auto run = record_of(descriptor).run();
  const auto orphan = orphans_.find(run.first);
  forget(descriptor);
  if (--orphan->second > 0) return;
  orphans_.erase(orphan);
  discard(run);
  extents_.release(options_.self, run);
}

void arena::forget(std::uint32_t descriptor) {
  if (descriptor < records_.size()) {
    end_use(records_[descriptor]);
    records_[descriptor] = {};
  }
  blocks_.unbind(descriptor);
  if (freed_count_ != freed_.size()) {
    freed_[freed_count_++] = descriptor;
  } else {
    block_hint_ = std::min<std::size_t>(block_hint_, descriptor);
  }
}

void arena::drop_run(std::uint32_t descriptor) noexcept {
  const auto run = record_of(descriptor).run();
  forget(descriptor);
  discard(run);
  extents_.release(options_.self, run);
  extent_hint_ = std::min(extent_hint_, run.first);
}

}  // namespace muster
