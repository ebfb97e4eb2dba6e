// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>

#include "soak_time.hpp"

namespace muster::test {

/// Where the test's random numbers begin: at MUSTER_SEED; else at `in_the_gate`, if that is given and
/// MUSTER_SOAK_SECONDS is not; else anywhere. Prints it. Whoever draws in another process or thread is given a number
/// that follows from it.
[[nodiscard]] inline unsigned seed(std::optional<unsigned> in_the_gate = {}) {
  const char* given = std::getenv("MUSTER_SEED");
  const bool has_time = soak_time(std::chrono::seconds(0)).count() > 0;
  const auto usual = in_the_gate && !has_time ? *in_the_gate : std::random_device()();
  const auto chosen = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : usual;
  std::printf("MUSTER_SEED=%u\n", chosen);
  std::fflush(stdout);
  return chosen;
}

}  // namespace muster::test
