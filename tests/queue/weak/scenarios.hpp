// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <vector>

#include "checker.hpp"

namespace muster::weak {

/// What is checked, each over all its executions.
[[nodiscard]] const std::vector<scenario>& all_scenarios();

[[nodiscard]] std::vector<scenario> claim_scenarios();
[[nodiscard]] std::vector<scenario> wait_scenarios();
[[nodiscard]] std::vector<scenario> sleep_scenarios();
[[nodiscard]] std::vector<scenario> bell_scenarios();

}  // namespace muster::weak
