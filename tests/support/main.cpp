// SPDX-License-Identifier: BSL-1.0
// main() of every test program: workers turn off here; tests run with a watchdog and a look at what they leave behind.
#include <sys/prctl.h>

#include <gtest/gtest.h>

#include <muster/process/init.hpp>

#include "leak_check.hpp"
#include "watchdog.hpp"

int main(int argc, char** argv) {
  muster::init(argc, argv);
  muster::test::watchdog::arm();       // before the first test, too
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of killed parents come to us, where the leak check sees them
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new muster::test::leak_check);  // the framework owns it
  testing::UnitTest::GetInstance()->listeners().Append(new muster::test::watchdog);
  return RUN_ALL_TESTS();
}
