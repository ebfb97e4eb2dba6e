// SPDX-License-Identifier: BSL-1.0
// A worker is given a task, let go on for exactly k instructions, and frozen there: just claimed, completed and nobody
// woken, the bell taken and not rung. All else goes on meanwhile; then the worker does, and everything ends once.
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <thread>

#include <gtest/gtest.h>

#include "queue_support.hpp"

namespace muster::step_freeze_test {
namespace {

using namespace std::chrono_literals;
using test::process_world;
using test::value_of;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

int add(int a, int b) { return a + b; }

constexpr int most_steps = 100000;

// A process under our hand from construction to destruction.
class frozen_process {
public:
  explicit frozen_process(pid_t which) : pid_(which) {
    int status = 0;
    held_ = ::ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr) == 0 &&
            ::ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr) == 0 && ::waitpid(pid_, &status, __WALL) == pid_ &&
            WIFSTOPPED(status);
  }
  frozen_process(const frozen_process&) = delete;
  frozen_process& operator=(const frozen_process&) = delete;
  ~frozen_process() { thaw(); }

  [[nodiscard]] bool held() const { return held_; }
  /// Fewer when `finished()` before: then it is about to sleep, and would not come back.
  template <class Predicate>
  void step(int instructions, Predicate finished) {
    int status = 0;
    for (; instructions > 0 && !finished(); --instructions) {
      if (::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0) return;
      if (::waitpid(pid_, &status, __WALL) != pid_ || !WIFSTOPPED(status)) return;
    }
  }
  void thaw() {
    if (std::exchange(held_, false)) ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }

private:
  pid_t pid_;
  bool held_ = false;
};

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

class StepFreeze : public testing::Test {
protected:
  // Nobody spins: so a waiter is really asleep, and the wakes matter.
  StepFreeze() : world_(2, {.budget = 0ns, .processors = 2}) {}

  void SetUp() override {  // both work
    for (const std::size_t lane : {3U, 4U}) expect_value(world_.tasks().post(request(1, lane)), 2);
  }

  task_request request(int a, std::size_t lane, completion_sink* sink = nullptr) {
    auto made = world_.request<add>(a, 1);
    made.lane = lane;
    made.sink = sink;
    return made;
  }
  void expect_value(task_record& record, int value) {
    ASSERT_TRUE(world_.tasks().wait(record, deadline::after(60s)));
    EXPECT_EQ(value_of<int>(world_.tasks().take(record)), value);
  }
  // What the parent does with the other worker.
  void go_on(int k) {
    expect_value(world_.tasks().post(request(k, 1)), k + 1);
    told_sink sink(world_.tasks());
    world_.tasks().post(request(k, 1, &sink));
    ASSERT_TRUE(test::eventually([&] {
      static_cast<void>(world_.tasks().audit());  // the bell may have been taken by the frozen one
      return sink.times == 1;
    }));
    auto& withdrawn = world_.tasks().post(request(k, 3));
    EXPECT_TRUE(world_.tasks().cancel(withdrawn)) << "only the frozen one may run it";
    static_cast<void>(world_.tasks().take(withdrawn));
    EXPECT_EQ(world_.tasks().read_statistics().damaged, 0U);
  }
  // The worker has left the task behind: it is done, and its line says so.
  bool is_past(std::size_t slot) {
    const auto state = state_of(slot);
    return state != slot_state::queued && state != slot_state::claimed && world_.shared_board().line(0).current == 0;
  }
  slot_state state_of(std::size_t slot) { return slot_word(world_.shared_board().slot(slot).word).state(); }

  template <class Attempt>
  void for_every_point(int last, int stride, Attempt attempt) {
    for (int k = 0; k < last && !HasFatalFailure(); k += stride) {
      expect_value(world_.tasks().post(request(k, 3)), k + 1);  // it runs, and spins again
      frozen_process worker(world_.pid(0));
      ASSERT_TRUE(worker.held());
      attempt(k, worker);
      ASSERT_EQ(world_.tasks().pending(), 0U) << "k = " << k;
    }
  }

  process_world world_;
  int queued_ = 0;
  int claimed_ = 0;
  int done_ = 0;

  void count(slot_state state) {
    queued_ += state == slot_state::queued ? 1 : 0;
    claimed_ += state == slot_state::claimed ? 1 : 0;
    done_ += state == slot_state::done ? 1 : 0;
  }
};

TEST_F(StepFreeze, ATaskWithAWaiterEndsOnceAndTheOthersGoOn) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  for_every_point(1500, 29, [&](int k, frozen_process& worker) {
    auto& record = world_.tasks().post(request(k, 3));
    const auto slot = record.where().slot;
    std::thread waiter([&] { world_.tasks().wait(record); });
    ASSERT_TRUE(test::eventually([&] {
      return record.phase() != task_phase::posted ||
             slot_word(world_.shared_board().slot(slot).word).has(slot_flag::waiter);
    }));
    worker.step(k, [&] { return is_past(slot); });
    const auto state = state_of(slot);
    count(state);
    if (state == slot_state::done) {  // it may be frozen before its wake: an audit wakes in its place
      static_cast<void>(world_.tasks().audit());
      static_cast<void>(world_.tasks().audit());
      waiter.join();
    }
    go_on(k);
    worker.thaw();
    if (waiter.joinable()) waiter.join();
    ASSERT_EQ(value_of<int>(world_.tasks().take(record)), k + 1);
  });
  std::printf("frozen while queued %d, claimed %d, done %d times\n", queued_, claimed_, done_);
  EXPECT_GT(claimed_, 0);
  EXPECT_GT(done_, 0);
}

TEST_F(StepFreeze, ATaskWithASinkIsToldOnceAndTheOthersGoOn) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  for_every_point(1500, 31, [&](int k, frozen_process& worker) {
    ASSERT_TRUE(test::eventually([&] { return world_.shared_board().bell_armed() == 1; }));
    told_sink sink(world_.tasks());
    const auto slot = world_.tasks().post(request(k, 3, &sink)).where().slot;
    worker.step(k, [&] { return is_past(slot); });
    count(state_of(slot));
    go_on(k);
    worker.thaw();
    ASSERT_TRUE(test::eventually([&] { return sink.times == 1; })) << "k = " << k;
    ASSERT_EQ(value_of<int>(sink.reply), k + 1);
  });
  std::printf("frozen while queued %d, claimed %d, done %d times\n", queued_, claimed_, done_);
  EXPECT_GT(claimed_, 0);
}

// ---- phases that last a few instructions

TEST_F(StepFreeze, OneThatHasJustClaimedIsNotSuspected) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  frozen_process worker(world_.pid(0));
  auto& record = world_.tasks().post(request(1, 3));
  const auto slot = record.where().slot;
  worker.step(most_steps, [&] { return state_of(slot) == slot_state::claimed; });
  ASSERT_EQ(world_.shared_board().line(0).current, 0U);
  go_on(7);
  for (int each = 0; each < 5; ++each) EXPECT_TRUE(world_.tasks().audit().suspects.empty());
  EXPECT_FALSE(world_.tasks().is_done(record));
  worker.thaw();
  expect_value(record, 2);
}

TEST_F(StepFreeze, OneThatHasCompletedAndWokenNobodyHoldsUpNobody) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  frozen_process worker(world_.pid(0));
  auto& record = world_.tasks().post(request(1, 3));
  const auto slot = record.where().slot;
  std::thread waiter([&] { world_.tasks().wait(record); });
  ASSERT_TRUE(
      test::eventually([&] { return slot_word(world_.shared_board().slot(slot).word).has(slot_flag::waiter); }));
  worker.step(most_steps, [&] { return state_of(slot) == slot_state::done; });
  static_cast<void>(world_.tasks().audit());
  static_cast<void>(world_.tasks().audit());
  waiter.join();
  EXPECT_EQ(value_of<int>(world_.tasks().take(record)), 2);
  go_on(7);
  worker.thaw();
  expect_value(world_.tasks().post(request(2, 3)), 3);
}

TEST_F(StepFreeze, OneThatHasTakenTheBellSilencesNobodyForLong) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  ASSERT_TRUE(test::eventually([&] { return world_.shared_board().bell_armed() == 1; }));
  frozen_process worker(world_.pid(0));
  told_sink sink(world_.tasks());
  world_.tasks().post(request(1, 3, &sink));
  worker.step(most_steps, [&] { return world_.shared_board().bell_armed() == 0; });
  EXPECT_EQ(world_.shared_board().bell_armed(), 0U);
  EXPECT_EQ(sink.times, 0) << "who could have told it?";
  go_on(7);
  EXPECT_TRUE(test::eventually([&] { return sink.times == 1; }));
  worker.thaw();
  expect_value(world_.tasks().post(request(2, 3)), 3);
  EXPECT_EQ(sink.times, 1);
}

}  // namespace
}  // namespace muster::step_freeze_test
