// SPDX-License-Identifier: BSL-1.0
// A worker is stopped, given a task, let go on for exactly k instructions, and killed; then everything must be right.
// Random kills rarely hit the few instructions that matter; this hits them all.
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <csignal>

#include <gtest/gtest.h>

#include "queue_support.hpp"

namespace muster {
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
std::string large(std::string text) { return text + std::string(500, 'z'); }

// Stops the process in the middle of its idle spin.
bool stop(pid_t worker) {
  int status = 0;
  return ::ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) == 0 &&
         ::ptrace(PTRACE_INTERRUPT, worker, nullptr, nullptr) == 0 && ::waitpid(worker, &status, __WALL) == worker &&
         WIFSTOPPED(status);
}

void step(pid_t worker, int instructions) {
  int status = 0;
  for (; instructions > 0; --instructions) {
    if (::ptrace(PTRACE_SINGLESTEP, worker, nullptr, nullptr) != 0) return;
    if (::waitpid(worker, &status, __WALL) != worker || !WIFSTOPPED(status)) return;
  }
}

struct tally {
  int queued = 0;
  int claimed = 0;
  int done = 0;

  void count(slot_state state) {
    queued += state == slot_state::queued ? 1 : 0;
    claimed += state == slot_state::claimed ? 1 : 0;
    done += state == slot_state::done ? 1 : 0;
  }
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

class StepKill : public testing::Test {
protected:
  StepKill() : world_(1, {.budget = 24h, .processors = 2}) {}  // it spins for ever: stepping needs no sleeping worker

  // Runs `attempt` with the worker killed after k instructions, for many k.
  template <class Attempt>
  void for_every_point(int last, int stride, Attempt attempt) {
    for (int k = 0; k < last && !HasFatalFailure(); k += stride) {
      // A new worker needs a moment until it spins; a task that it answers shows that it does.
      auto& hello = world_.post<add>(k, 1);
      ASSERT_TRUE(world_.tasks().wait(hello));
      ASSERT_EQ(value_of<int>(world_.tasks().take(hello)), k + 1);
      ASSERT_TRUE(stop(world_.pid(0)));
      attempt(k);
      ASSERT_EQ(world_.tasks().pending(), 0U) << "k = " << k;
    }
  }

  void kill_after(int instructions) {
    step(world_.pid(0), instructions);
    tally_.count(slot_state_now());
    world_.kill(0);
    world_.bury(0);
  }

  [[nodiscard]] slot_state slot_state_now() { return slot_word(world_.shared_board().slot(slot_).word).state(); }

  void report(const char* name) const {
    std::printf("%s: killed while queued %d, claimed %d, done %d times\n", name, tally_.queued, tally_.claimed,
                tally_.done);
    EXPECT_GT(tally_.queued, 0);
    EXPECT_GT(tally_.claimed, 0);
    EXPECT_GT(tally_.done, 0);
  }

  process_world world_;
  tally tally_;
  std::size_t slot_ = 0;
};

TEST_F(StepKill, ATaskWithAWaiterEndsOnceAndIsRunAgain) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  for_every_point(1500, 15, [&](int k) {
    auto request = world_.request<add>(k, 2);
    request.retries = 1;
    auto& record = world_.tasks().post(std::move(request));
    slot_ = record.where().slot;
    static_cast<void>(world_.tasks().wait(record, deadline::after(1us)));  // asks for a wake
    kill_after(k);
    ASSERT_TRUE(world_.tasks().wait(record)) << "k = " << k;
    ASSERT_EQ(value_of<int>(world_.tasks().take(record)), k + 2) << "k = " << k;
  });
  report("waiter");
}

TEST_F(StepKill, ATaskWithASinkIsToldOnce) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  for_every_point(1500, 17, [&](int k) {
    told_sink sink(world_.tasks());
    auto request = world_.request<add>(k, 2);
    request.sink = &sink;
    auto& record = world_.tasks().post(std::move(request));
    slot_ = record.where().slot;
    kill_after(k);
    ASSERT_TRUE(test::eventually([&] { return sink.times == 1; })) << "k = " << k;
    if (sink.reply.succeeded()) {
      ASSERT_EQ(value_of<int>(sink.reply), k + 2);
    } else {
      ASSERT_EQ(sink.reply.error(), errc::worker_died) << "k = " << k;
    }
  });
  report("sink");
}

TEST_F(StepKill, ABlockOfAKilledWorkerIsAdoptedOrFreed) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not run under ptrace";
  for_every_point(6000, 150, [&](int k) {
    auto request = world_.request<large>(std::string("text"));
    request.retries = 1;
    auto& record = world_.tasks().post(std::move(request));
    slot_ = record.where().slot;
    kill_after(k);
    ASSERT_TRUE(world_.tasks().wait(record)) << "k = " << k;
    ASSERT_EQ(value_of<std::string>(world_.tasks().take(record)), large("text")) << "k = " << k;
    ASSERT_EQ(world_.memory().read_statistics().live_blocks, 0U) << "k = " << k;
  });
  report("block");
}

}  // namespace
}  // namespace muster
