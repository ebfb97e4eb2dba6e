// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <nccl.h>

namespace fake_nccl {

[[nodiscard]] std::size_t size_of(ncclDataType_t type);

/// Each of `into` and its counterpart are combined, in their own type. Averages are sums here.
void combine(std::byte* into, const std::byte* from, std::size_t count, ncclDataType_t type, ncclRedOp_t op);

}  // namespace fake_nccl
