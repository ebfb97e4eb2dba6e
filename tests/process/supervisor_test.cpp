// SPDX-License-Identifier: BSL-1.0
#include <muster/process/detail/supervisor.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "held_up_call.hpp"
#include "processes.hpp"
#include "refused_calls.hpp"

namespace {

// Of descriptors that this process had closed already. Between the two another thread may have got that number.
constinit std::atomic<int> closed_twice = 0;

}  // namespace

// In the place of the C library's.
extern "C" int close(int descriptor) {
  const auto answer = ::syscall(SYS_close, descriptor);
  if (answer != 0 && errno == EBADF && descriptor >= 0) ++closed_twice;
  return static_cast<int>(answer);
}

namespace muster::supervisor_test {
namespace {

constexpr domain_options small{.arena_bytes = std::size_t{1} << 20U};

TEST(Supervisor, StartsAndEnds) {
  const supervisor watcher(small);
  EXPECT_EQ(watcher.shared()->participants().count(), 1U);
}

TEST(Supervisor, OfTheProgramIsSharedWhileItIsUsed) {
  auto one = supervisor::of_program(small);
  EXPECT_EQ(supervisor::of_program(small), one);
  EXPECT_EQ(supervisor::of_program({}), one) << "no wish about the size";
  std::weak_ptr<supervisor> gone = one;
  one.reset();
  EXPECT_TRUE(gone.expired());
  EXPECT_NE(supervisor::of_program(small), nullptr);
}

TEST(Supervisor, GivesBackWhatTheProgramKeepsWarmOnceNobodyUsesIt) {
  const supervisor watcher({.arena_bytes = std::size_t{64} << 20U});
  auto& memory = watcher.shared()->blocks();
  for (int time = 0; time < 2; ++time) {  // also when it has done so before
    memory.allocate_shared(std::size_t{4} << 20U).reset();
    EXPECT_TRUE(test::eventually([&] { return memory.read_statistics().cached_bytes == 0; }));
  }
  memory.allocate_shared(std::size_t{4} << 20U).reset();  // and ends while it looks after it
}

TEST(Supervisor, ALargerArenaThanThatOfTheProgramIsRefused) {
  const auto one = supervisor::of_program(small);
  try {
    static_cast<void>(supervisor::of_program({.arena_bytes = std::size_t{1} << 30U}));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("1.0 GiB"), testing::HasSubstr("isolated")));
  }
}

TEST(Supervisor, WithoutAThreadItIsAnErrorAndClosesNothingTwice) {
  for (int round = 0; round < 10; ++round) {
    const test::refused_calls scope("pthread_create", EAGAIN);
    EXPECT_THROW(supervisor watcher(small), error);
  }
  EXPECT_EQ(closed_twice, 0);
  const supervisor watcher(small);
  EXPECT_EQ(watcher.shared()->participants().count(), 1U);
}

TEST(Supervisor, AForkedChildMayDestroyItsCopy) {
  auto one = std::make_unique<supervisor>(small);
  const auto ranks = test::spawn(1, [&](std::size_t) {
    one.reset();
    return 0;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

TEST(Supervisor, AChildThatIsForkedWhileAnotherThreadMakesTheProgramsGetsOneOfItsOwn) {
  const test::held_up_call scope("pthread_create");
  auto made = std::async(std::launch::async, [] { return supervisor::of_program(small); });
  scope.wait();
  const auto ranks = test::spawn(1, [](std::size_t) {
    ::alarm(60);  // it might wait for a thread that it does not have
    const auto own = supervisor::of_program(small);
    return supervisor::of_program(small) == own && own->shared()->participants().count() == 1 ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
  scope.let_go();
  EXPECT_EQ(supervisor::of_program(small), made.get());
}

}  // namespace
}  // namespace muster::supervisor_test
