// SPDX-License-Identifier: BSL-1.0
#include "wanted.hpp"

#include <algorithm>
#include <array>

namespace bench {

namespace {

struct goal {
  std::string_view row;
  double ratio;
};

constexpr std::array goals = {
    goal{"task_1us", 1.1},
    goal{"task_10us", 1.05},
    goal{"tensor_ref_64KiB", 1.5},
    goal{"tensor_ref_256MiB", 1.5},
    goal{"accumulate_f32", 1.25},  // 0.8 of what memory gives
    goal{"tensor_vs_fd", 0.02},
    goal{"tensor_vs_torch", 0.01},
    goal{"alloc", 1.5},
    goal{"queue_2p2c", 0.8},
    goal{"queue_vs_boost", 0.8},
    goal{"thread_pool_submit", 0.7},
    goal{"p2p_throughput", 1},
    goal{"async_throughput", 1.5},
    goal{"allreduce_8B", 1.5},
    goal{"allreduce_1MiB", 0.5},
    goal{"allreduce_64MiB", 0.25},
    goal{"call_empty", 2.5},
    goal{"call_scalar", 1.3},
    goal{"call_in_worker", 1.05},
    goal{"efficiency_50ms", 1 / 1.9},
    goal{"efficiency_mnist_like", 1 / 1.7},
    goal{"slices_overhead", 1.05},
    goal{"digits_epoch", 0.65},
    goal{"scatter_list", 1 / 1.2},
    goal{"kill_recovery", 5},
    goal{"ddp_step", 0.15},
};

}  // namespace

std::optional<double> wanted(std::string_view row) {
  const auto found = std::ranges::find(goals, row, &goal::row);
  if (found == goals.end()) return std::nullopt;
  return found->ratio;
}

}  // namespace bench
