// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include <muster/parallel/detail/failure_order.hpp>
#include <muster/parallel/detail/world_core.hpp>

#include "world_news.hpp"

namespace muster::detail {

/// What has come of a call so far.
struct world_core::outcome {
  deadline until;
  bool aborted = false;
  bool failed = false;
  world_order what = world_order::run;
  std::optional<std::size_t> late{};  ///< the rank that was waited for when the call was given up
  std::uint64_t late_as = 0;          ///< the number of that among the world's failures; 0: something else came first
  rank_set ended{};                   ///< ranks that were not known to be alive then
  std::exception_ptr refused{};       ///< the outputs do not go together
  std::vector<std::vector<resident_copies>>
      made{};  ///< by rank, if ranks tend to variables: for each job that makes some
};

}  // namespace muster::detail
