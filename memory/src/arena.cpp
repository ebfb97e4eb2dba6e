// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/arena.hpp>

#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/memory_budget.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

#include "slab.hpp"

namespace muster {

namespace {

// What a request must leave over for everybody else, and how much is admitted without another look once there was
// plenty. All that take part may use what they were granted when memory has become short meanwhile: of those that do,
// the n-th was granted an n-th of this at most, which together is less than the reserve, for a thousand of them too.
constexpr std::size_t reserve_bytes = std::size_t{64} << 20U;
constexpr std::size_t most_admitted_ahead = reserve_bytes / 8;
constexpr std::size_t part_admitted_ahead = 64;
constexpr std::size_t populate_from_bytes = std::size_t{1} << 20U;
constexpr std::size_t huge_page_bytes = arena::alignment;

constexpr std::size_t round_up(std::size_t number, std::size_t step) { return (number + step - 1) / step * step; }

}  // namespace

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
  change_ = options_.members[index_of(options_.self)].change.load(std::memory_order_acquire);
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

// Tells the others. Release: whoever finds the block by its word sees where it lies and what was written into it.
void arena::publish(std::uint32_t descriptor, participant_id owner, block_state state) {
  const block_ownership word{.generation = record_of(descriptor).generation, .owner = owner, .state = state};
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
    if (best == cache_.end() || length < record_of(*best).run().count) best = each;
  }
  if (best == cache_.end()) return make_live(fresh_run(bytes, copies), bytes);
  const auto descriptor = *best;
  cache_.erase(best);
  cached_bytes_ -= record_of(descriptor).run().size_bytes();
  return make_live(descriptor, bytes);
}

block arena::make_live(std::uint32_t descriptor, std::size_t bytes) {
  auto& known = record_of(descriptor);
  MUSTER_ASSERT(known.state == block_state::cached && known.capacity >= bytes);
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
  const auto descriptor = blocks_.bind(options_.self, offset, capacity, block_hint_);
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

// Of one that was free until now, and is again where this process has no memory to keep a record of it.
arena::record& arena::record_of_bound(std::uint32_t descriptor) {
  try {
    auto& made = record_of(descriptor);
    block_hint_ = descriptor + 1;
    return made;
  } catch (const std::exception&) {
    blocks_.unbind(descriptor);
    throw;
  }
}

// One call for many pages costs less than a fault for each. It may fail for want of support; then the pages come by
// fault, as for a small run. False when there is no memory: a fault would be a SIGBUS. Then it has no pages.
bool arena::populate(extent_run run) noexcept {
  if (run.size_bytes() < populate_from_bytes && !options_.populates_all) return true;
  const auto populate_all = [&](int how) {
    return ::madvise(bytes_.data() + run.offset_bytes(), run.size_bytes(), how);
  };
  const int failed = try_system_call("madvise", populate_all, MADV_POPULATE_WRITE);
  if (failed != 0 && (errno == ENOMEM || errno == EFAULT)) {
    discard(run);
    return false;
  }
  collapse(run.offset_bytes(), run.size_bytes());
  return true;
}

// Huge pages are wanted where they can be: then a run that has room for one begins with one.
std::size_t arena::place_for(std::size_t extents) const noexcept {
  const bool huge = options_.huge_pages == huge_pages::where_possible && extents * extent_bytes >= huge_page_bytes;
  return huge ? round_up(extent_hint_, huge_page_bytes / extent_bytes) : extent_hint_;
}

// Every huge page by itself: where one cannot be had, others can.
void arena::collapse(std::size_t offset, std::size_t bytes) noexcept {
  if (options_.huge_pages == huge_pages::none) return;
  for (auto at = round_up(offset, huge_page_bytes); at + huge_page_bytes <= offset + bytes; at += huge_page_bytes) {
    if (::madvise(bytes_.data() + at, huge_page_bytes, MADV_COLLAPSE) == 0) huge_bytes_ += huge_page_bytes;
  }
}

void arena::prefault(std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes > bytes_.size()) {
    throw error(errc::invalid_argument, text(text_of_bytes(bytes), " were to be prefaulted, but the arena has ",
                                             text_of_bytes(bytes_.size()), ": ask for less, or for a larger arena"));
  }
  const scoped_lock lock(mutex_);
  static_cast<void>(admit(bytes, 0));
  const auto populate_all = [&] { return ::madvise(bytes_.data(), bytes, MADV_POPULATE_WRITE); };
  try {
    system_call("madvise MADV_POPULATE_WRITE", populate_all);
  } catch (const error& failure) {
    throw_exhausted(bytes, 0, text("prefaulting failed: ", failure.what()));
  }
  collapse(0, bytes);
}

// True if it has looked: then who has claimed the memory looks again.
bool arena::admit(std::size_t bytes, unsigned copies) {
  const auto needed = bytes * (std::size_t{1} + copies);
  const bool looks = needed > admitted_bytes_;
  if (looks) {
    const auto left = require_room(bytes, copies, needed);
    admitted_bytes_ = needed + std::min(left / part_admitted_ahead, most_admitted_ahead / member_count());
  }
  admitted_bytes_ -= needed;
  return looks;
}

// What is left over when `needed` more bytes have been taken than are claimed by now. The cache is given up first.
std::size_t arena::require_room(std::size_t bytes, unsigned copies, std::size_t needed) {
  auto untouched = untouched_bytes();
  auto found = budget();
  const auto is_enough = [&] { return found.available_bytes >= needed + untouched + reserve_bytes; };
  if (!is_enough() && !cache_.empty()) {
    trim_cache(0);
    untouched = untouched_bytes();
    found = budget();
  }
  if (!is_enough()) {
    throw_exhausted(bytes, copies,
                    text("only ", text_of_bytes(found.available_bytes), " are available (", found.limited_by,
                         "), of which ", text_of_bytes(untouched), " are for blocks that were not written yet and ",
                         text_of_bytes(reserve_bytes), " are kept in reserve"));
  }
  return found.available_bytes - needed - untouched - reserve_bytes;
}

memory_budget arena::budget() const { return options_.budget ? options_.budget() : available_memory(); }

std::size_t arena::untouched_bytes() const {
  struct stat file{};
  system_call("fstat", ::fstat, memfd_, &file);
  const auto held = extents_.held_count() * extent_bytes;
  return held - std::min(held, static_cast<std::size_t>(file.st_blocks) * 512);
}

void arena::throw_exhausted(std::size_t bytes, unsigned copies, const std::string& reason) const {
  const auto copying = copies == 0 ? std::string()
                                   : text(" (and as much again for ", copies, " private cop", copies == 1 ? "y" : "ies",
                                          " where it is used)");
  const auto held = extents_.held_count() * extent_bytes;
  throw error(errc::out_of_memory, text("a shared block of ", text_of_bytes(bytes), " is needed", copying, ", but ",
                                        reason, "; the arena has ", text_of_bytes(bytes_.size()), ", ",
                                        text_of_bytes(held), " of it in use, of which ", text_of_bytes(cached_bytes_),
                                        " are cached by this process, and ", text_of_bytes(bytes_.size() - held),
                                        " free: send less at a time, keep fewer results, or raise the limit"));
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
  if (known || !resolves(found, ref) || !blocks_.change(ref.descriptor, found.owner, mine)) {
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
  return bytes_.subspan(found.offset, std::min<std::uint64_t>(ref.size_bytes, found.capacity));
}

void arena::lend(block_ref ref) noexcept {
  const scoped_lock lock(mutex_);
  --live_blocks_;
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
  const auto& known = record_of(ref.descriptor);
  MUSTER_ASSERT(known.state == block_state::live && known.generation == ref.generation);
  --live_blocks_;
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
    cache_.push_back(descriptor);
    cached_bytes_ += known.run().size_bytes();
    if (cached_bytes_ > options_.cache_bytes) trim_cache(cache_limit());
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
  record_of(descriptor) = {};
  blocks_.unbind(descriptor);
  block_hint_ = std::min<std::size_t>(block_hint_, descriptor);
}

// That take part now.
std::size_t arena::member_count() const noexcept {
  const auto takes_part = [](const participant_entry& each) { return each.word.load(std::memory_order_relaxed) != 0; };
  const auto count = std::count_if(options_.members.begin(), options_.members.end(), takes_part);
  return std::max<std::size_t>(static_cast<std::size_t>(count), 1);
}

// Nobody can take warm runs away from another one, so that all must leave room for the others' together.
std::size_t arena::cache_limit() const noexcept {
  return std::max(options_.cache_bytes, options_.shared_cache_bytes / member_count());
}

void arena::trim_cache(std::size_t keep_bytes) noexcept {
  while (cached_bytes_ > keep_bytes) {
    const auto oldest = cache_.front();
    cache_.erase(cache_.begin());
    cached_bytes_ -= record_of(oldest).run().size_bytes();
    drop_run(oldest);
  }
}

void arena::drop_run(std::uint32_t descriptor) noexcept {
  const auto run = record_of(descriptor).run();
  forget(descriptor);
  discard(run);
  extents_.release(options_.self, run);
  extent_hint_ = std::min(extent_hint_, run.first);
}

// Gives the pages back to the system; reading them afterwards finds zeros.
void arena::discard(extent_run run) noexcept {
  static_cast<void>(::fallocate(memfd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(run.offset_bytes()), static_cast<off_t>(run.size_bytes())));
}

void arena::recover(participant_id dead) noexcept {
  const scoped_lock lock(mutex_);
  if (!options_.members.empty()) recover_shares(dead);
  for (std::uint32_t descriptor = 0; descriptor < blocks_.used_count(); ++descriptor) recover_block(descriptor, dead);
  recover_extents(dead);
  extent_hint_ = 0;
  block_hint_ = 0;
}

void arena::recover_block(std::uint32_t descriptor, participant_id dead) {
  auto& known = record_of(descriptor);
  if (known.state == block_state::live && known.home == dead) {  // adopted: its memory stays until it is released
    known.home = options_.self;
    blocks_.at(descriptor).home.store(static_cast<std::uint16_t>(options_.self), std::memory_order_release);
    extents_.transfer(dead, options_.self, known.run());
    ++orphans_[known.run().first];
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

void arena::recover_extents(participant_id dead) {
  for (std::size_t extent = 0; extent < extents_.used_count(); ++extent) {
    if (extents_.owner_of(extent) != dead) continue;
    discard({extent, 1});
    extents_.release(dead, {extent, 1});
  }
}

arena::statistics arena::read_statistics() const {
  const scoped_lock lock(mutex_);
  return {.live_blocks = live_blocks_,
          .holds = holds_,
          .held_bytes = extents_.held_count() * extent_bytes,
          .cached_bytes = cached_bytes_,
          .slab_bytes = slab_extents_ * extent_bytes,
          .huge_bytes = huge_bytes_};
}

}  // namespace muster
