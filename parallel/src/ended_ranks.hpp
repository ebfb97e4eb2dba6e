// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/memory/domain.hpp>
#include <muster/parallel/detail/failure_order.hpp>
#include <muster/parallel/detail/world_memory.hpp>

namespace muster::detail {

/// The ranks that are not known to be alive now. Asks the kernel, which knows of a death before the domain's host does.
/// Cost: some system calls for each rank.
[[nodiscard]] rank_set ended_ranks(const domain& where, const world_memory& memory) noexcept;

}  // namespace muster::detail
