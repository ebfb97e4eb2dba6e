// SPDX-License-Identifier: BSL-1.0
#include "explorer.hpp"

#include <xxhash.h>

namespace muster::model {

fingerprint fingerprint_of(const void* bytes, std::size_t size) {
  const auto hash = XXH3_128bits(bytes, size);
  return {.low = hash.low64, .high = hash.high64 & ~std::uint64_t{1}};
}

// Linear probing, at most two thirds full.
std::size_t seen_states::index_of(const fingerprint& of) const {
  const auto mask = entries_.size() - 1;
  auto index = static_cast<std::size_t>(of.low) & mask;
  while ((entries_[index].low != 0 || entries_[index].high != 0) &&
         (entries_[index].low != of.low || (entries_[index].high & ~std::uint64_t{1}) != of.high)) {
    index = (index + 1) & mask;
  }
  return index;
}

seen_states::found seen_states::look_for(const fingerprint& of) const {
  const auto& entry = entries_[index_of(of)];
  if (entry.low == 0 && entry.high == 0) return found::nothing;
  return (entry.high & 1U) != 0 ? found::on_path : found::left;
}

void seen_states::enter(const fingerprint& of) {
  if (++size_ * 3 > entries_.size() * 2) grow();
  entry_of(of) = {.low = of.low, .high = of.high | 1U};
}

void seen_states::grow() {
  const auto before = std::exchange(entries_, std::vector<fingerprint>(entries_.size() * 2));
  for (const auto& each : before) {
    if (each.low != 0 || each.high != 0) entry_of({.low = each.low, .high = each.high & ~std::uint64_t{1}}) = each;
  }
}

}  // namespace muster::model
