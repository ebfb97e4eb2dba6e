// SPDX-License-Identifier: BSL-1.0
#include "device_heap.hpp"

#include <algorithm>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>

namespace muster::detail {

namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

device_heap::device_heap(const cuda_driver& driver, CUdevice device, std::string name, sharing_means means,
                         hooks before_dropping)
    : driver_(driver),
      device_(device),
      name_(std::move(name)),
      means_(means),
      hooks_(std::move(before_dropping)),
      granularity_(device_extent::granularity(driver, device, means)) {}

device_piece device_heap::allocate(std::size_t bytes) {
  const auto needed = rounded_up(std::max<std::size_t>(bytes, 1), piece_alignment);
  const scoped_lock lock(mutex_);
  device_piece found;
  if (take(needed, found)) return found;
  const auto least = rounded_up(needed, granularity_);
  bool grown = grow(std::max(least, rounded_up(extent_bytes, granularity_))) || grow(least);
  if (!grown && unused_bytes() != 0) {
    drop_unused(0);
    grown = grow(least);
  }
  if (!grown || !take(needed, found)) throw_exhausted(bytes);
  return found;
}

bool device_heap::take(std::size_t bytes, device_piece& found) {
  for (auto& each : extents_) {
    if (const auto offset = each.ranges.take(bytes)) {
      found = {.extent = each.memory, .offset = *offset, .bytes = bytes};
      return true;
    }
  }
  return false;
}

bool device_heap::grow(std::size_t bytes) {
  try {
    extents_.push_back({std::make_shared<device_extent>(driver_, device_, bytes, means_), range_list(bytes)});
    return true;
  } catch (const error& failure) {
    if (failure.code() != errc::out_of_memory) throw;
    return false;
  }
}

void device_heap::release(const device_piece& what) {
  const scoped_lock lock(mutex_);
  const auto of = std::find_if(extents_.begin(), extents_.end(),
                               [&](const owned_extent& each) { return each.memory == what.extent; });
  MUSTER_ASSERT(of != extents_.end());
  of->ranges.give_back(what.offset, what.bytes);
  if (!of->ranges.is_all_free() || unused_bytes() <= keep_bytes) return;
  try {
    drop_unused(keep_bytes);
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
    // The device is lost, and its memory with it: whoever uses it next is told.
  }
}

void device_heap::trim(std::size_t keep) {
  const scoped_lock lock(mutex_);
  drop_unused(keep);
}

// The newest first: those that were made for one large piece.
void device_heap::drop_unused(std::size_t keep) {
  auto left = unused_bytes();
  if (left <= keep) return;
  hooks_.quiesce();
  for (auto index = extents_.size(); index-- > 0 && left > keep;) {
    if (!extents_[index].ranges.is_all_free()) continue;
    left -= extents_[index].ranges.size();
    hooks_.forget(extents_[index].memory.get());
    extents_.erase(extents_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

std::size_t device_heap::unused_bytes() const {
  std::size_t sum = 0;
  for (const auto& each : extents_) sum += each.ranges.is_all_free() ? each.ranges.size() : 0;
  return sum;
}

std::size_t device_heap::held_bytes() const {
  const scoped_lock lock(mutex_);
  std::size_t sum = 0;
  for (const auto& each : extents_) sum += each.ranges.size();
  return sum;
}

std::size_t device_heap::free_bytes() const {
  const scoped_lock lock(mutex_);
  std::size_t sum = 0;
  for (const auto& each : extents_) sum += each.ranges.free_bytes();
  return sum;
}

void device_heap::throw_exhausted(std::size_t bytes) const {
  std::size_t free = 0;
  std::size_t total = 0;
  driver_.memory_info(&free, &total);
  std::size_t held = 0;
  std::size_t unused = 0;
  for (const auto& each : extents_) {
    held += each.ranges.size();
    unused += each.ranges.free_bytes();
  }
  throw error(errc::out_of_memory,
              text(name_, " has no room for ", text_of_bytes(bytes), ": ", text_of_bytes(free), " of ",
                   text_of_bytes(total), " are free there, and of the ", text_of_bytes(held), " of this process ",
                   text_of_bytes(unused), " are, in pieces: ask for less, in more slices, or drop tensors first"));
}

}  // namespace muster::detail
