// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/output_choice.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/mutex.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::output_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

void discard(log_level, std::string_view) {}

// A sink that keeps what it is given.
class journal {
public:
  [[nodiscard]] output_choice choice() {
    return [this](const worker_output& line) {
      const scoped_lock lock(mutex_);
      lines_.push_back(line);
    };
  }
  [[nodiscard]] std::vector<worker_output> lines() const {
    const scoped_lock lock(mutex_);
    return lines_;
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> found;
    for (const auto& each : lines()) found.push_back(each.text);
    return found;
  }

private:
  mutable mutex mutex_;
  std::vector<worker_output> lines_ MUSTER_GUARDED_BY(mutex_);
};

error_info death_of(future<void>& call) {
  try {
    call.get();
  } catch (const task_error& caught) {
    return caught.info();
  }
  ADD_FAILURE() << "it did not fail";
  return {};
}

TEST(Output, ASinkGetsEveryLineOfBothStreamsWithItsWriter) {
  journal journal;
  pid_t pid = 0;
  {
    pool pool({.workers = 1, .output = journal.choice()});
    pid = pool.apply([] {
      std::puts("to stdout");
      std::cout << "also to stdout\n";
      return ::getpid();
    });
    pool.apply([] { std::cerr << "to stderr\n"; });
  }
  const auto lines = journal.lines();
  ASSERT_EQ(lines.size(), 3U);
  for (const auto& each : lines) {
    EXPECT_EQ(each.worker, 0U);
    EXPECT_EQ(each.incarnation, 1U);
    EXPECT_EQ(each.pid, pid);
    EXPECT_TRUE(each.ends_line);
    EXPECT_EQ(each.dropped, 0U);
    EXPECT_EQ(each.stream, each.text == "to stderr" ? output_stream::err : output_stream::out);
  }
  EXPECT_THAT(journal.texts(), testing::UnorderedElementsAre("to stdout", "also to stdout", "to stderr"));
}

TEST(Output, LinesComeWhileTheTaskRuns) {
  journal journal;
  pool pool({.workers = 1, .output = journal.choice()});
  auto call = pool.apply_async([] {
    std::puts("begun");  // stdout is line-buffered: nothing flushes this
    for (;;) ::pause();
  });
  EXPECT_TRUE(test::eventually([&] { return !journal.lines().empty(); }));
  pool.terminate();
  EXPECT_THROW(call.get(), task_error);
}

TEST(Output, AnUnfinishedLastLineComesWhenTheWorkerEnds) {
  journal journal;
  {
    pool pool({.workers = 1, .output = journal.choice()});
    pool.apply([] { std::fputs("no line feed", stderr); });
  }
  ASSERT_EQ(journal.lines().size(), 1U);
  EXPECT_EQ(journal.lines()[0].text, "no line feed");
  EXPECT_FALSE(journal.lines()[0].ends_line);
}

TEST(Output, OverlongLinesComeInPieces) {
  journal journal;
  {
    pool pool({.workers = 1, .output = journal.choice()});
    pool.apply([] { std::puts(std::string(3 * longest_output_line - 10, 'x').c_str()); });
  }
  const auto lines = journal.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].text.size(), longest_output_line);
  EXPECT_FALSE(lines[0].ends_line);
  EXPECT_EQ(lines[2].text.size(), longest_output_line - 10);
  EXPECT_TRUE(lines[2].ends_line);
}

TEST(Output, FinalizersAreHeardBeforeThePoolIsGone) {
  journal journal;
  {
    pool pool({.workers = 2, .finalizer = [] { std::puts("farewell"); }, .output = journal.choice()});
    pool.apply([] {});
    pool.close();
    pool.join();
  }
  EXPECT_THAT(journal.texts(), ElementsAre("farewell", "farewell"));
}

TEST(Output, TheLastLinesGoWithTheErrorOfADeath) {
  pool pool({.workers = 1, .output = output_choice::discard(), .log = discard});
  auto call = pool.apply_async([] {
    for (int line = 0; line < 50; ++line) std::printf("line %d\n", line);
    std::fputs("and the end", stdout);
    std::fflush(stdout);
    ::raise(SIGKILL);
  });
  const auto error = death_of(call);
  EXPECT_EQ(error.code(), errc::worker_died);
  EXPECT_TRUE(error.last_output().ends_with("line 48\nline 49\nand the end\n")) << error.last_output();
  EXPECT_EQ(std::count(error.last_output().begin(), error.last_output().end(), '\n'), 20);
  EXPECT_THAT(error.describe(), HasSubstr("\nit had written last:\n  | line 31\n"));
  EXPECT_THAT(error.describe(), HasSubstr("\n  | and the end"));
}

TEST(Output, TheLastLinesGoWithTimeoutsAndQuarantine) {
  pool pool({.workers = 1, .output = output_choice::discard(), .log = discard});
  auto late = pool.with({.timeout = 200ms}).apply_async([] {
    std::puts("waits for ever");
    for (;;) ::pause();
  });
  const auto overdue = death_of(late);
  EXPECT_EQ(overdue.code(), errc::timed_out);
  EXPECT_EQ(overdue.last_output(), "waits for ever\n");
  auto poison = pool.with({.retries = 5}).apply_async([] {
    std::fprintf(stderr, "attempt %u\n", this_task::attempt());
    ::raise(SIGKILL);
  });
  const auto quarantined = death_of(poison);
  EXPECT_EQ(quarantined.code(), errc::quarantined);
  EXPECT_EQ(quarantined.last_output(), "attempt 2\n");
}

TEST(Output, TheLastLinesGoWithTheElementOfAMap) {
  pool pool({.workers = 1, .output = output_choice::discard(), .log = discard});
  const auto results = pool.collect_errors().map(
      [](int x) {
        if (x != 2) return x;
        std::puts("the third");
        ::raise(SIGKILL);
        return 0;
      },
      std::vector{0, 1, 2, 3});
  ASSERT_FALSE(results[2].has_value());
  EXPECT_EQ(results[2].error().last_output(), "the third\n");
  EXPECT_TRUE(results[3].has_value());
}

TEST(Output, WhatAnInitializerSaidGoesWithTheErrorOfABrokenPool) {
  try {
    pool pool({.workers = 1,
               .initializer =
                   [] {
                     std::fputs("no licence found\n", stderr);
                     ::_exit(3);
                   },
               .output = output_choice::discard(),
               .log = discard});
    pool.apply([] {});
    FAIL();
  } catch (const error& caught) {  // of the constructor or of the call
    EXPECT_THAT(caught.what(), HasSubstr("no licence found"));
  }
}

TEST(Output, ByDefaultNothingIsRead) {
  pool pool({.workers = 1, .log = discard});
  auto call = pool.apply_async([] { ::raise(SIGKILL); });
  EXPECT_EQ(death_of(call).last_output(), "");
  EXPECT_EQ(output_choice().capture(), output_capture::none);
  EXPECT_EQ(output_choice::inherit().capture(), output_capture::none);
}

TEST(Output, AnEmptyFunctionIsAsDiscard) {
  EXPECT_EQ(output_choice(output_choice::sink()).capture(), output_capture::last);
}

TEST(Output, AReplacementIsCapturedToo) {
  journal journal;
  {
    pool pool({.workers = 1, .output = journal.choice(), .log = discard});
    EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);
    pool.apply([] { std::puts("second"); });
  }
  ASSERT_EQ(journal.lines().size(), 1U);
  EXPECT_EQ(journal.lines()[0].incarnation, 2U);
}

TEST(Output, ASinkMayCallThePoolAndThrow) {
  std::atomic<int> answers = 0;
  std::atomic<int> logged = 0;
  pool* used = nullptr;
  pool pool({.workers = 1,
             .output =
                 [&](const worker_output& line) {
                   if (line.text == "ask") answers += used->apply([] { return 1; });
                   if (line.text == "throw") throw std::runtime_error("sink");
                 },
             .log = [&](log_level, std::string_view) { ++logged; }});
  used = &pool;
  pool.apply([] { std::puts("throw\nask\nask"); });
  EXPECT_TRUE(test::eventually([&] { return answers == 2 && logged == 1; }));
}

TEST(Output, AWorkerThatWritesWithoutEndNeitherWaitsForASlowSinkNorFillsMemory) {
  constexpr int count = 300000;
  std::atomic<bool> hold = true;
  std::atomic<std::size_t> seen = 0;
  std::atomic<std::size_t> dropped = 0;
  {
    pool pool({.workers = 1, .output = [&](const worker_output& line) {
                 hold.wait(true);
                 ++seen;
                 dropped += line.dropped;
               }});
    pool.apply([] {
      for (int line = 0; line < count; ++line) std::printf("%d\n", line);
    });
    hold = false;
    hold.notify_all();
  }
  EXPECT_EQ(seen + dropped, static_cast<std::size_t>(count));
  EXPECT_LE(seen, 100000U) << "those that waited, and what was in the pipe";
}

TEST(Output, AChildThatKeepsThePipeDoesNotDelayTheDeath) {
  journal journal;
  pool pool({.workers = 1, .output = journal.choice(), .log = discard});
  auto call = pool.apply_async([] {
    if (::fork() == 0) {
      ::setsid();  // so that it is not killed with the worker
      std::printf("%d\n", static_cast<int>(::getpid()));
    }
    for (;;) ::pause();
  });
  ASSERT_TRUE(test::eventually([&] { return !journal.lines().empty(); }));
  ::kill(pool.workers()[0].pid, SIGKILL);
  EXPECT_EQ(death_of(call).code(), errc::worker_died);
  EXPECT_EQ(::kill(std::stoi(journal.lines()[0].text), SIGKILL), 0) << "it is still there";
}

}  // namespace
}  // namespace muster::output_test
