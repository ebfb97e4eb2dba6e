// SPDX-License-Identifier: BSL-1.0
#include "world_size.hpp"

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

std::size_t ranks_of(const world_options& options, std::size_t processors) {
  constexpr std::size_t most = 256;
  const std::size_t ranks = options.ranks != 0 ? options.ranks : std::min(processors, most);
  const auto refuse = [&](const auto&... what) { throw error(errc::invalid_argument, text("a world with ", what...)); };
  if (ranks > most)
    refuse("ranks = ", ranks, " was asked for: 1 to ", most, " are possible, or 0 for one per processor");
  if (options.master_rank >= ranks) {
    refuse("master_rank = ", options.master_rank, " and ", ranks, " ranks was asked for: the ranks are 0 to ",
           ranks - 1);
  }
  return ranks;
}

}  // namespace muster::detail
