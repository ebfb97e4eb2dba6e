// SPDX-License-Identifier: BSL-1.0
// What is decided about the pushes of one key, without processes.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/params/detail/kv_round.hpp>

namespace muster::detail {
namespace {

using testing::ElementsAre;
using verdict = kv_round::verdict;

constexpr kv_worker here{.state = member_state::joined, .incarnation = 1};
constexpr kv_worker dead{.state = member_state::lost, .incarnation = 1};
constexpr kv_worker gone{.state = member_state::left, .incarnation = 1};
constexpr std::uint64_t first = first_number(1);

kv_round round_of(std::size_t workers, std::size_t enough = 0) { return {kv_record(), workers, enough}; }

TEST(KvRound, IsCompleteWithThePushesOfAllThatAreThere) {
  auto round = round_of(3);
  const std::vector workers{here, here, gone};
  round.give(0, first);
  EXPECT_FALSE(round.is_complete(workers));
  EXPECT_THAT(round.missing(workers), ElementsAre(1));
  round.give(1, first);
  EXPECT_TRUE(round.is_complete(workers));
}

TEST(KvRound, WaitsForAWorkerThatHasNotJoinedYet) {
  auto round = round_of(2);
  round.give(0, first);
  EXPECT_FALSE(round.is_complete(std::vector{here, kv_worker()}));
}

TEST(KvRound, APushThatHasCountedIsKnownByItsNumber) {
  auto round = round_of(1);
  const std::vector workers{here};
  EXPECT_EQ(round.look(0, first), verdict::open);
  round.give(0, first);
  round.begin(round.after_round(workers));
  EXPECT_EQ(round.look(0, first), verdict::applied) << "sent again, as its owner died before it answered";
  EXPECT_EQ(round.look(0, first + 1), verdict::open);
  EXPECT_EQ(round.record().ranks[0].pushes, 1U);
}

TEST(KvRound, OneWorkersNextPushWaits) {
  auto round = round_of(2);
  round.give(0, first);
  EXPECT_EQ(round.look(0, first + 1), verdict::later);
  EXPECT_EQ(round.look(0, first), verdict::open) << "the same again";
}

TEST(KvRound, ADeathBeforeAPushIsToldOnceToEach) {
  auto round = round_of(3);
  const std::vector workers{here, here, dead};
  round.give(0, first);
  EXPECT_EQ(round.find_loss(workers), 2U);
  round.begin(round.after_failure(workers, true, "why"));
  EXPECT_EQ(round.find_loss(workers), std::nullopt);
  EXPECT_EQ(round.look(0, first), verdict::failed);
  EXPECT_EQ(round.look(1, first), verdict::failed) << "its push is yet to come";
  EXPECT_EQ(round.look(0, first + 1), verdict::open);
  round.note(round.after_telling(1, first));
  EXPECT_EQ(round.look(1, first), verdict::failed) << "again, as its owner died before it answered";
  EXPECT_EQ(round.look(1, first + 1), verdict::open);
}

TEST(KvRound, NumbersMayBeMissing) {
  auto round = round_of(2);
  const std::vector workers{here, dead};
  EXPECT_EQ(round.look(0, first + 5), verdict::open) << "those before were refused";
  round.give(0, first + 5);
  round.drop(0);
  EXPECT_EQ(round.look(0, first + 6), verdict::open) << "the one before was taken back";
  round.begin(round.after_failure(workers, true, "why"));
  EXPECT_EQ(round.look(0, first + 9), verdict::failed) << "whatever the number of the push that it is told with";
}

TEST(KvRound, TwoDeathsBeforeAPushAreToldWithIt) {
  auto round = round_of(3);
  round.give(0, first);
  round.begin(round.after_failure(std::vector{here, here, dead}, true, "one"));
  round.give(0, first + 1);
  round.begin(round.after_failure(std::vector{here, here, dead}, true, "two"));
  EXPECT_EQ(round.look(1, first), verdict::failed);
  round.note(round.after_telling(1, first));
  EXPECT_EQ(round.look(1, first + 1), verdict::open);
}

TEST(KvRound, OneThatHasBeenToldIsToldOfTheNextDeathWithItsNextPush) {
  auto round = round_of(3);
  round.give(0, first);
  round.begin(round.after_failure(std::vector{here, here, dead}, true, "one"));
  round.note(round.after_telling(1, first));
  round.give(0, first + 1);
  round.begin(round.after_failure(std::vector{here, here, dead}, true, "two"));
  EXPECT_EQ(round.look(1, first + 1), verdict::failed);
  round.note(round.after_telling(1, first + 1));
  EXPECT_EQ(round.look(1, first + 2), verdict::open);
}

TEST(KvRound, APushBeforeItsWorkersDeathCounts) {
  auto round = round_of(2);
  const std::vector workers{here, dead};
  round.give(1, first);
  EXPECT_EQ(round.find_loss(workers), std::nullopt);
  round.give(0, first);
  EXPECT_TRUE(round.is_complete(workers));
  round.begin(round.after_round(workers));
  EXPECT_EQ(round.find_loss(workers), 1U) << "the next round is the one that lacks it";
}

TEST(KvRound, APushThatComesAfterItsWorkersDeathWasToldDoesNotCount) {
  auto round = round_of(2);
  round.give(0, first);
  round.begin(round.after_failure(std::vector{here, dead}, true, "why"));
  EXPECT_EQ(round.look(1, first), verdict::failed);
  EXPECT_EQ(round.look(1, first + 1), verdict::failed);
  EXPECT_EQ(round.look(1, first_number(2)), verdict::open) << "of the worker that has joined in its place";
}

TEST(KvRound, ARankThatIsJoinedAnewBeginsBehindTheOneBefore) {
  auto round = round_of(2);
  round.give(0, first);
  round.give(1, first);
  round.begin(round.after_round(std::vector{here, here}));
  const kv_worker again{.state = member_state::joined, .incarnation = 2};
  EXPECT_EQ(round.look(1, first_number(2)), verdict::open);
  round.give(0, first + 1);
  round.begin(round.after_failure(std::vector{here, again}, true, "why"));
  EXPECT_EQ(round.look(1, first_number(2)), verdict::failed);
  EXPECT_EQ(round.find_loss(std::vector{here, kv_worker{.state = member_state::lost, .incarnation = 2}}), 1U);
}

TEST(KvRound, WithEnoughPushesItIsCompleteAndLaterOnesAreDroppedOnce) {
  auto round = round_of(3, 2);
  const std::vector workers{here, here, here};
  round.give(0, first);
  round.give(1, first);
  EXPECT_TRUE(round.is_complete(workers));
  round.begin(round.after_round(workers));
  EXPECT_EQ(round.look(2, first), verdict::late);
  round.note(round.after_late(2, first));
  EXPECT_EQ(round.look(2, first), verdict::applied);
  EXPECT_EQ(round.look(2, first + 1), verdict::open);
}

TEST(KvRound, StalenessIsCountedAgainstTheSlowestThatHasPushed) {
  auto round = round_of(3);
  const std::vector workers{here, here, here};
  for (std::uint64_t each = 0; each < 3; ++each) round.begin(round.after_push(0, first + each, workers));
  EXPECT_FALSE(round.is_ahead(0, 1, workers)) << "no other has pushed yet";
  round.begin(round.after_push(1, first, workers));
  EXPECT_TRUE(round.is_ahead(0, 1, workers));
  EXPECT_FALSE(round.is_ahead(0, 2, workers));
  EXPECT_FALSE(round.is_ahead(0, 1, std::vector{here, dead, here})) << "a dead one is not waited for";
  EXPECT_FALSE(round.is_ahead(1, 0, workers));
}

TEST(KvRound, ARankThatIsJoinedAnewIsAsFarAsTheSlowest) {
  auto round = round_of(2);
  const std::vector workers{here, here};
  round.begin(round.after_push(1, first, workers));
  for (std::uint64_t each = 0; each < 5; ++each) round.begin(round.after_push(0, first + each, workers));
  round.begin(round.after_push(1, first_number(2), workers));
  EXPECT_EQ(round.record().ranks[1].pushes, 6U);
}

}  // namespace
}  // namespace muster::detail
