// SPDX-License-Identifier: BSL-1.0
// The watchdog of the tests themselves (tests/support).
#include "watchdog.hpp"

#include <cstdlib>
#include <optional>
#include <string>

namespace muster::watchdog_test {
namespace {

/// A variable of the environment that is another while this lives.
class variable {
public:
  variable(const char* name, const char* value) : name_(name) {
    if (const char* given = std::getenv(name)) before_ = given;
    ::setenv(name, value, 1);
  }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  ~variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

private:
  const char* name_;
  std::optional<std::string> before_;
};

class Watchdog : public testing::Test {
protected:
  ~Watchdog() override { test::watchdog::arm(); }
  static unsigned seconds_left() { return ::alarm(0); }
};

TEST_F(Watchdog, EveryTestOfASoakHasTheWholeTimeHoweverManyWereBefore) {
  const variable soak("MUSTER_SOAK_SECONDS", "1200");
  test::watchdog listener;
  for (int tests = 0; tests < 3; ++tests) {
    ::alarm(1);  // nearly all of it is over
    listener.OnTestStart(*testing::UnitTest::GetInstance()->current_test_info());
    EXPECT_GT(seconds_left(), 1200U + 200U);
  }
}

TEST_F(Watchdog, ATestHasTheTimeThatItDeclares) {
  const variable declared("MUSTER_TEST_SECONDS", "2000");
  const variable soak("MUSTER_SOAK_SECONDS", "0");
  test::watchdog::arm();
  const auto left = seconds_left();
  EXPECT_GT(left, 1700U);
  EXPECT_LE(left, 2000U);
}

}  // namespace
}  // namespace muster::watchdog_test
