// SPDX-License-Identifier: BSL-1.0
// Random operations on one pool - submit in all ways, cancel, time out, kill, retry, call from tasks, resize, while its
// workers are recycled for their age and number of tasks - beside a model that knows for each task how it may end:
// exactly one of those ways must come about.
#include <csignal>
#include <deque>
#include <random>
#include <set>
#include <stdexcept>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::random_test {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int operations = 10'000;
#else
constexpr int operations = 100'000;
#endif

// What a task does at each attempt before the one at which it gives its value.
enum class trouble { none, throws, dies, hangs };

int run(trouble what, unsigned attempts, int value) {
  if (this_task::attempt() > attempts) return value;
  switch (what) {
    case trouble::throws: throw std::range_error("as it was told");
    case trouble::dies: ::raise(SIGKILL); break;
    case trouble::hangs: test::wait_until_asked(); break;  // or killed
    case trouble::none: break;
  }
  return value;
}
int run_inside(trouble what, unsigned attempts, int value) {
  if (what == trouble::dies || what == trouble::hangs) return run(what, attempts, value);
  return this_pool::apply([](int x) { return x; }, run(what, attempts, value));
}

// How a task may end: a value, or one of these.
using ends = std::set<errc>;

struct operation {
  trouble what = trouble::none;
  unsigned attempts = 0;  // that end in trouble
  task_options how;
  bool inside = false;     // it calls its own pool, and that call may fail too
  bool cancelled = false;  // by any means
  bool killed = false;     // by cancellation::kill

  // Whether a run with that trouble leads to another.
  [[nodiscard]] bool is_retried_after(trouble which) const {
    if (how.retries == 0) return false;
    switch (which) {
      case trouble::throws: return how.retry_on.after_exceptions();
      case trouble::dies: return how.retry_on.after_death();
      case trouble::hangs: return how.retry_on.after_timeout() && how.timeout.count() > 0;
      case trouble::none: break;
    }
    return false;
  }

  // Workers are killed at random all the time, and their tasks with them.
  [[nodiscard]] ends allowed() const {
    ends may = {errc::worker_died};
    if (how.retries > 1 && how.retry_on.after_death()) may.insert(errc::quarantined);
    if (how.deadline.count() != 0 || how.timeout.count() != 0) may.insert(errc::timed_out);
    if (cancelled) may.insert(errc::cancelled);
    if (what == trouble::throws || inside) may.insert(errc::remote_exception);
    return may;
  }
  [[nodiscard]] bool may_give_value() const {
    if (what == trouble::none || attempts == 0) return true;
    if (what == trouble::hangs && cancelled) return true;              // it is asked to stop, and does
    return is_retried_after(what) || is_retried_after(trouble::dies);  // somebody may kill the worker at any time
  }
};

class Random : public testing::Test {
protected:
  pool pool_{{.workers = 3,
              .max_tasks_per_worker = 200,
              .max_worker_age = 100ms,
              .tasks_jitter = 0.5,
              .start_tries = 1000,
              .log = [](log_level, std::string_view) {}}};
  std::mt19937 random_{20261122};
  int kills_ = 0;

  unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
  bool one_in(unsigned many) { return below(many) == 0; }

  operation choose() {
    operation made;
    if (one_in(50)) made.what = trouble::throws;
    if (one_in(400)) made.what = trouble::dies;
    if (one_in(400)) made.what = trouble::hangs;
    made.attempts = 1 + below(3);
    made.inside = one_in(20);
    auto& how = made.how;
    how.retries = one_in(2) ? 0 : below(4);
    if (one_in(3)) how.retry_on = retry::death() | retry::timeout() | retry::exceptions<std::range_error>();
    if (one_in(8)) how.retry_on = retry::exceptions();
    if (one_in(4)) how.retry_delay = std::chrono::microseconds(below(3000));
    if (one_in(10)) how.deadline = std::chrono::microseconds(1 + below(20'000));
    if (one_in(10)) how.timeout = std::chrono::microseconds(1000 + below(10'000));
    // What hangs must end some time.
    if (made.what == trouble::hangs && how.deadline.count() == 0) how.timeout = std::chrono::milliseconds(5);
    if (one_in(5)) how.priority = static_cast<priority>(below(3));
    return made;
  }

  future<int> submit(const operation& made, int value) {
    const auto to = pool_.with(made.how);
    if (made.inside) return to.apply_async(run_inside, made.what, made.attempts, value);
    if (one_in(20))
      return to.on(below(static_cast<unsigned>(pool_.size()))).apply_async(run, made.what, made.attempts, value);
    return to.apply_async(run, made.what, made.attempts, value);
  }

  void cancel(future<int>& task, operation& made) {
    const auto how = static_cast<cancellation>(below(3));
    task.cancel(how);
    made.cancelled = true;
    made.killed = how == cancellation::kill;
  }

  bool kill_somebody() {
    const auto workers = pool_.workers();
    const auto& victim = workers[random_() % workers.size()];
    const bool killed = victim.state == worker_lifecycle::state::working && ::kill(victim.pid, SIGKILL) == 0;
    kills_ += killed ? 1 : 0;
    return killed;
  }

  void expect_right(future<int>& task, const operation& made, int value) {
    const auto found = task.get_result();
    if (found) {
      ASSERT_EQ(*found, value);
      ASSERT_TRUE(made.may_give_value()) << "it should have ended in trouble " << static_cast<int>(made.what);
      return;
    }
    const auto& error = found.error();
    const auto code = error.type_name().empty() ? error.code() : errc::remote_exception;
    ASSERT_TRUE(made.allowed().contains(code)) << error.describe();
    ASSERT_LE(error.place().attempt, made.how.retries + 1) << error.describe();
  }
};

TEST_F(Random, OperationsEndInOneOfTheWaysThatTheModelAllows) {
  struct pending {
    future<int> task;
    operation made;
    int value;
  };
  std::deque<pending> window;
  std::vector<future<void>> sizes;
  const auto take_one = [&](std::size_t which) {
    const auto taken = window.begin() + static_cast<std::ptrdiff_t>(which);
    expect_right(taken->task, taken->made, taken->value);
    window.erase(taken);
  };
  for (int number = 0; number < operations && !HasFatalFailure(); ++number) {
    auto made = choose();
    auto task = submit(made, number);
    window.push_back({.task = std::move(task), .made = made, .value = number});
    if (one_in(30)) {
      auto& victim = window[random_() % window.size()];
      cancel(victim.task, victim.made);
    }
    if (one_in(1000)) kill_somebody();
    if (one_in(1000)) sizes.push_back(pool_.resize_async(1 + below(5)));
    if (window.size() > 300) take_one(one_in(3) ? random_() % window.size() : 0);
    if (one_in(200)) window.pop_back();  // nobody wants it any more
  }
  // Where starting takes long, none may have been at work when one was to be killed.
  EXPECT_TRUE(kills_ > 0 || test::eventually([&] { return kill_somebody(); }));
  while (!window.empty() && !HasFatalFailure()) take_one(0);
  for (auto& each : sizes) EXPECT_NO_THROW(each.get());
  EXPECT_TRUE(test::eventually([&] { return pool_.stats().pending == 0; }));
  pool_.close();
  pool_.join();
  const auto stats = pool_.stats();
  EXPECT_EQ(stats.tasks.accepted, stats.tasks.ended);
  EXPECT_EQ(stats.memory.live_blocks, 0U);
  EXPECT_EQ(stats.tasks.corrupted, 0U);
  EXPECT_GT(stats.workers.recycled, 0U);
  std::cout << operations << " operations, " << stats.tasks.retried << " retries, " << stats.tasks.timed_out
            << " timed out, " << stats.tasks.quarantined << " quarantined, " << stats.tasks.lost << " lost, "
            << stats.workers.started << " processes, " << stats.workers.recycled << " recycled, "
            << stats.workers.retired << " retired\n";
}

}  // namespace
}  // namespace muster::random_test
