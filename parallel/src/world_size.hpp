// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <muster/parallel/world_options.hpp>

namespace muster::detail {

/// How many ranks a world has in a process that may keep so many processors busy. Throws errc::invalid_argument for
/// more than there can be, and for a master that is none of them.
///
/// Thread safety: a pure function; safe.
[[nodiscard]] std::size_t ranks_of(const world_options& options, std::size_t processors);

}  // namespace muster::detail
