// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comparison.hpp"

namespace bench {

/// How long something takes that happens now and then, beside the longest that it may take.
struct bounded {
  std::string name;
  std::function<row(const effort&)> run;
};

/// Deaths, endings, long submissions, hand-overs and waits, with the bounds that users of the predecessor asked for.
[[nodiscard]] const std::vector<bounded>& bounded_workloads();

}  // namespace bench
