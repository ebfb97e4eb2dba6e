// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdlib>

namespace muster::test {

/// How long a test of random kills goes on: MUSTER_SOAK_SECONDS, or as long as the gate has time for.
[[nodiscard]] inline std::chrono::seconds soak_time(std::chrono::seconds in_the_gate) {
  const char* given = std::getenv("MUSTER_SOAK_SECONDS");
  return given != nullptr ? std::chrono::seconds(std::atol(given)) : in_the_gate;
}

}  // namespace muster::test
