// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "soak_time.hpp"

namespace muster::test {

/// Longer than the test may take: MUSTER_TEST_SECONDS, which tests/CMakeLists.txt sets to a little less than ctest's
/// timeout for it, or 280. One of random kills goes on for MUSTER_SOAK_SECONDS, if that is set.
[[nodiscard]] inline std::chrono::seconds longest_test() {
  const char* given = std::getenv("MUSTER_TEST_SECONDS");
  return std::chrono::seconds(given != nullptr ? std::atol(given) : 280) + soak_time(std::chrono::seconds(0));
}

/// Ends the process by SIGALRM when a test takes longer than any may, however many there are in it.
class watchdog : public testing::EmptyTestEventListener {
public:
  static void arm() { ::alarm(static_cast<unsigned>(longest_test().count())); }

  void OnTestStart(const testing::TestInfo& /*info*/) override { arm(); }
};

}  // namespace muster::test
