// SPDX-License-Identifier: BSL-1.0
#include <stdexcept>

#include <gtest/gtest.h>

#include <muster/base/pending_work.hpp>

namespace muster::detail::pending_work_test {
namespace {

int waited = 0;
bool fails = false;

void wait_for_it() {
  ++waited;
  if (fails) throw std::runtime_error("the device is lost");
}

class PendingWork : public testing::Test {
protected:
  void SetUp() override {
    waited = 0;
    fails = false;
    pending_work::note(wait_for_it);
  }
  void TearDown() override {
    fails = false;
    pending_work::settle();
  }
};

TEST_F(PendingWork, IsWaitedForUntilItIsSettled) {
  pending_work::await();
  pending_work::await();
  EXPECT_TRUE(pending_work::is_any());
  pending_work::settle();
  EXPECT_FALSE(pending_work::is_any());
  pending_work::await();
  pending_work::settle();
  EXPECT_EQ(waited, 3);
}

TEST_F(PendingWork, ThatFailsIsToldOfOnce) {
  fails = true;
  EXPECT_THROW(pending_work::await(), std::runtime_error);
  EXPECT_FALSE(pending_work::is_any());
  pending_work::await();
  pending_work::note(wait_for_it);
  EXPECT_THROW(pending_work::settle(), std::runtime_error);
  pending_work::await();
  EXPECT_EQ(waited, 2);
}

}  // namespace
}  // namespace muster::detail::pending_work_test
