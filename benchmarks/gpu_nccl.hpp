// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <vector>

#include "workloads.hpp"

namespace bench {

/// Collectives on one GPU beside NCCL's own calls; none where muster is built without NCCL.
[[nodiscard]] std::vector<workload> gpu_collectives();

}  // namespace bench
