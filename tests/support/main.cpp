// SPDX-License-Identifier: BSL-1.0
// main() of every test program: workers turn off here; tests run with a watchdog and a look at what they leave behind.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include <muster/process/init.hpp>

#include "leak_check.hpp"

int main(int argc, char** argv) {
  muster::init(argc, argv);
  constexpr unsigned watchdog_seconds = 280;  // longer than any test may take; its signal ends the program
  constexpr unsigned soaks = 2;               // scripts/soak runs so many tests of that length, one after the other
  const char* soak_seconds = std::getenv("MUSTER_SOAK_SECONDS");
  ::alarm(watchdog_seconds + soaks * static_cast<unsigned>(soak_seconds != nullptr ? std::atoi(soak_seconds) : 0));
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of killed parents come to us, where the leak check sees them
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new muster::test::leak_check);  // the framework owns it
  return RUN_ALL_TESTS();
}
