// SPDX-License-Identifier: BSL-1.0
// One kind of damage each: somebody has overwritten shared words. docs/design/integrity.md.
#include <sys/stat.h>

#include <csignal>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/serialize/exceptions.hpp>

#include "queue_support.hpp"

namespace muster::damage_test {
namespace {

using namespace std::chrono_literals;
using test::thread_world;
using test::value_of;
using testing::ElementsAre;
using testing::IsEmpty;

int add(int a, int b) { return a + b; }
std::string text_of(int length, char filler) { return std::string(static_cast<std::size_t>(length), filler); }

std::atomic<int> arrivals = 0;
std::promise<void>* gate = nullptr;
int wait_at_gate(int x) {
  auto passed = gate->get_future();
  ++arrivals;
  passed.wait();
  return x;
}

struct told_sink final : completion_sink {
  explicit told_sink(dispatcher& where) : tasks(where) {}
  void settled(task_record& record) noexcept override {
    reply = tasks.take(record);
    ++times;
  }
  dispatcher& tasks;
  task_reply reply;
  std::atomic<int> times = 0;
};

template <auto Function, class... Args>
task_record& post_with(thread_world& world, completion_sink& sink, const Args&... args) {
  auto request = world.request<Function>(args...);
  request.sink = &sink;
  return world.tasks().post(std::move(request));
}

// Only what was there at the audit before is looked at.
audit_report audit(thread_world& world) {
  static_cast<void>(world.tasks().audit());
  return world.tasks().audit();
}

void renew(thread_world& world) {
  world.tasks().renew();
  world.functions().restore_directory();
}

std::atomic<std::uint64_t>& word_of(thread_world& world, const task_record& record) {
  return world.shared_board().slot(record.where().slot).word;
}

slot_word with_state(const slot_word& word, unsigned owner, slot_state state) {
  return {word.generation(), owner, slot_flag::none, state};
}

void expect_value(thread_world& world, task_record& record, int value) {
  ASSERT_TRUE(world.tasks().wait(record, deadline::after(30s)));
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), value);
}

TEST(Damage, AnAuditOfWhatIsRightChangesNothing) {
  thread_world world(2);
  auto& record = world.post<add>(1, 2);
  const auto before = word_of(world, record).load();
  const auto report = audit(world);
  EXPECT_TRUE(report.more);
  EXPECT_THAT(report.suspects, IsEmpty());
  EXPECT_FALSE(report.repeated);
  EXPECT_EQ(word_of(world, record), before);
  EXPECT_EQ(world.shared_board().lane_at(1).head(), 0U);
  world.start_workers();
  expect_value(world, record, 3);
  EXPECT_FALSE(audit(world).more);
  EXPECT_EQ(world.tasks().read_statistics().damaged, 0U);
}

TEST(Damage, WatchingIsAskedForOncePerBusyTime) {
  int asked = 0;
  thread_world world(1, {.watch = [&] { ++asked; }});
  auto& one = world.post<add>(1, 1);
  auto& two = world.post<add>(1, 1);
  EXPECT_EQ(asked, 1);
  world.start_workers();
  expect_value(world, one, 2);
  expect_value(world, two, 2);
  EXPECT_FALSE(world.tasks().audit().more);
  expect_value(world, world.post<add>(1, 2), 3);
  EXPECT_EQ(asked, 2);
}

// ---- hints

TEST(Damage, HintsThatWereOverwrittenAreEnteredAgain) {
  thread_world world(1);
  auto& one = world.post<add>(1, 1);
  auto& two = world.post<add>(2, 2);
  world.shared_board().lane_at(1).reset(0);
  world.start_workers();
  static_cast<void>(audit(world));
  expect_value(world, one, 2);
  expect_value(world, two, 4);
  EXPECT_EQ(world.tasks().read_statistics().damaged, 1U);
}

TEST(Damage, ALaneWhoseHeadIsPastItsTailIsRepaired) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  world.shared_board().lane_at(1).reset(1000);
  world.start_workers();
  static_cast<void>(audit(world));
  expect_value(world, record, 2);
  expect_value(world, world.post<add>(2, 2), 4);
}

TEST(Damage, AHintThatTheHeadSkippedIsEnteredAgain) {
  thread_world world(1);
  auto& skipped = world.post<add>(1, 1);
  auto& next = world.post<add>(2, 2);
  auto& lane = world.shared_board().lane_at(1);
  lane.advance(lane.look());
  world.start_workers();
  expect_value(world, next, 4);
  static_cast<void>(audit(world));
  expect_value(world, skipped, 2);
}

TEST(Damage, TasksThatWaitBecauseALaneLooksFullAreFed) {
  thread_world world(1, {}, 4);
  std::vector<task_record*> records;
  for (int each = 0; each < 8; ++each) records.push_back(&world.post<add>(each, 1));
  world.shared_board().lane_at(1).reset(std::uint64_t{0} - 500);
  world.start_workers();
  static_cast<void>(audit(world));
  for (int each = 0; each < 8; ++each) expect_value(world, *records[static_cast<std::size_t>(each)], each + 1);
}

// ---- slot words

TEST(Damage, AnImpossibleWordFailsItsTaskThoughNobodyWaits) {
  const auto forgeries = std::to_array<std::function<slot_word(const slot_word&)>>({
      [](const slot_word& right) { return with_state(right, 0, slot_state::free); },
      [](const slot_word& right) { return with_state(right, 1, slot_state::queued); },
      [](const slot_word& right) { return with_state(right, 0, slot_state::claimed); },
      [](const slot_word& right) { return with_state(right, 300, slot_state::claimed); },
      [](const slot_word& right) { return with_state(right, 0, slot_state::done); },
      [](const slot_word& right) { return with_state(right, 9, slot_state::done); },
      [](const slot_word& right) { return with_state(right, 1, static_cast<slot_state>(7)); },
      [](const slot_word& right) { return slot_word(right.generation() + 1, 1, slot_flag::none, slot_state::done); },
      [](const slot_word& right) { return slot_word(~right.bits()); },
  });
  for (const auto& forge : forgeries) {
    thread_world world(1);
    told_sink sink(world.tasks());
    auto& word = word_of(world, post_with<add>(world, sink, 1, 1));
    word = forge(slot_word(word)).bits();
    static_cast<void>(audit(world));
    EXPECT_EQ(sink.times, 1);
    EXPECT_EQ(sink.reply.error(), errc::corrupted);
    EXPECT_EQ(world.tasks().read_statistics().corrupted, 1U);
    world.start_workers();
    expect_value(world, world.post<add>(2, 2), 4);
  }
}

TEST(Damage, AWaiterAsleepIsToldThatItsTasksWordIsImpossible) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  std::thread waiter([&] { world.tasks().wait(record); });
  auto& word = word_of(world, record);
  ASSERT_TRUE(test::eventually([&] { return slot_word(word).has(slot_flag::waiter); }));
  word = with_state(slot_word(word), 0, slot_state::claimed).bits();
  static_cast<void>(audit(world));
  waiter.join();
  EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
}

TEST(Damage, ATaskThatASleepingWorkerIsSaidToRunIsGivenUp) {
  thread_world world(2);
  auto& record = world.post<add>(1, 1);
  word_of(world, record) = with_state(slot_word(word_of(world, record)), 2, slot_state::claimed).bits();
  static_cast<void>(audit(world));
  EXPECT_FALSE(world.tasks().is_done(record)) << "it may just have claimed it, and be stopped";
  world.shared_board().line(1).parked = 1;
  static_cast<void>(audit(world));
  ASSERT_TRUE(world.tasks().is_done(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
}

TEST(Damage, ATaskWhoseWorkerIsAtAnotherIsGivenUp) {
  std::promise<void> opened;
  gate = &opened;
  arrivals = 0;
  thread_world world(1);
  world.start_workers();
  auto& running = world.post<wait_at_gate>(5);
  ASSERT_TRUE(test::eventually([] { return arrivals == 1; }));
  auto& record = world.post<add>(1, 1);
  word_of(world, record) = with_state(slot_word(word_of(world, record)), 1, slot_state::claimed).bits();
  static_cast<void>(audit(world));
  ASSERT_TRUE(world.tasks().is_done(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
  opened.set_value();
  expect_value(world, running, 5);
}

TEST(Damage, ARunningTaskWhoseWordSaysQueuedIsGivenUpAndNotRunTwice) {
  std::promise<void> opened;
  gate = &opened;
  arrivals = 0;
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<wait_at_gate>(5);
  ASSERT_TRUE(test::eventually([] { return arrivals == 1; }));
  word_of(world, record) = with_state(slot_word(word_of(world, record)), 0, slot_state::queued).bits();
  static_cast<void>(audit(world));
  ASSERT_TRUE(world.tasks().is_done(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
  opened.set_value();
  expect_value(world, world.post<add>(2, 2), 4);
  EXPECT_EQ(arrivals, 1);
}

TEST(Damage, AWordThatChangesBetweenWaitingAndTakingFailsItsTask) {
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<add>(1, 1);
  ASSERT_TRUE(world.tasks().wait(record));
  word_of(world, record) = with_state(slot_word(word_of(world, record)), 0, slot_state::free).bits();
  EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
}

TEST(Damage, ASlotThatWasLostIsNotUsedBeforeTheBoardIsRenewed) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  const auto lost = record.where().slot;
  word_of(world, record) = 0;
  EXPECT_TRUE(world.tasks().wait(record));
  static_cast<void>(world.tasks().take(record));
  for (int each = 0; each < 63; ++each) {
    const auto where = world.post<add>(each, 1).where();
    EXPECT_TRUE(where.phase != task_phase::posted || where.slot != lost);
  }
  renew(world);
  world.tasks().stop(error_info(errc::cancelled, "enough"));
}

// ---- what a worker does that has lost its slot

TEST(Damage, AWorkerWhoseSlotWasTakenAwayWritesNothingThere) {
  std::promise<void> opened;
  gate = &opened;
  arrivals = 0;
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<wait_at_gate>(5);
  ASSERT_TRUE(test::eventually([] { return arrivals == 1; }));
  auto& word = word_of(world, record);
  const auto slot = record.where().slot;
  word = slot_word(slot_word(word).generation(), 1, slot_flag::small_reply, slot_state::done).bits();
  static_cast<void>(world.tasks().take(record));  // a forgery like this one cannot be told from the truth
  auto& next = world.post<add>(20, 22);
  ASSERT_EQ(next.where().slot, slot) << "the test needs the next task in the same slot";
  opened.set_value();
  expect_value(world, next, 42);
}

// ---- replies

class DamagedReply : public testing::Test {
protected:
  DamagedReply() { world_.start_workers(); }

  task_record& done(int length, char filler) {
    auto& record = world_.post<text_of>(length, filler);
    EXPECT_TRUE(world_.tasks().wait(record));
    return record;
  }
  void flip(task_record& record, slot_flag flags) { word_of(world_, record) ^= slot_word::flag_bits(flags); }
  task_slot& slot_of(const task_record& record) { return world_.shared_board().slot(record.where().slot); }
  void expect_corrupted(task_record& record) {
    EXPECT_EQ(world_.tasks().take(record).error(), errc::corrupted);
    EXPECT_EQ(world_.tasks().read_statistics().corrupted, 1U);
  }

  thread_world world_{1};
};

TEST_F(DamagedReply, ALineThatAnEarlierTaskLeftIsNotTaken) {
  static_cast<void>(world_.tasks().take(done(30, 'a')));
  auto& record = world_.post<add>(1, 1);
  ASSERT_TRUE(world_.tasks().wait(record));
  flip(record, slot_flag::small_reply | slot_flag::line_reply);
  expect_corrupted(record);
}

TEST_F(DamagedReply, ABlockThatAnEarlierTaskLeftIsNotTaken) {
  static_cast<void>(world_.tasks().take(done(300, 'a')));
  auto& record = done(30, 'b');
  flip(record, slot_flag::line_reply | slot_flag::block_reply);
  expect_corrupted(record);
}

TEST_F(DamagedReply, NoFlagOfTheKindCanBeFlipped) {
  for (const auto flag : {slot_flag::small_reply, slot_flag::line_reply, slot_flag::block_reply, slot_flag::failed}) {
    auto& record = done(30, 'b');
    flip(record, flag);
    EXPECT_EQ(world_.tasks().take(record).error(), errc::corrupted);
  }
}

TEST_F(DamagedReply, AnOverwrittenSealFailsTheTask) {
  for (const unsigned bit : {6U, 30U, 31U, 32U, 63U}) {
    auto& record = done(30, 'b');
    slot_of(record).reply_bytes ^= std::uint64_t{1} << bit;
    EXPECT_EQ(world_.tasks().take(record).error(), errc::corrupted) << bit;
  }
}

TEST_F(DamagedReply, AnOverwrittenHandleFailsTheTask) {
  for (const unsigned bit : {0U, 1U, 31U, 32U, 33U, 40U, 64U, 70U}) {
    auto& record = done(300, 'b');
    slot_of(record).reply[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(world_.tasks().take(record).error(), errc::corrupted) << bit;
  }
}

// ---- wakes

TEST(Damage, ACompletionThatWasNotEnteredIntoTheRingIsFound) {
  thread_world world(1);
  told_sink sink(world.tasks());
  word_of(world, post_with<add>(world, sink, 1, 1)) &= ~slot_word::flag_bits(slot_flag::notify);
  world.start_workers();
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().line(0).finished == 1; }));
  ASSERT_TRUE(test::eventually([&] {
    static_cast<void>(world.tasks().audit());
    return sink.times == 1;
  }));
  EXPECT_EQ(value_of<int>(sink.reply), 2);
}

TEST(Damage, AWaiterWhoseFlagWasTakenAwayIsWoken) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  std::thread waiter([&] { world.tasks().wait(record); });
  auto& word = word_of(world, record);
  ASSERT_TRUE(test::eventually([&] { return slot_word(word).has(slot_flag::waiter); }));
  word &= ~slot_word::flag_bits(slot_flag::waiter);
  world.start_workers();
  ASSERT_TRUE(test::eventually([&] {
    static_cast<void>(world.tasks().audit());
    return record.phase() == task_phase::settled;
  }));
  waiter.join();
  EXPECT_EQ(value_of<int>(world.tasks().take(record)), 2);
}

TEST(Damage, AWorkerThatNobodyKnowsToSleepIsWoken) {
  thread_world world(1);
  world.start_workers();
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().sleeping().count() == 1; }));
  world.shared_board().sleeping().remove(0);
  told_sink sink(world.tasks());
  post_with<add>(world, sink, 1, 1);
  EXPECT_EQ(sink.times, 0);
  static_cast<void>(audit(world));
  EXPECT_TRUE(test::eventually([&] { return sink.times == 1; }));
}

TEST(Damage, AWakeThatWentToNobodyIsRepeated) {
  thread_world world(2);
  world.start_workers();
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().sleeping().count() == 2; }));
  for (std::size_t worker = 0; worker < 64; ++worker) world.shared_board().sleeping().remove(worker);
  for (std::size_t worker = 2; worker < 64; ++worker) world.shared_board().sleeping().insert(worker);
  told_sink sink(world.tasks());
  post_with<add>(world, sink, 1, 1);
  static_cast<void>(audit(world));
  EXPECT_TRUE(test::eventually([&] { return sink.times == 1; }));
}

TEST(Damage, ABellThatWasSilencedIsArmedAgain) {
  thread_world world(1);
  world.start_workers();
  told_sink first(world.tasks());
  post_with<add>(world, first, 1, 1);
  ASSERT_TRUE(test::eventually([&] { return first.times == 1 && world.shared_board().bell_armed() == 1; }));
  world.shared_board().bell_armed() = 0;
  told_sink sink(world.tasks());
  post_with<add>(world, sink, 1, 1);
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().line(0).finished == 2; }));
  static_cast<void>(audit(world));
  EXPECT_TRUE(test::eventually([&] { return sink.times == 1; }));
}

TEST(Damage, AnOrderThatIsNoneIsIgnored) {
  thread_world world(1);
  world.start_workers();
  ASSERT_TRUE(test::eventually([&] { return world.shared_board().sleeping().count() == 1; }));
  world.shared_board().line(0).order = 77;
  expect_value(world, world.post<add>(1, 1), 2);
  EXPECT_TRUE(test::eventually([&] { return world.shared_board().sleeping().count() == 1; })) << "it does not spin";
}

// ---- what only one worker writes

TEST(Damage, AWorkerWhoseOwnWordsAreImpossibleIsSuspected) {
  const auto forgeries = std::to_array<std::function<void(worker_line&)>>({
      [](worker_line& line) { line.current = 1; },
      [](worker_line& line) { line.current = std::uint64_t{1} << 63U | std::uint64_t{5000} << 32U; },
      [](worker_line& line) { line.leaving = 2; },
      [](worker_line& line) { line.ring_tail = 0xfffffffffffffff0U; },
      [](worker_line& line) { line.ring_tail = 1U << 20U; },
  });
  for (const auto& forge : forgeries) {
    thread_world world(2);
    auto& record = world.post<add>(1, 1);
    forge(world.shared_board().line(1));
    static_cast<void>(audit(world));
    EXPECT_THAT(world.tasks().audit().suspects, ElementsAre(1U));
    EXPECT_EQ(world.tasks().read_statistics().damaged, 1U) << "once is enough";
    world.tasks().recover(1, exit_status::killed(SIGKILL));
    EXPECT_THAT(world.tasks().audit().suspects, IsEmpty());
    world.start_workers();
    expect_value(world, record, 2);
  }
}

TEST(Damage, AWorkerWhoseCountGoesBackIsSuspected) {
  thread_world world(1);
  world.start_workers();
  for (int each = 0; each < 10; ++each) expect_value(world, world.post<add>(each, 1), each + 1);
  static_cast<void>(audit(world));
  world.shared_board().line(0).finished = 3;
  EXPECT_THAT(world.tasks().audit().suspects, ElementsAre(0U));
}

// It is not known whether it had begun: so it must not be run again.
TEST(Damage, ATaskOfADeadWorkerWhoseLineWasOverwrittenIsNotRunAgain) {
  thread_world world(1);
  auto& record = world.post<add>(1, 1);
  word_of(world, record) = with_state(slot_word(word_of(world, record)), 1, slot_state::claimed).bits();
  world.shared_board().line(0).current = 12345;
  world.tasks().recover(0, exit_status::killed(SIGKILL));
  ASSERT_TRUE(world.tasks().is_done(record));
  EXPECT_EQ(world.tasks().take(record).error(), errc::worker_died);
}

// ---- a fresh board

TEST(Damage, RepeatedDamageAsksForAFreshBoardOnWhichEverythingGoesOn) {
  thread_world world(1);
  auto& waiting = world.post<add>(20, 22);
  std::thread waiter([&] { world.tasks().wait(waiting); });
  for (int each = 0; each < 4; ++each) {
    EXPECT_FALSE(world.tasks().audit().repeated);
    auto& record = world.post<add>(each, 1);
    word_of(world, record) = 0;
    EXPECT_TRUE(world.tasks().wait(record));
    EXPECT_EQ(world.tasks().take(record).error(), errc::corrupted);
  }
  EXPECT_TRUE(world.tasks().audit().repeated);
  world.tasks().recover(0, exit_status::killed(SIGKILL));
  renew(world);
  EXPECT_FALSE(world.tasks().audit().repeated);
  world.start_workers();
  waiter.join();
  EXPECT_EQ(value_of<int>(world.tasks().take(waiting)), 42);
  for (int each = 0; each < 200; ++each) expect_value(world, world.post<add>(each, 1), each + 1);
}

TEST(Damage, WhoeverKeepsTheOldBoardWritesToNobody) {
  thread_world world(1);
  auto& record = world.post<text_of>(300, 'x');
  board old(unique_fd(::dup(world.shared_board().file().get())));
  renew(world);
  struct stat before{};
  struct stat now{};
  ASSERT_EQ(::fstat(old.file().get(), &before), 0);
  ASSERT_EQ(::fstat(world.shared_board().file().get(), &now), 0);
  EXPECT_NE(before.st_ino, now.st_ino);
  for (std::size_t slot = 0; slot < old.sizes().task_slots; ++slot) old.slot(slot).word = ~std::uint64_t{0};
  old.lane_at(1).reset(77);
  world.start_workers();
  ASSERT_TRUE(world.tasks().wait(record, deadline::after(30s)));
  EXPECT_EQ(value_of<std::string>(world.tasks().take(record)), text_of(300, 'x'));
}

TEST(Damage, AnOverwrittenHeaderIsRestored) {
  thread_world world(2);
  auto& made = world.shared_board();
  EXPECT_FALSE(made.restore_header());
  auto& words =
      *reinterpret_cast<std::array<std::uint64_t, 5>*>(reinterpret_cast<std::byte*>(&made.bell_armed()) - 128);
  words.fill(99);
  EXPECT_THROW(board(unique_fd(::dup(made.file().get()))), error);
  EXPECT_TRUE(made.restore_header());
  EXPECT_EQ(board(unique_fd(::dup(made.file().get()))).sizes().workers, 2U);
}

}  // namespace
}  // namespace muster::damage_test
