// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/recovery.hpp>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::recovery_test {
namespace {

TEST(RecoveryRegistry, RunsStageByStageThenInOrderOfRegistration) {
  recovery_registry registry;
  std::vector<int> order;
  const auto note = [&order](int which) { return [&order, which](participant_id) { order.push_back(which); }; };
  const auto blocks = registry.add(recovery_stage::blocks, note(4));
  const auto first = registry.add(recovery_stage::boards, note(1));
  const auto groups = registry.add(recovery_stage::groups, note(3));
  const auto second = registry.add(recovery_stage::boards, note(2));
  registry.run(participant_id{7});
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3, 4));
}

TEST(RecoveryRegistry, TellsWhoDied) {
  recovery_registry registry;
  participant_id dead{};
  const auto entry = registry.add(recovery_stage::worlds, [&](participant_id who) { dead = who; });
  registry.run(participant_id{9});
  EXPECT_EQ(dead, participant_id{9});
}

TEST(RecoveryRegistry, ADestroyedRegistrationIsNotRun) {
  recovery_registry registry;
  int runs = 0;
  {
    const auto entry = registry.add(recovery_stage::boards, [&](participant_id) { ++runs; });
    registry.run(participant_id{2});
  }
  registry.run(participant_id{2});
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace muster::recovery_test
