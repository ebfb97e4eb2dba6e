// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include "placement_judge.hpp"

namespace muster::detail {

/// Whether there are so few placements that all can be looked at.
[[nodiscard]] bool are_at_most(std::size_t models, std::size_t devices, std::size_t most);
/// The one that costs least, of all. Throws errc::out_of_memory where none fits.
[[nodiscard]] placing best_of_all(const placement_judge& by);
/// One that costs little: the best of descents from several beginnings, the same for each seed. Throws
/// errc::out_of_memory where it finds none that fits.
[[nodiscard]] placing best_of_some(const placement_judge& by, std::uint64_t seed);

}  // namespace muster::detail
