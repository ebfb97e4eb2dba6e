// SPDX-License-Identifier: BSL-1.0
#include "wanted.hpp"

#include <algorithm>
#include <array>

namespace bench {

namespace {

struct named_goal {
  std::string_view row;
  goal wanted;
};

constexpr goal at_least(double ratio) { return {.ratio = ratio, .is_least = true}; }
constexpr goal at_most(double ratio) { return {.ratio = ratio}; }

constexpr std::array goals = {
    named_goal{"task_1us", at_most(1.1)},
    named_goal{"task_10us", at_most(1.05)},
    named_goal{"tensor_ref_64KiB", at_most(1.5)},
    named_goal{"tensor_ref_256MiB", at_most(1.5)},
    named_goal{"accumulate_f32", at_most(1.25)},  // 0.8 of what memory gives
    named_goal{"tensor_vs_fd", at_most(0.02)},
    named_goal{"tensor_vs_torch", at_most(0.01)},
    named_goal{"alloc", at_most(1.5)},
    named_goal{"queue_2p2c", at_most(0.8)},
    named_goal{"queue_vs_boost", at_most(0.8)},
    named_goal{"thread_pool_make", at_most(3)},
    named_goal{"thread_pool_submit", at_most(0.7)},
    named_goal{"p2p_throughput", at_most(1)},
    named_goal{"async_throughput", at_most(1.5)},
    named_goal{"allreduce_8B", at_most(1.5)},
    named_goal{"allreduce_1MiB", at_most(0.5)},
    named_goal{"allreduce_64MiB", at_most(0.25)},
    named_goal{"call_empty", at_most(2.5)},
    named_goal{"call_scalar", at_most(1.3)},
    named_goal{"call_in_worker", at_most(1.05)},
    named_goal{"efficiency_50ms", at_most(1 / 1.9)},
    named_goal{"efficiency_mnist_like", at_most(1 / 1.7)},
    named_goal{"ranks_at_once", at_most(1.1)},
    named_goal{"slices_overhead", at_most(1.05)},
    named_goal{"digits_epoch", at_most(0.65)},
    named_goal{"rpc_rtt", at_most(1.3)},
    named_goal{"rpc_window_256", at_most(1.5)},
    named_goal{"rpc_tensor_64MiB", at_most(1.5)},
    named_goal{"rpc_vs_grpc", at_most(0.05)},
    named_goal{"rpc_vs_capnp", at_most(0.1)},  // 0.05 where a ping-pong takes at most 300 ns
    named_goal{"rpc_vs_torch", at_most(0.01)},
    named_goal{"store_pull_us", at_most(1)},
    named_goal{"store_push_64B", at_most(1)},
    named_goal{"store_pull_vs_redis", at_most(0.001)},
    named_goal{"store_pull_vs_mxnet", at_most(0.001)},
    named_goal{"store_8_readers", at_most(2)},
    named_goal{"kv_push_pull_vs_mxnet", at_most(0.1)},
    named_goal{"kv_push_pull_sync", at_most(0.1)},
    named_goal{"kv_vs_all_reduce", at_most(1.3)},
    named_goal{"scatter_list", at_least(1.2)},
    named_goal{"scatter_ranks", at_least(1.6)},  // 0.8 of two, unless memory is the limit
    named_goal{"kill_recovery", at_most(5)},
    named_goal{"ddp_step", at_most(0.15)},
    named_goal{"gpu_tensor_ref", at_most(1.5)},
    named_goal{"gpu_tensor_vs_torch", at_most(0.05)},
    named_goal{"h2d", at_least(0.97)},
    named_goal{"d2h", at_least(0.97)},
    named_goal{"gpu_accumulate_f32", at_least(0.9)},
    named_goal{"gpu_call_empty", at_most(1.5)},
    named_goal{"gpu_mlp_vs_torch", at_most(1.05)},
    named_goal{"nccl_allreduce_1rank", at_most(1.02)},
};

}  // namespace

namespace {

// Of calls in bursts: what nine of ten bursts take, in the time that the peer usually takes there.
goal wanted_of_bursts(std::string_view row) {
  if (row.ends_with("_busy")) return at_most(1);
  if (row.ends_with("_busy_2") || row.ends_with("_busy_4")) return at_most(2);
  return row.ends_with("_bound") ? at_most(3) : at_most(0.3);
}

}  // namespace

std::optional<goal> wanted(std::string_view row) {
  if (row.starts_with("burst_")) return wanted_of_bursts(row);
  const auto found = std::ranges::find(goals, row, &named_goal::row);
  if (found == goals.end()) return std::nullopt;
  return found->wanted;
}

}  // namespace bench
