// SPDX-License-Identifier: BSL-1.0
// What is known of a worker that std::terminate has ended.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>

namespace muster::terminate_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void discard(log_level, std::string_view) {}

// The error of a task that ends its worker.
template <class F>
error_info death_of(F task, pool_options options = {}) {
  options.workers = 1;
  options.log = discard;
  pool pool(std::move(options));
  try {
    pool.apply(task);
  } catch (const worker_died& caught) {
    EXPECT_EQ(caught.what(), caught.info().describe());
    return caught.info();
  }
  ADD_FAILURE() << "it did not die";
  return {};
}

struct throws_when_destroyed {
  ~throws_when_destroyed() noexcept(false) { throw std::logic_error("the second"); }
};

// Not thrown in place: the compiler would warn.
template <class T>
[[noreturn]] void raise(const T& exception) {
  throw exception;  // NOLINT: thrown by value on purpose
}

void throw_in_noexcept() noexcept { raise(std::out_of_range("too far")); }

TEST(Terminate, OfAThreadsExceptionSaysTypeAndText) {
  const auto error = death_of([] { std::thread([] { throw std::runtime_error("lost in a thread"); }).join(); });
  EXPECT_EQ(error.status(), exit_status::killed(SIGABRT));
  EXPECT_THAT(error.describe(), AllOf(HasSubstr("std::terminate"), HasSubstr("std::runtime_error: lost in a thread")));
}

TEST(Terminate, OfANoexceptFunctionSaysTypeAndText) {
  EXPECT_THAT(death_of(throw_in_noexcept).describe(), HasSubstr("std::out_of_range: too far"));
}

TEST(Terminate, DuringUnwindingSaysTypeAndText) {
  const auto error = death_of([] {
    const throws_when_destroyed local;
    throw std::runtime_error("the first");
  });
  EXPECT_THAT(error.describe(), HasSubstr("std::logic_error: the second"));
}

TEST(Terminate, SaysTheInnerExceptionsToo) {
  const auto error = death_of([]() noexcept {
    try {
      throw std::out_of_range("inner");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("outer"));
    }
  });
  EXPECT_THAT(error.describe(), HasSubstr("std::runtime_error: outer; caused by std::out_of_range: inner"));
}

TEST(Terminate, OfAnythingThatIsThrownSaysItsType) {
  EXPECT_THAT(death_of([]() noexcept { raise(42); }).describe(), HasSubstr("after throwing int"));
}

TEST(Terminate, WithoutAnExceptionSaysSo) {
  EXPECT_THAT(death_of([] {
                std::thread([] {  // NOLINT: it is not joined
                  for (;;) ::pause();
                });
              }).describe(),
              HasSubstr("std::terminate was called, and no exception was thrown"));
}

TEST(Terminate, IsSaidWithoutCrashReportsToo) {
  const auto error = death_of(throw_in_noexcept, {.crash_reports = false});
  EXPECT_THAT(error.describe(), HasSubstr("too far"));
  EXPECT_EQ(error.crash(), "");
}

TEST(Terminate, ALongTextIsCut) {
  const auto error = death_of([]() noexcept { raise(std::runtime_error(std::string(10000, 'x'))); });
  EXPECT_THAT(error.describe(), HasSubstr("std::runtime_error: xxxx"));
  EXPECT_LT(error.describe().size(), 20000U);
}

struct text_that_terminates : std::exception {
  [[nodiscard]] const char* what() const noexcept override { raise(std::logic_error("no text")); }
};

TEST(Terminate, WhileItsReasonIsDescribedEndsTheWorker) {
  EXPECT_EQ(death_of([]() noexcept { raise(text_that_terminates()); }).status(), exit_status::killed(SIGABRT));
}

TEST(Terminate, OfManyThreadsAtOnceSaysOneReason) {
  const auto error = death_of([] {
    for (int count = 0; count < 8; ++count) std::thread([] { throw std::runtime_error("one of many"); }).detach();
    for (;;) ::pause();
  });
  EXPECT_THAT(error.describe(), HasSubstr("one of many"));
}

TEST(Terminate, IsNotSaidOfAnAbort) {
  EXPECT_THAT(death_of([] { std::abort(); }).describe(), Not(HasSubstr("std::terminate")));
}

TEST(Terminate, AHandlerOfTheProgramsStays) {
  const auto error = death_of([] {
    std::set_terminate([] { ::_exit(77); });
    throw_in_noexcept();
  });
  EXPECT_EQ(error.status(), exit_status::exited(77));
  EXPECT_THAT(error.describe(), Not(HasSubstr("std::terminate")));
}

TEST(Terminate, OfAForkedChildIsItsOwn) {
  pool pool({.workers = 1, .log = discard});
  pool.apply([] {
    const auto child = ::fork();
    if (child == 0) throw_in_noexcept();
    int status = 0;
    ::waitpid(child, &status, 0);
  });
  try {
    pool.apply([] { ::_exit(3); });
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_THAT(caught.what(), Not(HasSubstr("std::terminate")));
  }
}

TEST(Terminate, OfAWorkersOwnWorkerArrives) {
  pool pool({.workers = 1, .log = discard});
  try {
    pool.apply([] {
      const muster::pool inner({.workers = 1, .arena_bytes = std::size_t{16} << 20U, .log = discard});
      inner.apply(throw_in_noexcept);
    });
    FAIL();
  } catch (const remote_exception& caught) {
    EXPECT_THAT(caught.what(), HasSubstr("std::out_of_range: too far"));
  }
}

TEST(Terminate, InAnInitializerGoesWithTheErrorOfABrokenPool) {
  try {
    pool pool({.workers = 1, .initializer = [] { throw_in_noexcept(); }, .start_tries = 1, .log = discard});
    pool.apply([] {});
    FAIL();
  } catch (const error& caught) {  // of the constructor or of the call
    EXPECT_THAT(caught.what(), HasSubstr("too far"));
  }
}

TEST(Terminate, OfASingleProcessSaysTypeAndText) {
  process ended(process_options{.log = discard}, throw_in_noexcept);
  EXPECT_TRUE(ended.join_for(std::chrono::seconds(60)));
  try {
    ended.watch();
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_THAT(caught.what(), HasSubstr("too far"));
  }
}

}  // namespace
}  // namespace muster::terminate_test
