// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
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

/// The median of what `once` says.
[[nodiscard]] inline bounded bound_of(const std::string& name, std::chrono::nanoseconds bound,
                                      std::chrono::nanoseconds (*once)()) {
  return {.name = name, .run = [=](const effort& how) { return against_bound(name, how, bound, once); }};
}

// With the bounds that users of the predecessors asked for.

/// Deaths, endings, long submissions, hand-overs and waits.
[[nodiscard]] std::vector<bounded> bounds_of_pools();
/// Deaths and endings of ranks, in worlds and in groups.
[[nodiscard]] std::vector<bounded> bounds_of_ranks();

}  // namespace bench
