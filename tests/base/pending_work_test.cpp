// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/pending_work.hpp>

#include <stdexcept>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>

namespace muster::detail::pending_work_test {
namespace {

int waited = 0;
bool fails = false;

void wait_for_it() {
  ++waited;
  if (fails) throw error(errc::device_lost, "the device is lost");
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
  EXPECT_THROW(pending_work::await(), error);
  EXPECT_FALSE(pending_work::is_any());
  pending_work::await();
  pending_work::note(wait_for_it);
  EXPECT_THROW(pending_work::settle(), error);
  pending_work::await();
  EXPECT_EQ(waited, 2);
}

// As another thread may, while this one waits: what that has given away must be waited for by who tells of it.
void wait_while_another_gives_work_away() {
  ++waited;
  pending_work::note(wait_while_another_gives_work_away);
  if (waited == 1) throw error(errc::peer_lost, "a tensor was never finished");
}

TEST_F(PendingWork, OfAnotherThreadIsStillNotedWhenAWaitFails) {
  pending_work::note(wait_while_another_gives_work_away);
  EXPECT_THROW(pending_work::await(), error);
  EXPECT_TRUE(pending_work::is_any());
  pending_work::await();
  EXPECT_EQ(waited, 2);
}

TEST_F(PendingWork, ThatFailsOtherwiseIsStillThere) {
  pending_work::note([] {
    ++waited;
    throw std::runtime_error("no memory to wait with");
  });
  EXPECT_THROW(pending_work::await(), std::runtime_error);
  EXPECT_TRUE(pending_work::is_any());
  EXPECT_THROW(pending_work::settle(), std::runtime_error);
  EXPECT_EQ(waited, 2);
}

}  // namespace
}  // namespace muster::detail::pending_work_test
