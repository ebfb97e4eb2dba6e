// SPDX-License-Identifier: BSL-1.0
// One dead worker costs one task. The numbers are those of the list of what the predecessor does not test.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::failure_test {
namespace {

using testing::HasSubstr;

int add(int a, int b) { return a + b; }

struct cannot_be_encoded {
  template <class Archive>
  void save(Archive&) const {
    throw std::runtime_error("this one will not be saved");
  }
  template <class Archive>
  void load(Archive&) {}
};

struct longer_the_second_time {
  static inline int calls = 0;
  template <class Archive>
  void save(Archive& archive) const {
    archive(std::string(static_cast<std::size_t>(++calls) * 100, 'x'));
  }
  template <class Archive>
  void load(Archive&) {}
};

struct unknown_exception {
  int code = 0;
};

class Failure : public testing::Test {
protected:
  // The pool goes on: whatever happened, it still works, with all its workers.
  void TearDown() override {
    EXPECT_EQ(pool_.apply(add, 20, 22), 42);
    EXPECT_EQ(pool_.size(), 2U);
  }

  // `found`: the workers of which it says so; a moment later others may be in their places.
  bool all_work(std::vector<worker_info>& found) {
    found = pool_.workers();
    return std::ranges::all_of(found,
                               [](const worker_info& each) { return each.state == worker_lifecycle::state::working; });
  }

  template <class F>
  worker_died died(F f) {
    try {
      pool_.with({.label = "doomed"}).apply(f);
    } catch (const worker_died& caught) {
      return caught;
    }
    ADD_FAILURE() << "no worker_died";
    return worker_died(error_info());
  }

  pool pool_{{.workers = 2, .quarantine_after = 0, .log = [](log_level, std::string_view) {}}};
};

// 1
TEST_F(Failure, AKilledTaskSaysSignalProcessAndTask) {
  const auto caught = died([] { ::raise(SIGKILL); });
  EXPECT_EQ(caught.status(), exit_status::killed(SIGKILL));
  EXPECT_EQ(caught.code(), errc::worker_died);
  EXPECT_THAT(caught.what(), testing::AllOf(HasSubstr("task 1 'doomed'"), HasSubstr("SIGKILL"),
                                            HasSubstr(std::to_string(caught.info().place().pid))));
}

TEST_F(Failure, OfAThousandTasksOneKillCostsOne) {
  std::vector<future<int>> futures;
  for (int each = 0; each < 1000; ++each) {
    futures.push_back(pool_.apply_async(
        [](int x) {
          if (x == 500) ::raise(SIGKILL);
          return x;
        },
        each));
  }
  for (int each = 0; each < 1000; ++each) {
    const auto result = futures[static_cast<std::size_t>(each)].get_result();
    if (each == 500) {
      EXPECT_EQ(result.error(), errc::worker_died);
    } else {
      ASSERT_TRUE(result) << each << ": " << result.error().describe();
      ASSERT_EQ(*result, each);
    }
  }
}

TEST_F(Failure, WithRetriesAllThousandSucceed) {
  std::vector<future<int>> futures;
  for (int each = 0; each < 1000; ++each) {
    futures.push_back(pool_.with({.retries = 2})
                          .apply_async(
                              [](int x) {
                                if (x == 500 && this_worker::incarnation() == 1) ::raise(SIGKILL);
                                return x;
                              },
                              each));
  }
  for (int each = 0; each < 1000; ++each) EXPECT_EQ(futures[static_cast<std::size_t>(each)].get(), each);
  EXPECT_LE(pool_.stats().tasks.retried, 2U) << "each of the two first processes may have died once";
}

TEST_F(Failure, RetriesAreCountedAndEnd) {
  try {
    pool_.with({.retries = 2}).apply([] { ::raise(SIGKILL); });
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_EQ(caught.info().place().attempt, 3U);
  }
  EXPECT_EQ(pool_.stats().tasks.retried, 2U);
}

// 2
TEST_F(Failure, WhenAllIdleWorkersAreKilledTheNextTaskRuns) {
  for (int round = 0; round < 10; ++round) {
    std::vector<worker_info> found;
    ASSERT_TRUE(test::eventually([&] { return all_work(found); }))
        << "three kills in a row while starting break a pool";
    for (const auto& each : found) ::kill(each.pid, SIGKILL);
    const auto result = pool_.apply_async(add, round, 1).get_result();
    // It may have been claimed by a worker that was about to be killed.
    EXPECT_TRUE(result ? *result == round + 1 : result.error() == errc::worker_died);
  }
}

TEST_F(Failure, AllBusyWorkersKilledAtOnceCostTheirTasks) {
  const std::vector<event> begun(2);
  std::vector<future<void>> stuck;
  for (const auto& each : begun) stuck.push_back(pool_.apply_async(test::run_for_ever, each));
  for (const auto& each : begun) each.wait();  // else the next process begins one, which nobody kills
  auto queued = pool_.apply_async(add, 1, 1);
  for (auto& each : stuck) {
    while (!each.wait_for(std::chrono::milliseconds(1))) {
      for (const auto& worker : pool_.workers()) {
        if (worker.pid != 0 && worker.incarnation == 1) ::kill(worker.pid, SIGKILL);
      }
    }
    EXPECT_EQ(each.get_result().error(), errc::worker_died);
  }
  EXPECT_EQ(queued.get(), 2);
}

// 3
TEST_F(Failure, ExitInATaskSaysTheCode) {
  const auto caught = died([] { std::exit(3); });
  EXPECT_EQ(caught.status(), exit_status::exited(3));
}

TEST_F(Failure, QuickExitsSayTheCode) {
  EXPECT_EQ(died([] { ::_exit(4); }).status(), exit_status::exited(4));
  EXPECT_EQ(died([] { std::quick_exit(5); }).status(), exit_status::exited(5));
  EXPECT_EQ(died([] { ::_exit(0); }).status(), exit_status::exited(0));
}

TEST_F(Failure, ASegmentationFaultIsItsOwnTasks) {
  const auto caught = died([] { ::raise(SIGSEGV); });
  EXPECT_EQ(caught.status().signal(), SIGSEGV);
}

TEST_F(Failure, AWildPointerIsItsOwnTasks) {
  const auto caught = died([] {
    const volatile std::uintptr_t nowhere = 8;  // volatile: the compiler is not to see through it
    *reinterpret_cast<volatile int*>(nowhere) = 1;
  });
  EXPECT_FALSE(caught.status().success());
}

TEST_F(Failure, TerminateAbortsOnlyItsWorker) {
  EXPECT_EQ(died([] { std::terminate(); }).status().signal(), SIGABRT);
  EXPECT_EQ(died([]() noexcept { std::vector<int>().at(1) = 0; }).status().signal(), SIGABRT);
}

TEST_F(Failure, AnExceptionOfAnUnknownTypeArrives) {
  try {
    pool_.apply([] { throw unknown_exception{5}; });
    FAIL();
  } catch (const remote_exception& caught) {
    EXPECT_THAT(caught.type_name(), HasSubstr("unknown_exception"));
  }
  EXPECT_THROW(pool_.apply([] { throw 42; }), remote_exception);
}

TEST_F(Failure, AResultThatCannotBeEncodedFailsItsTask) {
  try {
    pool_.apply([] { return cannot_be_encoded(); });
    FAIL();
  } catch (const task_error& caught) {
    EXPECT_EQ(caught.code(), errc::not_serializable);
    EXPECT_THAT(caught.what(), HasSubstr("this one will not be saved"));
  }
}

TEST_F(Failure, AnArgumentThatCannotBeEncodedThrowsAtTheCall) {
  EXPECT_THROW(static_cast<void>(pool_.apply_async([](const cannot_be_encoded&) {}, cannot_be_encoded())),
               std::runtime_error);
}

TEST_F(Failure, AnEncodingThatChangesItsLengthIsCaught) {
  try {
    pool_.apply([] { return longer_the_second_time(); });
    FAIL();
  } catch (const task_error& caught) {
    EXPECT_EQ(caught.code(), errc::not_serializable);
    EXPECT_THAT(caught.what(), HasSubstr("the same bytes each time"));
  }
}

// 4
TEST_F(Failure, AMebibyteOfErrorTextArrives) {
  const std::size_t length = std::size_t{1} << 20U;
  try {
    pool_.apply([](std::size_t bytes) { throw std::runtime_error(std::string(bytes, 'e')); }, length);
    FAIL();
  } catch (const std::runtime_error& caught) {
    EXPECT_EQ(std::string(caught.what()).size(), length);
  }
}

TEST_F(Failure, AWorkersOwnThreadsDieWithIt) {
  EXPECT_FALSE(died([] {
                 std::thread([] {
                   for (;;) ::pause();
                 }).detach();
                 ::raise(SIGKILL);
               })
                   .status()
                   .success());
}

TEST_F(Failure, InterruptsDoNotReachWorkers) {
  const auto before = pool_.workers();
  for (const auto& each : before) ::kill(each.pid, SIGINT);
  for (int round = 0; round < 10; ++round) pool_.apply(add, 1, round);
  EXPECT_EQ(pool_.workers()[0].pid, before[0].pid);
  EXPECT_EQ(pool_.workers()[1].pid, before[1].pid);
}

constexpr std::array signals_that_end_programs = {SIGTERM, SIGHUP, SIGQUIT, SIGINT};

void send_to_all(const pool& where) {
  for (const auto& each : where.workers()) {
    for (const int signal : signals_that_end_programs) {
      if (each.pid != 0) ::kill(each.pid, signal);
    }
  }
}

TEST_F(Failure, SignalsThatEndProgramsDoNotEndWorkersOrTasks) {
  const auto before = pool_.workers();
  const event began;
  const event end;
  auto under_way = pool_.apply_async(test::run_until, began, end);
  began.wait();
  send_to_all(pool_);
  end.set();
  EXPECT_FALSE(under_way.get()) << "it was not asked to stop";
  pool_.broadcast(add, 1, 2);
  for (std::size_t each = 0; each < before.size(); ++each) EXPECT_EQ(pool_.workers()[each].pid, before[each].pid);
}

TEST_F(Failure, SignalsThatComeWhileWorkersStartDoNotEndThem) {
  auto options = test::quiet(4);
  options.start_tries = 1;
  options.wait_for_start = false;
  const pool starts(options);
  for (int round = 0; round < 100; ++round) send_to_all(starts);
  EXPECT_EQ(starts.apply(add, 20, 22), 42);
  send_to_all(starts);
  EXPECT_EQ(starts.stats().workers.started, 4U);
}

TEST_F(Failure, AProgramThatATaskExecutesHasSignalsAsUsual) {
  const auto kill_itself = [](int signal) {
    return std::system(("kill -" + std::to_string(signal) + " $$; sleep 60").c_str());
  };
  for (const int signal : signals_that_end_programs) {
    const auto how = pool_.apply(kill_itself, signal);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == signal) << signal << ": " << how;
  }
}

TEST(FailureOfSignals, EndsWorkersThatAreNotToldToLeaveThem) {
  auto options = test::quiet(1);
  options.leaves_signals = false;
  const pool pool(options);
  const event began;
  const event never;
  auto under_way = pool.apply_async(test::run_until, began, never);
  began.wait();
  ::kill(pool.workers()[0].pid, SIGTERM);
  const auto ended = under_way.get_result();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error(), errc::worker_died);
  EXPECT_THAT(ended.error().describe(), HasSubstr("SIGTERM"));
}

// As a terminal, or a service manager, sends them; the program takes them when it likes.
TEST(FailureOfSignals, ThoseThatReachAllProcessesAreTheProgramsAlone) {
  const auto program = test::spawn(1, [](std::size_t) {
    ::setpgid(0, 0);
    init(0, nullptr);  // a forked child is another process
    sigset_t taken;
    ::sigemptyset(&taken);
    for (const int signal : signals_that_end_programs) ::sigaddset(&taken, signal);
    ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
    auto options = test::quiet(2);
    options.worker_groups = false;
    const pool pool(options);
    const event began;
    const event end;
    auto under_way = pool.apply_async(test::run_until, began, end);
    began.wait();
    for (const int signal : signals_that_end_programs) ::kill(0, signal);
    end.set();
    const bool was_asked_to_stop = under_way.get();
    sigset_t came;
    ::sigpending(&came);
    return !was_asked_to_stop && ::sigismember(&came, SIGQUIT) == 1 && pool.stats().workers.started == 2 ? 0 : 1;
  });
  EXPECT_TRUE(program->wait(0).success());
}

// ---- freezing

TEST_F(Failure, AFrozenWorkerDoesNotHoldUpTheOthers) {
  ASSERT_TRUE(test::eventually([&] { return pool_.workers()[0].state == worker_lifecycle::state::working; }));
  const auto frozen = pool_.workers()[0].pid;
  ::kill(frozen, SIGSTOP);
  std::vector<future<int>> futures;
  for (int each = 0; each < 100; ++each) futures.push_back(pool_.apply_async(add, each, 1));
  int done = 0;
  for (auto& each : futures) done += each.wait_for(std::chrono::seconds(5)) ? 1 : 0;
  EXPECT_GE(done, 99) << "the frozen one may hold the one task that it had claimed";
  ::kill(frozen, SIGCONT);
  for (auto& each : futures) each.get();
}

TEST_F(Failure, StatisticsTellDeathsByReason) {
  died([] { ::raise(SIGKILL); });
  died([] { std::exit(3); });
  EXPECT_EQ(pool_.apply(add, 1, 1), 2);
  ASSERT_TRUE(test::eventually([&] { return pool_.stats().workers.exited == 1; }));
  EXPECT_EQ(pool_.stats().workers.killed, 1U);
  EXPECT_EQ(pool_.stats().tasks.lost, 2U);
}

TEST_F(Failure, StatisticsCountElementsOfMapsThatWereRetriedOrLost) {
  const auto die_at_5 = [](int x) {
    if (x == 5) ::raise(SIGKILL);
    return x;
  };
  const auto results =
      pool_.with({.retries = 2, .chunk = 4}).collect_errors().map(die_at_5, std::vector{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(std::ranges::count_if(results, [](const auto& each) { return each.has_value(); }), 7);
  EXPECT_EQ(pool_.stats().tasks.lost, 1U);
  EXPECT_EQ(pool_.stats().tasks.retried, 2U);
}

}  // namespace
}  // namespace muster::failure_test
