// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <random>

namespace muster::test {

/// Where the test's random numbers begin: at MUSTER_SEED, or anywhere. Prints it.
[[nodiscard]] inline unsigned seed() {
  const char* given = std::getenv("MUSTER_SEED");
  const auto chosen =
      given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device()();
  std::printf("MUSTER_SEED=%u\n", chosen);
  std::fflush(stdout);
  return chosen;
}

}  // namespace muster::test
