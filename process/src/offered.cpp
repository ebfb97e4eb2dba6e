// SPDX-License-Identifier: BSL-1.0
#include <muster/process/detail/offered.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

shared_block found_source::take(std::uint64_t number) {
  if (number >= names_.size()) {
    throw error(errc::corrupted,
                text("an offered value names its block ", number, ", but ", names_.size(), " came with it"));
  }
  auto found = memory_.borrow(names_[number]);
  memory_.keep(found);
  return found;
}

}  // namespace muster::detail
