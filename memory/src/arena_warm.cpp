// SPDX-License-Identifier: BSL-1.0
// What an arena keeps warm, until when, and what it tells of that.
#include <algorithm>
#include <new>
#include <span>

#include <muster/memory/detail/arena.hpp>

namespace muster {

// Without memory to keep a record of it, it is not kept warm.
void arena::cache_run(std::uint32_t descriptor) {
  ++run_uses_;
  try {
    cache_.push_back(descriptor);
  } catch (const std::bad_alloc&) {
    return drop_run(descriptor);
  }
  set_cached(cached_bytes_ + record_of(descriptor).run().size_bytes());
  if (cached_bytes_ > std::min(least_warm_bytes, options_.cache_bytes)) trim_cache(cache_limit());
  if (keeper_ == nullptr || is_watched_ || cached_bytes_ <= idle_limit()) return;
  is_watched_ = true;
  keeper_->begin_watch();
}

void arena::set_cached(std::size_t bytes) noexcept {
  cached_bytes_ = bytes;
  if (warm_told_ != nullptr) warm_told_->store(bytes, std::memory_order_relaxed);
}

// That take part now.
std::size_t arena::member_count() const noexcept {
  const auto takes_part = [](const participant_entry& each) { return each.word.load(std::memory_order_relaxed) != 0; };
  const auto count = std::count_if(options_.members.begin(), options_.members.end(), takes_part);
  return std::max<std::size_t>(static_cast<std::size_t>(count), 1);
}

// Twice the swing: a run serves requests down to half of its length, so runs none of which serves for another are
// together less than twice the largest.
// Nobody can take warm runs away from another one, so that all must leave room for the others' together.
std::size_t arena::cache_limit() const noexcept {
  const auto wanted = std::max(2 * demand_.swing() + least_warm_bytes, prefaulted_bytes_);
  if (wanted <= options_.cache_bytes) return wanted;
  return std::min(wanted, std::max(options_.cache_bytes, options_.shared_cache_bytes / member_count()));
}

// What was asked for beforehand stays.
std::size_t arena::idle_limit() const noexcept { return std::min(prefaulted_bytes_, cache_limit()); }

void arena::trim_cache(std::size_t keep_bytes) noexcept {
  while (cached_bytes_ > keep_bytes) {
    const auto oldest = cache_.front();
    cache_.erase(cache_.begin());
    set_cached(cached_bytes_ - record_of(oldest).run().size_bytes());
    drop_run(oldest);
  }
}

// ---- when it is not used

arena::warmth arena::warm_beyond_idle() const noexcept {
  const auto stays = idle_limit();
  return {.bytes = cached_bytes_ - std::min(cached_bytes_, stays), .uses = run_uses_};
}

arena::warmth arena::warm() const noexcept {
  if (!made_in_.is_here()) return {};
  const scoped_lock lock(mutex_);
  return warm_beyond_idle();
}

void arena::trim() noexcept {
  if (!made_in_.is_here()) return;
  const scoped_lock lock(mutex_);
  demand_.reset();
  trim_cache(idle_limit());
  is_watched_ = false;
}

arena::warmth arena::trim_unused(const warmth& before) noexcept {
  if (!made_in_.is_here()) return {};
  const scoped_lock lock(mutex_);
  if (run_uses_ == before.uses) {
    demand_.reset();
    trim_cache(idle_limit());
  }
  const auto found = warm_beyond_idle();
  if (found.bytes == 0) is_watched_ = false;
  return found;
}

void arena::be_watched_by(warm_keeper* keeper) noexcept {
  const scoped_lock lock(mutex_);
  keeper_ = keeper;
  is_watched_ = keeper != nullptr && warm_beyond_idle().bytes != 0;
  if (is_watched_) keeper->begin_watch();
}

void arena::no_longer_watched_by(const warm_keeper& keeper) noexcept {
  const scoped_lock lock(mutex_);
  if (keeper_ == &keeper) keeper_ = nullptr;
}

// ---- what there is

namespace {

std::size_t sum_of_warm(std::span<const participant_entry> members) noexcept {
  std::size_t sum = 0;
  for (const auto& each : members) {
    if (each.word.load(std::memory_order_relaxed) != 0) sum += each.warm.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace

arena::statistics arena::read_statistics() const {
  const scoped_lock lock(mutex_);
  return {.live_blocks = live_blocks_,
          .holds = holds_,
          .held_bytes = extents_.held_count() * extent_bytes,
          .cached_bytes = cached_bytes_,
          .slab_bytes = slab_extents_ * extent_bytes,
          .huge_bytes = huge_bytes_,
          .warm_bytes = options_.members.empty() ? cached_bytes_ : sum_of_warm(options_.members)};
}

std::vector<participant_memory> arena::read_participants() const {
  std::vector<std::size_t> extents(options_.members.size());
  for (std::size_t extent = 0; extent < extents_.used_count(); ++extent) {
    const auto owner = index_of(extents_.owner_of(extent));
    if (owner < extents.size()) ++extents[owner];
  }
  std::vector<participant_memory> found;
  for (std::size_t index = index_of(participant_id::host); index < extents.size(); ++index) {
    const auto& entry = options_.members[index];
    const auto word = entry.word.load(std::memory_order_acquire);
    if (word == 0) continue;
    found.push_back({.id = static_cast<participant_id>(index),
                     .pid = static_cast<std::uint32_t>(word),
                     .held_bytes = extents[index] * extent_bytes,
                     .warm_bytes = entry.warm.load(std::memory_order_relaxed)});
  }
  return found;
}

}  // namespace muster
