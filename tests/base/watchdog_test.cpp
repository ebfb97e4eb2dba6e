// SPDX-License-Identifier: BSL-1.0
// The watchdog of the tests themselves (tests/support).
#include "watchdog.hpp"

#include <cstdlib>
#include <string>

namespace muster::watchdog_test {
namespace {

class Watchdog : public testing::Test {
protected:
  Watchdog() {
    if (const char* given = std::getenv("MUSTER_SOAK_SECONDS")) given_ = given;
    ::setenv("MUSTER_SOAK_SECONDS", "1200", 1);
  }
  ~Watchdog() override {
    ::unsetenv("MUSTER_SOAK_SECONDS");
    if (!given_.empty()) ::setenv("MUSTER_SOAK_SECONDS", given_.c_str(), 1);
    test::watchdog::arm();
  }
  static unsigned seconds_left() { return ::alarm(0); }

  std::string given_;
};

TEST_F(Watchdog, EveryTestOfASoakHasTheWholeTimeHoweverManyWereBefore) {
  test::watchdog listener;
  for (int tests = 0; tests < 3; ++tests) {
    ::alarm(1);  // nearly all of it is over
    listener.OnTestStart(*testing::UnitTest::GetInstance()->current_test_info());
    EXPECT_GT(seconds_left(), 1200U + 200U);
  }
}

}  // namespace
}  // namespace muster::watchdog_test
