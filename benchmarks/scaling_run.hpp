// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "scaling_figures.hpp"
#include "scaling_machine.hpp"

namespace scaling {

/// What would happen on a machine of so many cores. Deterministic.
[[nodiscard]] figures simulate(const plan& what, const machine_costs& costs);

/// The round trip of two cores of a cluster that do nothing but answer each other: what machine_costs are calibrated
/// by.
[[nodiscard]] nanoseconds simulate_ping_pong(const machine_costs& costs);

/// What happens with threads of this machine. Its counts say something, its times do not when there are fewer
/// processors than threads.
[[nodiscard]] figures run_threads(const plan& what);

}  // namespace scaling
