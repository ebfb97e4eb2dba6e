// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "workloads.hpp"

namespace bench {

/// A step of learning on one GPU: two layers, rows and columns of 4096 everywhere, bf16.
[[nodiscard]] row gpu_mlp_step(const effort& how);
/// The same beside PyTorch's.
[[nodiscard]] row gpu_mlp_vs_torch(const effort& how);
/// Whether there is a PyTorch that can use a GPU.
[[nodiscard]] bool has_torch_on_gpu();

}  // namespace bench
