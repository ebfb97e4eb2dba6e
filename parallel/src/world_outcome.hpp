// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <vector>

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
  std::exception_ptr refused{};       ///< the outputs do not go together
  std::vector<std::vector<resident_copies>>
      made{};  ///< by rank, if ranks tend to variables: for each job that makes some
};

}  // namespace muster::detail
