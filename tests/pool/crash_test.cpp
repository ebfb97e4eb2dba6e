// SPDX-License-Identifier: BSL-1.0
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>

namespace muster::crash_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void discard(log_level, std::string_view) {}

class CrashReport : public testing::Test {
protected:
  void SetUp() override {
    if (std::string_view(MUSTER_SANITIZER) != "") GTEST_SKIP() << "sanitizers report crashes themselves";
  }

  template <class F>
  static error_info death_of(F task) {
    pool pool({.workers = 1, .log = discard});
    try {
      pool.apply(task);
    } catch (const task_error& caught) {
      return caught.info();
    }
    ADD_FAILURE() << "it did not fail";
    return {};
  }
};

// Functions with names to be looked for: neither inlined, nor merged, nor left by a tail call.
[[gnu::noinline]] void write_to_nowhere(volatile int* where) {
  *where = 1;
  asm volatile("" ::: "memory");
}
volatile std::uintptr_t nowhere = 0x40;  // not known to the compiler, which would warn
[[gnu::noinline]] void call_the_writer() {
  write_to_nowhere(reinterpret_cast<volatile int*>(nowhere));
  asm volatile("" ::: "memory");
}
[[gnu::noinline]] void give_up_in_here() { std::abort(); }
[[gnu::noinline]] int recurse(int depth) {
  volatile char room[4096] = {};
  room[depth % 4096] = 1;
  return depth < 0 ? 0 : recurse(depth + 1) + room[(depth + 1) % 4096];
}

TEST_F(CrashReport, OfABadAccessNamesAddressAndFunctions) {
  const auto error = death_of([] { call_the_writer(); });
  EXPECT_EQ(error.code(), errc::worker_died);
  EXPECT_EQ(error.status(), exit_status::killed(SIGSEGV));
  EXPECT_THAT(error.crash(), StartsWith("SIGSEGV at address 0x40\n#0 "));
  EXPECT_THAT(error.crash(), HasSubstr("write_to_nowhere(int volatile*)"));
  EXPECT_THAT(error.crash(), HasSubstr("call_the_writer()"));
  EXPECT_THAT(error.crash(), Not(HasSubstr("worker_end::run")));
  EXPECT_THAT(error.describe(), HasSubstr("\nit crashed:\n  SIGSEGV at address 0x40\n  #0 "));
}

TEST_F(CrashReport, OfAnAbortNamesWhoCalledIt) {
  const auto error = death_of([] { give_up_in_here(); });
  EXPECT_EQ(error.status(), exit_status::killed(SIGABRT));
  EXPECT_THAT(error.crash(), StartsWith("SIGABRT\n#0 "));
  EXPECT_THAT(error.crash(), HasSubstr("give_up_in_here()"));
}

TEST_F(CrashReport, OfOtherSignals) {
  EXPECT_THAT(death_of([] { ::raise(SIGFPE); }).crash(), StartsWith("SIGFPE\n"));
  EXPECT_THAT(death_of([] { __builtin_trap(); }).crash(), StartsWith("SIGILL at address 0x"));
  const auto bus = death_of([] {
    const int file = ::memfd_create("empty", 0);
    auto* const page = static_cast<volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
    static_cast<void>(page[0]);
  });
  EXPECT_EQ(bus.status(), exit_status::killed(SIGBUS));
  EXPECT_THAT(bus.crash(), StartsWith("SIGBUS at address 0x"));
}

TEST_F(CrashReport, OfAStackOverflow) {
  const auto error = death_of([] { static_cast<void>(recurse(0)); });
  EXPECT_EQ(error.status(), exit_status::killed(SIGSEGV));
  EXPECT_THAT(error.crash(), HasSubstr("recurse(int)"));
}

TEST_F(CrashReport, OfAJumpToNowhere) {
  const auto error = death_of([] { reinterpret_cast<void (*)()>(0x10)(); });
  EXPECT_EQ(error.status(), exit_status::killed(SIGSEGV));
  EXPECT_THAT(error.crash(), StartsWith("SIGSEGV at address 0x10\n"));
}

TEST_F(CrashReport, OfAnotherThread) {
  const auto error = death_of([] { std::thread(call_the_writer).join(); });
  EXPECT_EQ(error.status(), exit_status::killed(SIGSEGV));
  EXPECT_THAT(error.crash(), HasSubstr("call_the_writer()"));
}

TEST_F(CrashReport, SaysWhoSentTheSignal) {
  const auto error = death_of([] {
    if (::fork() == 0) {
      ::kill(::getppid(), SIGSEGV);
      ::_exit(0);
    }
    for (;;) ::pause();
  });
  EXPECT_EQ(error.status(), exit_status::killed(SIGSEGV));
  EXPECT_THAT(error.crash(), StartsWith("SIGSEGV, sent by process "));
}

TEST_F(CrashReport, ThereIsNoneOfWhoWasKilledOrExited) {
  EXPECT_EQ(death_of([] { ::raise(SIGKILL); }).crash(), "");
  EXPECT_EQ(death_of([] { ::_exit(3); }).crash(), "");
}

TEST_F(CrashReport, CanBeSwitchedOff) {
  pool pool({.workers = 1, .crash_reports = false, .log = discard});
  try {
    pool.apply([] { std::abort(); });
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_EQ(caught.info().crash(), "");
    EXPECT_EQ(caught.status(), exit_status::killed(SIGABRT));
  }
}

TEST_F(CrashReport, TheProgramsOwnHandlersWin) {
  pool pool({.workers = 1, .initializer = [] { ::signal(SIGSEGV, [](int) { ::_exit(77); }); }, .log = discard});
  try {
    pool.apply([] { call_the_writer(); });
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_EQ(caught.status(), exit_status::exited(77));
    EXPECT_EQ(caught.info().crash(), "");
  }
}

TEST_F(CrashReport, AForkedChildsCrashIsItsOwn) {
  pool pool({.workers = 1, .log = discard});
  const int status = pool.apply([] {
    const auto child = ::fork();
    if (child == 0) std::abort();
    int ended = 0;
    ::waitpid(child, &ended, 0);
    return ended;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  try {
    pool.apply([] { ::raise(SIGKILL); });
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_EQ(caught.info().crash(), "");
  }
}

TEST_F(CrashReport, OfAnInitializerGoesWithTheErrorOfABrokenPool) {
  try {
    pool pool({.workers = 1, .initializer = [] { call_the_writer(); }, .start_tries = 1, .log = discard});
    pool.apply([] {});
    FAIL();
  } catch (const error& caught) {  // of the constructor or of the call
    EXPECT_THAT(caught.what(), HasSubstr("call_the_writer()"));
  }
}

TEST_F(CrashReport, OfASingleProcess) {
  process crashing(process_options{.log = discard}, call_the_writer);
  EXPECT_TRUE(crashing.join_for(std::chrono::seconds(60)));
  try {
    crashing.watch();
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_THAT(caught.info().crash(), HasSubstr("call_the_writer()"));
  }
}

}  // namespace
}  // namespace muster::crash_test
