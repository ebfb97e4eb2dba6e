// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <muster/collectives/graph_plan.hpp>
#include <muster/device/tensor.hpp>

#include "problem.hpp"

namespace kalman {

/// Where the two ranks of the filter are.
enum class place {
  one_thread,  ///< both in the calling thread, in turns
  threads,     ///< rank 1 in a thread of its own
  processes,   ///< rank 1 in a worker of a pool
};

/// What a rank's steps took.
struct rank_report {
  std::string times;  ///< for people
  std::string trace;  ///< of the last step, for Perfetto

  template <class Archive>
  void serialize(Archive& archive) {
    archive(times, trace);
  }
};

/// What came out of all steps.
struct outcome {
  muster::tensor mu;
  muster::tensor sigma;
  std::vector<rank_report> ranks;
  std::chrono::duration<double> elapsed{0};  ///< in the steps
};

/// What is done after each step with the plan of rank 0.
using observer = std::function<void(std::size_t step, const muster::graph_plan& plan)>;

/// Filters so many measurements. Throws when a rank fails or dies, in all ranks that are left.
[[nodiscard]] outcome run_filter(const problem& given, std::size_t steps, place where, const observer& observe = {});

}  // namespace kalman
