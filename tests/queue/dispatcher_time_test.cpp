// SPDX-License-Identifier: BSL-1.0
// Who is overdue, decided without workers: the test claims and begins in their place.
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/queue/slot_protocol.hpp>
#include <muster/serialize/exceptions.hpp>

#include "../../queue/src/current_task.hpp"
#include "queue_support.hpp"

namespace muster::dispatcher_time_test {
namespace {

using namespace std::chrono_literals;
using test::thread_world;
using testing::ElementsAre;
using testing::IsEmpty;

int add(int a, int b) { return a + b; }
int fail(int /*x*/) { throw std::runtime_error("on purpose"); }

unsigned fail_before(unsigned attempt) {
  const auto now = task_call::current()->attempt();
  if (now < attempt) throw std::runtime_error("on purpose");
  return now;
}

constexpr overdue_report::worker overdue{.index = 0};

class DispatcherTime : public testing::Test {
protected:
  static constexpr auto limit = 20ms;

  task_record& post() { return post({.timeout = limit}); }
  task_record& post(const task_terms& terms, unsigned retries = 0) {
    auto request = world_.request<add>(1, 2);
    request.terms = &terms;
    request.retries = retries;
    return world_.tasks().post(std::move(request));
  }
  auto& word_of(const task_record& record) { return world_.shared_board().slot(record.where().slot).word; }
  slot_word claim(const task_record& record) {
    return slot_protocol::try_claim(word_of(record), record.where().generation, 1).value();
  }
  void begin(const task_record& record, clock::time_point when) {
    auto& line = world_.shared_board().line(0);
    line.started = static_cast<std::uint64_t>(when.time_since_epoch().count());
    line.current = current_task(record.where().slot, record.where().generation);
  }
  // Time has to pass for this to be about.
  overdue_report check_when_due(clock::time_point due) {
    std::this_thread::sleep_until(due);
    return world_.tasks().check_times();
  }
  void finish(task_record& record) {
    world_.tasks().recover(0, exit_status::killed(SIGKILL));
    world_.start_workers();
    ASSERT_TRUE(world_.tasks().wait(record));
  }

  thread_world world_{1};
};

TEST_F(DispatcherTime, NobodyIsOverdueWhileTheTaskIsQueued) {
  auto& record = post();
  const auto due = clock::now() + 2 * limit;
  const auto found = check_when_due(due);
  EXPECT_THAT(found.workers, IsEmpty());
  EXPECT_GT(found.next, due);
  world_.start_workers();
  EXPECT_TRUE(world_.tasks().wait(record));
  EXPECT_EQ(test::value_of<int>(world_.tasks().take(record)), 3);
}

TEST_F(DispatcherTime, AWorkerIsOverdueALimitAfterItBegan) {
  constexpr auto long_limit = 1s;  // which no delay of this thread is to come near to
  auto& record = post({.timeout = long_limit});
  claim(record);
  std::this_thread::sleep_until(clock::now() + long_limit);
  const auto start = clock::now();
  begin(record, start);
  const auto early = world_.tasks().check_times();  // a limit after it was posted
  EXPECT_THAT(early.workers, IsEmpty());
  EXPECT_EQ(early.next, start + long_limit);
  EXPECT_THAT(check_when_due(early.next).workers, ElementsAre(overdue));
  EXPECT_TRUE(slot_protocol::read(word_of(record)).has(slot_flag::doomed));
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::timed_out);
}

TEST_F(DispatcherTime, ATaskThatWasClaimedButNotBegunIsPostedAgain) {
  auto& record = post();
  claim(record);
  const auto first = check_when_due(clock::now() + limit);
  EXPECT_THAT(first.workers, IsEmpty());
  EXPECT_THAT(check_when_due(first.next).workers, ElementsAre(overdue));
  finish(record);
  EXPECT_EQ(test::value_of<int>(world_.tasks().take(record)), 3);
}

TEST_F(DispatcherTime, ATaskThatIsDoneDoomsNobody) {
  auto& record = post();
  const auto claimed = claim(record);
  begin(record, clock::now());
  static_cast<void>(slot_protocol::complete(word_of(record), claimed, slot_flag::small_reply));
  const auto found = check_when_due(clock::now() + 2 * limit);
  EXPECT_THAT(found.workers, IsEmpty());
  EXPECT_EQ(found.next, clock::time_point::max());
  EXPECT_TRUE(world_.tasks().take(record).succeeded());
}

TEST_F(DispatcherTime, AWorkerThatCompletesWhatItIsDoomedForLearnsIt) {
  auto& record = post();
  const auto claimed = claim(record);
  begin(record, clock::now());
  EXPECT_THAT(check_when_due(clock::now() + limit).workers, ElementsAre(overdue));
  const auto asked = slot_protocol::complete(word_of(record), claimed, slot_flag::small_reply);
  EXPECT_TRUE(asked.has(slot_flag::doomed));
  EXPECT_TRUE(world_.tasks().take(record).succeeded());
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
}

TEST_F(DispatcherTime, AStartThatCannotBeTrueGivesNoMoreTime) {
  auto& record = post();
  claim(record);
  begin(record, clock::now() + 1h);
  EXPECT_THAT(check_when_due(clock::now() + limit).workers, ElementsAre(overdue));
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::timed_out);
}

TEST_F(DispatcherTime, ADeadlineEndsAQueuedTaskWithoutAWorker) {
  auto& record = post({.deadline = clock::now() + limit});
  const auto found = check_when_due(clock::now() + limit);
  EXPECT_THAT(found.workers, IsEmpty());
  EXPECT_EQ(found.next, clock::time_point::max());
  ASSERT_TRUE(world_.tasks().is_done(record));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::timed_out);
  EXPECT_EQ(world_.tasks().read_statistics().timed_out, 1U);
}

// Whoever posts may hold what the sink needs.
TEST_F(DispatcherTime, ASinkIsToldOfADeadlineThatHasPassedBehindThePostOnly) {
  struct note final : completion_sink {
    void settled(task_record& record) noexcept override { told = &record; }
    task_record* told = nullptr;
  };
  note sink;
  const task_terms terms{.deadline = clock::now() - 1ms};
  auto request = world_.request<add>(1, 2);
  request.terms = &terms;
  request.sink = &sink;
  auto& record = world_.tasks().post(std::move(request));
  EXPECT_EQ(sink.told, nullptr);
  EXPECT_EQ(record.phase(), task_phase::waiting) << "no worker gets it";
  EXPECT_THAT(world_.tasks().check_times().workers, IsEmpty());
  ASSERT_EQ(sink.told, &record);
  EXPECT_EQ(world_.tasks().take(record).error(), errc::timed_out);
}

TEST_F(DispatcherTime, ADeadlineDoomsWhoRunsTheTask) {
  const auto deadline = clock::now() + limit;
  auto& record = post({.timeout = 1h, .deadline = deadline});
  claim(record);
  begin(record, clock::now());
  EXPECT_THAT(check_when_due(deadline).workers, ElementsAre(overdue));
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::timed_out);
}

TEST_F(DispatcherTime, ADeadlineThatPassedWhileTheTaskWasPostedAgainEndsIt) {
  const auto deadline = clock::now() + limit;
  auto& record = post({.deadline = deadline});
  claim(record);  // and dies before it begins
  EXPECT_THAT(check_when_due(deadline).workers, ElementsAre(overdue));
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  EXPECT_THAT(world_.tasks().check_times().workers, IsEmpty());
  ASSERT_TRUE(world_.tasks().is_done(record));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::timed_out);
}

// The program was stopped while a task ran, and all of its time seems to have passed when it goes on.
TEST_F(DispatcherTime, APauseOfTheProgramDoesNotCountAgainstATimeout) {
  auto& record = post();
  const auto start = clock::now();
  claim(record);
  begin(record, start);
  std::this_thread::sleep_until(start + 2 * limit);
  world_.tasks().note_pause({.seen = start, .due = start, .end = start + 1h});
  const auto found = world_.tasks().check_times();
  EXPECT_THAT(found.workers, IsEmpty());
  EXPECT_EQ(found.next, start + limit + 1h);
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::worker_died);
}

TEST_F(DispatcherTime, APauseBeforeATaskBeganGivesItNoMoreTime) {
  const auto before = clock::now();
  world_.tasks().note_pause({.seen = before - 1h, .due = before - 1h, .end = before});
  auto& record = post({.timeout = limit, .deadline = before + 1h, .since = before});
  claim(record);
  begin(record, clock::now());
  EXPECT_THAT(check_when_due(clock::now() + limit).workers, ElementsAre(overdue));
  finish(record);
}

TEST_F(DispatcherTime, APauseOfTheProgramDoesNotCountAgainstADeadline) {
  const auto since = clock::now();
  const task_terms terms{.deadline = since + limit, .since = since};
  auto& running = post(terms);
  auto& queued = post(terms);
  claim(running);
  begin(running, since);
  std::this_thread::sleep_until(since + limit);
  EXPECT_TRUE(world_.tasks().is_over(terms));
  world_.tasks().note_pause({.seen = since, .due = since, .end = since + 1h});
  EXPECT_FALSE(world_.tasks().is_over(terms));
  const auto found = world_.tasks().check_times();
  EXPECT_THAT(found.workers, IsEmpty());
  EXPECT_EQ(found.next, since + limit + 1h);
  EXPECT_FALSE(world_.tasks().is_done(queued));
  world_.tasks().stop(error_info(errc::pool_closed, "stopped"));
  EXPECT_EQ(world_.tasks().take(running).error(), errc::pool_closed);
  EXPECT_EQ(world_.tasks().take(queued).error(), errc::pool_closed);
}

// Of more tasks than there are slots the rest waits for one, and their deadline is looked at there.
TEST_F(DispatcherTime, APauseDoesNotCountAgainstTheDeadlineOfATaskThatWaitsForASlot) {
  const auto since = clock::now();
  const task_terms terms{.deadline = since + limit, .since = since};
  std::vector<task_record*> all;
  while (all.size() < 100) all.push_back(&post(terms));
  ASSERT_EQ(all.back()->phase(), task_phase::waiting);
  std::this_thread::sleep_until(since + limit);
  world_.tasks().note_pause({.seen = since, .due = since, .end = since + 1h});
  EXPECT_EQ(world_.tasks().check_times().next, since + limit + 1h);
  EXPECT_EQ(world_.tasks().pending(), all.size());
  world_.start_workers();
  for (auto* each : all) {
    ASSERT_TRUE(world_.tasks().wait(*each));
    EXPECT_EQ(test::value_of<int>(world_.tasks().take(*each)), 3);
  }
}

TEST_F(DispatcherTime, APauseDoesNotBringADelayedAttemptForward) {
  const auto since = clock::now();
  auto& record = post({.deadline = since + limit, .since = since, .retry_delay = 1h}, 1);
  claim(record);
  begin(record, since);
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  std::this_thread::sleep_until(since + limit);
  world_.tasks().note_pause({.seen = since, .due = since, .end = since + 10min});
  EXPECT_EQ(world_.tasks().check_times().next, since + limit + 10min);
  EXPECT_EQ(record.phase(), task_phase::waiting);
  EXPECT_TRUE(world_.tasks().cancel(record));
  EXPECT_EQ(world_.tasks().take(record).error(), errc::cancelled);
}

TEST_F(DispatcherTime, AnAttemptAfterATimeoutHasItsOwnTime) {
  auto& record = post({.timeout = limit, .retry_on = retry::timeout()}, 1);
  claim(record);
  begin(record, clock::now());
  EXPECT_THAT(check_when_due(clock::now() + limit).workers, ElementsAre(overdue));
  finish(record);
  EXPECT_EQ(test::value_of<int>(world_.tasks().take(record)), 3);
  EXPECT_EQ(world_.tasks().read_statistics().retried, 1U);
}

TEST_F(DispatcherTime, ADelayedAttemptIsPostedWhenItsTimeHasCome) {
  auto& record = post({.retry_delay = limit}, 1);
  claim(record);
  begin(record, clock::now());
  world_.tasks().recover(0, exit_status::killed(SIGKILL));
  EXPECT_EQ(record.phase(), task_phase::waiting);
  const auto early = world_.tasks().check_times();
  EXPECT_EQ(record.phase(), task_phase::waiting);
  EXPECT_LT(early.next, clock::now() + 2 * limit);
  EXPECT_EQ(check_when_due(early.next).next, clock::time_point::max());
  EXPECT_EQ(record.phase(), task_phase::posted);
  world_.start_workers();
  ASSERT_TRUE(world_.tasks().wait(record));
  EXPECT_EQ(test::value_of<int>(world_.tasks().take(record)), 3);
}

TEST_F(DispatcherTime, ACancellationBetweenAnAttemptThatFailedAndTheNextIsHeeded) {
  auto nobody_looks = world_.pause();
  world_.start_workers();
  const task_terms terms{.retry_on = retry::exceptions()};
  auto request = world_.request<fail>(1);
  request.terms = &terms;
  request.retries = 5;
  auto& record = world_.tasks().post(std::move(request));
  ASSERT_TRUE(test::eventually([&] { return slot_protocol::read(word_of(record)).state() == slot_state::done; }));
  EXPECT_FALSE(world_.tasks().cancel(record, cancellation::ask));
  nobody_looks.unlock();
  ASSERT_TRUE(world_.tasks().wait(record));
  EXPECT_FALSE(world_.tasks().take(record).succeeded());
  EXPECT_EQ(world_.tasks().read_statistics().retried, 0U);
}

TEST_F(DispatcherTime, ADelayedAttemptCanBeCancelledAndStopped) {
  auto& cancelled = post({.retry_delay = 1h}, 1);
  auto& stopped = post({.retry_delay = 1h}, 1);
  for (auto* each : {&cancelled, &stopped}) {
    claim(*each);
    begin(*each, clock::now());
    world_.tasks().recover(0, exit_status::killed(SIGKILL));
  }
  EXPECT_EQ(world_.tasks().pending(), 2U);
  EXPECT_TRUE(world_.tasks().cancel(cancelled));
  EXPECT_EQ(world_.tasks().take(cancelled).error(), errc::cancelled);
  world_.tasks().stop(error_info(errc::pool_closed, "stopped"));
  EXPECT_EQ(world_.tasks().take(stopped).error(), errc::pool_closed);
  EXPECT_EQ(world_.tasks().pending(), 0U);
}

// Half of the delays, which are a quarter more or less than was asked for, reach the end of the clock.
TEST_F(DispatcherTime, AttemptsThatAreDelayedForEverCanBeStopped) {
  const task_terms terms{.retry_delay = std::chrono::nanoseconds::max()};
  std::vector<task_record*> records;
  for (int count = 0; count < 24; ++count) {
    auto& record = *records.emplace_back(&post(terms, 1));
    claim(record);
    begin(record, clock::now());
    world_.tasks().recover(0, exit_status::killed(SIGKILL));
    ASSERT_EQ(record.phase(), task_phase::waiting);
  }
  world_.tasks().stop(error_info(errc::pool_closed, "stopped"));
  for (auto* each : records) {
    ASSERT_TRUE(world_.tasks().is_done(*each));
    EXPECT_EQ(world_.tasks().take(*each).error(), errc::pool_closed);
  }
  EXPECT_EQ(world_.tasks().pending(), 0U);
}

TEST_F(DispatcherTime, AttemptsBeyondSixteenBitsHaveTheirNumbers) {
  constexpr unsigned last = 65'537;
  const task_terms terms{.retry_on = retry::exceptions()};
  auto request = world_.request<fail_before>(last);
  request.terms = &terms;
  request.attempt = last - 2;
  request.retries = 2;
  auto& good = world_.tasks().post(std::move(request));
  request = world_.request<fail_before>(last + 1);
  request.terms = &terms;
  request.attempt = last - 2;
  request.retries = 2;
  auto& bad = world_.tasks().post(std::move(request));
  world_.start_workers();
  ASSERT_TRUE(world_.tasks().wait(good));
  EXPECT_EQ(test::value_of<unsigned>(world_.tasks().take(good)), last);
  ASSERT_TRUE(world_.tasks().wait(bad));
  EXPECT_EQ(world_.tasks().take(bad).error().place().attempt, last);
}

TEST(DispatcherDeaths, AreCountedAsFarAsTheQuarantineAndTheRetriesGo) {
  constexpr unsigned most = 66'000;
  thread_world world(1, {.quarantine_after = most});
  auto request = world.request<add>(1, 2);
  request.retries = most + 1;
  auto& record = world.tasks().post(std::move(request));
  for (unsigned deaths = 0; deaths < most; ++deaths) {
    const auto where = record.where();
    ASSERT_EQ(where.phase, task_phase::posted) << deaths;
    ASSERT_TRUE(slot_protocol::try_claim(world.shared_board().slot(where.slot).word, where.generation, 1));
    world.shared_board().line(0).current = current_task(where.slot, where.generation);
    world.tasks().recover(0, exit_status::killed(SIGKILL));
  }
  ASSERT_TRUE(world.tasks().is_done(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::quarantined);
  EXPECT_EQ(world.tasks().read_statistics().retried, most - 1);
}

// All that had times were looked at whenever one of them was due.
TEST_F(DispatcherTime, OfAHundredThousandTimedTasksOnlyThoseThatAreDueAreLookedAt) {
  constexpr std::size_t patient = 100'000;
  constexpr std::size_t hurried = 100;
  const auto far = clock::now() + 1h;
  for (std::size_t each = 0; each < patient; ++each) world_.tasks().detach(post({.deadline = far}));
  const auto soon = clock::now() + limit;
  for (std::size_t each = 0; each < hurried; ++each) world_.tasks().detach(post({.deadline = soon + each * 10us}));
  std::size_t looks = 0;
  for (auto due = soon; due != far;) {
    const auto found = check_when_due(due);
    looks += found.looked_at;
    due = found.next;
  }
  EXPECT_LE(looks, hurried);  // one that was late when it was posted is not looked at again
  EXPECT_EQ(world_.tasks().pending(), patient);
  world_.tasks().stop(error_info(errc::pool_closed, "stopped"));
}

}  // namespace
}  // namespace muster::dispatcher_time_test
