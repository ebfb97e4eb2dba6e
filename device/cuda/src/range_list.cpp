// SPDX-License-Identifier: BSL-1.0
#include "range_list.hpp"

#include <iterator>

#include <muster/base/assert.hpp>

namespace muster::detail {

std::size_t range_list::free_bytes_of(const by_offset& ranges) noexcept {
  std::size_t sum = 0;
  for (const auto& [offset, bytes] : ranges) sum += bytes;
  return sum;
}

std::optional<std::size_t> range_list::take(std::size_t bytes) {
  auto best = ranges_.end();
  for (auto each = ranges_.begin(); each != ranges_.end(); ++each) {
    if (each->second < bytes || (best != ranges_.end() && best->second <= each->second)) continue;
    best = each;
    if (best->second == bytes) break;
  }
  if (best == ranges_.end()) return std::nullopt;
  const auto [offset, had] = *best;
  ranges_.erase(best);
  if (had > bytes) ranges_.emplace(offset + bytes, had - bytes);
  return offset;
}

void range_list::give_back(std::size_t offset, std::size_t bytes) {
  MUSTER_ASSERT(offset + bytes <= size_);
  const auto [here, is_new] = ranges_.emplace(offset, bytes);
  MUSTER_ASSERT(is_new);
  if (const auto next = std::next(here); next != ranges_.end()) {
    MUSTER_ASSERT(offset + bytes <= next->first);
    if (offset + bytes == next->first) {
      here->second += next->second;
      ranges_.erase(next);
    }
  }
  if (here == ranges_.begin()) return;
  const auto before = std::prev(here);
  MUSTER_ASSERT(before->first + before->second <= offset);
  if (before->first + before->second == offset) {
    before->second += here->second;
    ranges_.erase(here);
  }
}

}  // namespace muster::detail
