// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/call_progress.hpp>

#include <gtest/gtest.h>

namespace muster::detail::call_progress_test {
namespace {

using next = call_progress::next;

class CallProgress : public testing::Test {
protected:
  CallProgress() { progress_.begin(epoch); }

  void answer(std::size_t rank, rank_phase what) { progress_.answered(rank, {.epoch = epoch, .what = what}); }

  static constexpr std::uint64_t epoch = 7;
  call_progress progress_{2};
};

TEST_F(CallProgress, WaitsUntilAllAreDoneAndThenCommits) {
  EXPECT_EQ(progress_.decide(), next::wait);
  answer(1, rank_phase::done);
  EXPECT_EQ(progress_.decide(), next::wait);
  answer(0, rank_phase::computed);
  EXPECT_EQ(progress_.decide(), next::wait);
  answer(0, rank_phase::done);
  EXPECT_EQ(progress_.decide(), next::commit);
  EXPECT_EQ(progress_.decide(), next::commit) << "said again, to who has looked at deaths again";
}

TEST_F(CallProgress, AnswersToAnotherCallSayNothing) {
  progress_.answered(0, {.epoch = epoch - 1, .what = rank_phase::done});
  progress_.answered(1, {.epoch = epoch - 1, .what = rank_phase::failed});
  EXPECT_TRUE(progress_.is_awaited(0));
  EXPECT_FALSE(progress_.has_failed(1));
  EXPECT_EQ(progress_.decide(), next::wait);
}

TEST_F(CallProgress, AFailureIsAbortedOnceAndSettledWhenAllAreQuiet) {
  answer(0, rank_phase::failed);
  EXPECT_TRUE(progress_.has_failed(0));
  EXPECT_EQ(progress_.decide(), next::abort);
  EXPECT_EQ(progress_.decide(), next::wait);
  answer(1, rank_phase::computed);
  EXPECT_EQ(progress_.decide(), next::wait);
  answer(1, rank_phase::dropped);
  EXPECT_EQ(progress_.decide(), next::settled);
}

TEST_F(CallProgress, WhoIsDoneInSpiteOfAnAbortDoesNotMakeTheCallCount) {
  answer(0, rank_phase::failed);
  EXPECT_EQ(progress_.decide(), next::abort);
  answer(1, rank_phase::done);
  EXPECT_EQ(progress_.decide(), next::settled);
}

TEST_F(CallProgress, LateIsWhoHasNotComputedBeforeWhoHasAndNobodyWhoIsQuiet) {
  call_progress three(3);
  three.begin(epoch);
  EXPECT_EQ(three.late(), 0U);
  three.answered(0, {.epoch = epoch, .what = rank_phase::computed});
  three.answered(1, {.epoch = epoch, .what = rank_phase::done});
  EXPECT_EQ(three.late(), 2U);
  three.answered(2, {.epoch = epoch, .what = rank_phase::computed});
  EXPECT_EQ(three.late(), 0U);
  three.died(0);
  EXPECT_EQ(three.late(), 2U);
  three.answered(2, {.epoch = epoch, .what = rank_phase::dropped});
  EXPECT_EQ(three.late(), std::nullopt);
}

TEST_F(CallProgress, ADeathIsNotWaitedFor) {
  progress_.died(1);
  EXPECT_TRUE(progress_.is_dead(1));
  EXPECT_FALSE(progress_.is_awaited(1));
  EXPECT_EQ(progress_.decide(), next::abort);
  EXPECT_EQ(progress_.decide(), next::wait) << "for the other one";
  answer(0, rank_phase::dropped);
  EXPECT_EQ(progress_.decide(), next::settled);
}

TEST_F(CallProgress, WhoDiesAfterHeWasDoneTakesTheCallBack) {
  answer(0, rank_phase::done);
  answer(1, rank_phase::done);
  EXPECT_EQ(progress_.decide(), next::commit);
  progress_.died(0);
  EXPECT_EQ(progress_.decide(), next::abort);
  EXPECT_EQ(progress_.decide(), next::settled);
}

TEST_F(CallProgress, WhatTheDeadHadAnsweredIsNotHeard) {
  progress_.died(1);
  answer(1, rank_phase::done);
  EXPECT_TRUE(progress_.is_dead(1));
  EXPECT_EQ(progress_.decide(), next::abort);
}

TEST_F(CallProgress, WhoGivesUpWaitsForThoseWhoAreNotQuiet) {
  progress_.give_up();
  EXPECT_EQ(progress_.decide(), next::abort);
  answer(0, rank_phase::done);
  EXPECT_EQ(progress_.decide(), next::wait);
  answer(1, rank_phase::done);
  EXPECT_EQ(progress_.decide(), next::settled);
}

TEST_F(CallProgress, WhoGivesUpWhenAllAreDoneStillFails) {
  answer(0, rank_phase::done);
  answer(1, rank_phase::done);
  EXPECT_EQ(progress_.decide(), next::commit);
  progress_.give_up();
  EXPECT_EQ(progress_.decide(), next::abort);
  EXPECT_EQ(progress_.decide(), next::settled);
}

TEST_F(CallProgress, TheNextCallBeginsWithNothing) {
  answer(0, rank_phase::failed);
  progress_.died(1);
  EXPECT_EQ(progress_.decide(), next::abort);
  progress_.begin(epoch + 1);
  EXPECT_FALSE(progress_.has_failed(0));
  EXPECT_FALSE(progress_.is_dead(1));
  EXPECT_EQ(progress_.decide(), next::wait);
  progress_.answered(0, {.epoch = epoch + 1, .what = rank_phase::done});
  progress_.answered(1, {.epoch = epoch + 1, .what = rank_phase::done});
  EXPECT_EQ(progress_.decide(), next::commit);
}

// It answered in time to be overlooked, and its death must not be the next call's.
TEST_F(CallProgress, WhoIsBeingKilledIsAwaitedUntilItHasDiedWhateverItAnswers) {
  answer(0, rank_phase::failed);
  EXPECT_EQ(progress_.decide(), next::abort);
  progress_.doom(1);
  answer(1, rank_phase::dropped);
  EXPECT_EQ(progress_.decide(), next::wait);
  progress_.died(1);
  EXPECT_EQ(progress_.decide(), next::settled);
  progress_.begin(epoch + 1);
  EXPECT_FALSE(progress_.is_doomed(1));
}

// Somebody has overwritten its line: it is waited for, and found too late.
TEST_F(CallProgress, AnAnswerThatCannotBeIsNone) {
  answer(0, rank_phase::done);
  answer(1, rank_phase::absent);
  EXPECT_EQ(progress_.decide(), next::wait);
  answer(1, static_cast<rank_phase>(77));
  EXPECT_EQ(progress_.decide(), next::wait);
}

}  // namespace
}  // namespace muster::detail::call_progress_test
