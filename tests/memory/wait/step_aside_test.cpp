// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/step_aside.hpp>

#include <thread>

#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>
#include <muster/base/detail/current_cpu.hpp>

namespace muster::step_aside_test {
namespace {

void meet(step_aside& aside, place_word& own, int times) {
  for (int each = 0; each < times; ++each) aside.note(own, prospect::futile, true);
}

// Two workers on two processors moved onto one each time that their caller woke beside one of them: tasks of 10 µs took
// 10 µs each instead of 5.7.
TEST(IsRoomAside, OnlyWhereAProcessorIsLeftBesideThoseOfWorkersThatAreAwake) {
  EXPECT_TRUE(is_room_aside(1, 0, 2));
  EXPECT_TRUE(is_room_aside(2, 1, 2));
  EXPECT_FALSE(is_room_aside(2, 0, 2));
  EXPECT_TRUE(is_room_aside(8, 5, 4));
  EXPECT_FALSE(is_room_aside(8, 4, 4));
  EXPECT_FALSE(is_room_aside(1, 0, 1));
  EXPECT_FALSE(is_room_aside(1, 0, 0));
  EXPECT_TRUE(is_room_aside(2, 64, 2)) << "a worker's word in shared memory may say anything";
}

TEST(StepAside, MovesTheThreadAfterSomeMeetingsAndLeavesItsProcessorsAsTheyWere) {
  const auto cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "there is nowhere to go";
  std::thread([&] {
    step_aside aside;
    place_word own = 0;
    meet(aside, own, 3);
    EXPECT_EQ(aside.moves(), 0U);
    EXPECT_EQ(own, 0U);
    meet(aside, own, 1);
    EXPECT_EQ(aside.moves(), 1U);
    EXPECT_EQ(allowed_cpus(), cpus);
    EXPECT_EQ(own & ~place_parts::processor, 0U) << "it has arrived";
    EXPECT_NE(own, 0U);
  }).join();
}

TEST(StepAside, CountsOnlyMeetingsInARow) {
  step_aside aside;
  place_word own = 0;
  for (int each = 0; each < 100; ++each) {
    meet(aside, own, 3);
    aside.note(own, prospect::usual, true);
  }
  EXPECT_EQ(aside.moves(), 0U);
}

TEST(StepAside, GoesNowhereWhereItMayNot) {
  std::thread([] {
    const affinity_scope scope({allowed_cpus().front()});
    step_aside aside;
    place_word own = 0;
    meet(aside, own, 4);
    EXPECT_EQ(aside.moves(), 0U);
    EXPECT_EQ(allowed_cpus().size(), 1U);
  }).join();
}

TEST(StepAside, StaysUnderContention) {
  std::thread([] {
    contention::of_this_thread().begin(clock::now() + std::chrono::hours(1));
    step_aside aside;
    place_word own = 0;
    meet(aside, own, 100);
    EXPECT_EQ(aside.moves(), 0U);
  }).join();
}

}  // namespace
}  // namespace muster::step_aside_test
