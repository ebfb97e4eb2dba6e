// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/collectives/detail/rank_end.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster::detail {

/// The memory of a group that comes of another: of the same kind, and `ranks[i]` is to be rank i. It says from the
/// start which processes those are.
[[nodiscard]] shared_block make_group_memory(rank_end& from, std::span<const std::size_t> ranks);

/// A hold on such memory, which another rank has made. Throws errc::corrupted when nobody has it any more.
[[nodiscard]] shared_block hold_group_memory(rank_end& end, std::uint64_t name);

}  // namespace muster::detail
