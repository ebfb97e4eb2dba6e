// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/block.hpp>

#include <muster/base/assert.hpp>
#include <muster/memory/detail/arena.hpp>

namespace muster {

void block::shrink(std::size_t size_bytes) noexcept {
  MUSTER_ASSERT(size_bytes <= size());
  ref_.size_bytes = size_bytes;
}

block_ref block::lend() noexcept {
  if (arena_ == nullptr) return {};
  std::exchange(arena_, nullptr)->lend(ref_);
  return std::exchange(ref_, {});
}

void block::release() noexcept { std::exchange(arena_, nullptr)->release(std::exchange(ref_, {})); }

block allocate(arena& from, std::size_t bytes, unsigned copies) { return from.allocate(bytes, copies); }

}  // namespace muster
