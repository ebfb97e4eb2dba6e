// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/kept_blocks.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

std::uint64_t kept_blocks::attach(const shared_block& what) {
  blocks_.push_back(what);
  return blocks_.size() - 1;
}

shared_block kept_blocks::take(std::uint64_t name) {
  if (name < blocks_.size()) return blocks_[name];
  throw error(errc::corrupted, text("a value names block ", name, " of ", blocks_.size(), " that are here"));
}

}  // namespace muster::detail
