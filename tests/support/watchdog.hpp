// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <chrono>

#include <gtest/gtest.h>

#include "soak_time.hpp"

namespace muster::test {

/// Longer than any test may take: one of random kills goes on for MUSTER_SOAK_SECONDS, if that is set.
[[nodiscard]] inline std::chrono::seconds longest_test() {
  return std::chrono::seconds(280) + soak_time(std::chrono::seconds(0));
}

/// Ends the process by SIGALRM when a test takes longer than any may, however many there are in it.
class watchdog : public testing::EmptyTestEventListener {
public:
  static void arm() { ::alarm(static_cast<unsigned>(longest_test().count())); }

  void OnTestStart(const testing::TestInfo& /*info*/) override { arm(); }
};

}  // namespace muster::test
