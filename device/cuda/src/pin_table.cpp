// SPDX-License-Identifier: BSL-1.0
#include "pin_table.hpp"

#include <muster/base/error.hpp>

namespace muster::detail {

// The driver is called under the lock: who adds pages that somebody else is about to remove must come before or after.
void pin_table::add(const cuda_driver& driver, std::span<std::byte> pages) {
  const scoped_lock lock(mutex_);
  const auto [found, is_new] = counts_.try_emplace(pages.data(), 0);
  try {
    if (is_new) driver.host_register(pages.data(), pages.size(), CU_MEMHOSTREGISTER_PORTABLE);
  } catch (const error&) {
    counts_.erase(found);
    throw;
  }
  ++found->second;
}

void pin_table::remove(const cuda_driver& driver, std::span<std::byte> pages) noexcept {
  const scoped_lock lock(mutex_);
  const auto found = counts_.find(pages.data());
  if (--found->second != 0) return;
  counts_.erase(found);
  static_cast<void>(driver.host_unregister.attempt(pages.data()));
}

bool pin_table::has(const std::byte* first) const {
  const scoped_lock lock(mutex_);
  return counts_.contains(first);
}

}  // namespace muster::detail
