// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/callback_executor.hpp>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <muster/async/detail/callback_thread.hpp>
#include <muster/base/error.hpp>

#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::detail::callback_executor_test {
namespace {

using namespace std::chrono_literals;

class CallbackExecutor : public testing::Test {
protected:
  std::vector<std::string> logged_;
  std::shared_ptr<callback_executor> executor_ =
      std::make_shared<callback_executor>([this](log_level, std::string_view text) { logged_.emplace_back(text); });
};

TEST_F(CallbackExecutor, RunsJobsInOrderOnOneOtherThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int each = 0; each < 100; ++each) {
    executor_->post([&, each] {
      order.push_back(each);
      threads.push_back(std::this_thread::get_id());
    });
  }
  executor_->stop();
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_THAT(threads, testing::Each(threads.front()));
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

TEST_F(CallbackExecutor, WhatIsForLaterDoesNotRunBefore) {
  const auto begin = clock::now();
  std::vector<int> order;
  std::promise<void> all_posted;
  std::promise<void> done;
  executor_->post([&] { all_posted.get_future().wait(); });  // or what is due might run before the rest is there
  EXPECT_TRUE(executor_->post_at(begin + 3ms, [&] {
    EXPECT_GE(clock::now(), begin + 3ms);
    order.push_back(3);
    done.set_value();
  }));
  EXPECT_TRUE(executor_->post_at(begin + 1ms, [&] {
    EXPECT_GE(clock::now(), begin + 1ms);
    order.push_back(1);
  }));
  EXPECT_TRUE(executor_->post_at(begin, [&] { order.push_back(0); }));
  all_posted.set_value();
  done.get_future().wait();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 3));
}

TEST_F(CallbackExecutor, WhatIsForLaterHoldsUpNothing) {
  bool ran = false;
  EXPECT_TRUE(executor_->post_at(clock::now() + 100h, [] { FAIL(); }));
  executor_->post([&] { ran = true; });
  executor_->stop();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(executor_->post_at(clock::now(), [] { FAIL(); }));
}

TEST_F(CallbackExecutor, WhatIsForLaterIsDroppedAtTheEnd) {
  const auto held = std::make_shared<int>(0);
  EXPECT_TRUE(executor_->post_at(clock::now() + 100h, [held] {}));
  EXPECT_EQ(held.use_count(), 2);
  executor_->stop();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(CallbackExecutor, AThreadThatCannotBeHadIsAnErrorOfTheCallAndNoJobIsLost) {
  std::vector<int> order;
  {
    const test::refused_calls scope("pthread_create", EAGAIN);
    EXPECT_THROW(executor_->prepare(), error);
    EXPECT_TRUE(executor_->try_post([&] { order.push_back(1); }));
    EXPECT_TRUE(order.empty());
    EXPECT_TRUE(logged_.empty());  // the sink is the program's, and this thread may be the supervisor
  }
  executor_->post([&] { order.push_back(2); });
  executor_->stop();
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
  EXPECT_THAT(logged_, testing::ElementsAre(testing::HasSubstr("had to wait for a thread")));
}

TEST(CallbackExecutorSink, MayPostWhenItLearnsThatNoThreadCouldBeHad) {
  bool ran = false;
  int times = 0;
  std::shared_ptr<callback_executor> executor;
  executor = std::make_shared<callback_executor>([&](log_level, std::string_view) {
    if (times++ == 0) executor->post([&] { ran = true; });
  });
  {
    const test::refused_calls scope("pthread_create", EAGAIN);
    executor->post([] {});
    EXPECT_TRUE(executor->post_at(clock::now(), [] {}));
  }
  EXPECT_EQ(times, 0);
  executor->post([] {});
  executor->stop();
  EXPECT_EQ(times, 1);
  EXPECT_TRUE(ran);
}

TEST_F(CallbackExecutor, WhatHasNeverHadAThreadRunsWhenItIsStopped) {
  bool ran = false;
  const test::refused_calls scope("pthread_create", EAGAIN);
  executor_->post([&] { ran = true; });
  executor_->stop();
  EXPECT_TRUE(ran);
}

TEST_F(CallbackExecutor, AThrowingJobIsLoggedAndHarmsNothing) {
  bool ran = false;
  executor_->post([] { throw std::runtime_error("oops"); });
  executor_->post([] { throw 1; });
  executor_->post([&] { ran = true; });
  executor_->stop();
  EXPECT_TRUE(ran);
  ASSERT_EQ(logged_.size(), 2U);
  EXPECT_THAT(logged_[0], testing::AllOf(testing::HasSubstr("std::runtime_error"), testing::HasSubstr("oops")));
}

TEST_F(CallbackExecutor, StoppingRunsWhatWasPosted) {
  std::atomic<int> runs = 0;
  for (int each = 0; each < 50; ++each) executor_->post([&] { ++runs; });
  executor_->stop();
  EXPECT_EQ(runs, 50);
}

TEST_F(CallbackExecutor, AfterTheEndJobsRunInTheCall) {
  executor_->stop();
  std::thread::id ran_in;
  executor_->post([&] { ran_in = std::this_thread::get_id(); });
  EXPECT_EQ(ran_in, std::this_thread::get_id());
}

TEST_F(CallbackExecutor, WhileAJobWaitsThoseBehindItRun) {
  std::promise<void> made;
  std::vector<std::string> order;
  executor_->post([&] {
    order.emplace_back("begins");
    {
      const callback_pause pause;
      made.get_future().wait();
    }
    order.emplace_back("goes on");
  });
  executor_->post([&] {
    order.emplace_back("is behind it");
    made.set_value();
  });
  executor_->stop();
  EXPECT_THAT(order, testing::ElementsAre("begins", "is behind it", "goes on"));
}

// A second thread, which the first job has needed, finds at the end that the last jobs are being run already.
TEST_F(CallbackExecutor, StoppingEndsThreadsThatSleepWhileAnotherRunsTheLastJobs) {
  std::promise<void> made;
  executor_->post([&] {
    const callback_pause pause;
    made.get_future().wait();
  });
  executor_->post([&] { made.set_value(); });
  executor_->post([&] {
    while (executor_->post_at(clock::now() + 100h, [] {})) std::this_thread::yield();  // until it is stopped
  });
  int ran = 0;
  for (int each = 0; each < 100; ++each) {
    executor_->post([&] {
      std::this_thread::yield();
      ++ran;
    });
  }
  executor_->stop();
  EXPECT_EQ(ran, 100);
}

TEST_F(CallbackExecutor, TooManyThatWaitAreAnErrorAndNotADeadlock) {
  std::promise<void> refused;
  const auto was_refused = refused.get_future().share();
  std::atomic<std::size_t> waited = 0;
  for (std::size_t each = 0; each < callback_executor::most_threads; ++each) {
    executor_->post([&] {
      try {
        const callback_pause pause;
        was_refused.wait();
        ++waited;
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::overflow);
        refused.set_value();
      }
    });
  }
  executor_->stop();
  EXPECT_EQ(waited, callback_executor::most_threads - 1);
}

TEST_F(CallbackExecutor, AJobThatWaitsWhereNoThreadCanBeHadGetsAnError) {
  executor_->prepare();
  const test::refused_calls scope("pthread_create", EAGAIN);
  bool refused = false;
  executor_->post([&] {
    try {
      const callback_pause pause;
    } catch (const error& failure) {
      refused = failure.code().value() == EAGAIN;
    }
  });
  executor_->stop();
  EXPECT_TRUE(refused);
}

TEST_F(CallbackExecutor, AJobMayStopIt) {
  std::promise<void> done;
  executor_->post([&, executor = executor_] {
    executor->stop();
    done.set_value();
  });
  done.get_future().wait();
}

// ---- timers of handlers that have no executor of their own

using timer = boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                                boost::asio::wait_traits<std::chrono::steady_clock>, callback_thread>;

// In a process of its own, since Asio's system context lasts as long as that, with its descriptors.
TEST(CallbackExecutorTimers, OfItsHandlersRunOnItsThread) {
  const auto child = test::spawn(1, [](std::size_t) {
    const auto executor = std::make_shared<callback_executor>([](log_level, std::string_view) {});
    timer soon(callback_thread(executor), 1ms);
    std::promise<std::thread::id> ran;
    soon.async_wait([&](const boost::system::error_code&) { ran.set_value(std::this_thread::get_id()); });
    std::promise<std::thread::id> its_thread;
    executor->post([&] { its_thread.set_value(std::this_thread::get_id()); });
    const bool is_same = ran.get_future().get() == its_thread.get_future().get();
    executor->stop();
    return is_same ? 0 : 1;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
}

TEST(CallbackExecutorLoop, TimersOfItsHandlersAreTheLoops) {
  boost::asio::io_context loop;
  const auto executor = std::make_shared<callback_executor>([](log_level, std::string_view) {}, loop);
  timer soon(callback_thread(executor), 1ms);
  bool ran = false;
  soon.async_wait([&](const boost::system::error_code&) { ran = true; });
  loop.run();
  EXPECT_TRUE(ran);
}

// ---- signals are for the program's threads

sigset_t mask_here() {
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return now;
}

TEST(CallbackSignals, ItsThreadTakesNoneAndChildrenHaveTheProgramsMask) {
  const auto where = std::make_shared<callback_executor>([](log_level, std::string_view) {});
  sigset_t inside{};
  int status = -1;
  where->post([&] {
    inside = mask_here();
    const auto child = ::fork();
    if (child == 0) {
      const auto now = mask_here();
      ::_exit(::sigismember(&now, SIGTERM) + 2 * ::sigismember(&now, SIGUSR1));
    }
    ::waitpid(child, &status, 0);
  });
  where->stop();
  for (const int each : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGRTMIN})
    EXPECT_EQ(::sigismember(&inside, each), 1) << each;
  for (const int each : {SIGSEGV, SIGABRT, SIGPROF}) EXPECT_EQ(::sigismember(&inside, each), 0) << each;
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace muster::detail::callback_executor_test
