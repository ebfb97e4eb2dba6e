// SPDX-License-Identifier: BSL-1.0
// A worker that dies while somebody traces it is a zombie that only its tracer may reap. It is dead all the same: its
// task ends and another takes its place before the tracer lets go, and then no zombie is left. docs/design/deaths.md
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "tracer.hpp"

namespace muster::traced_worker_test {
namespace {

using namespace std::chrono_literals;

int add(int a, int b) { return a + b; }
void hang() {
  for (;;) ::pause();
}
void crash() { ::raise(SIGSEGV); }

class TracedWorker : public testing::Test {
protected:
  void SetUp() override {
    pool_ = std::make_unique<pool>(pool_options{.workers = 1, .log = [](log_level, std::string_view) {}});
    worker_ = pool_->apply([] { return ::getpid(); });
    tracer_.emplace(worker_);
    if (!tracer_->works()) GTEST_SKIP() << "this machine does not let one process trace another";
  }

  // Whatever was done to the worker: the tracer still keeps it from being reaped.
  void expect_kept() const {
    EXPECT_TRUE(test::eventually([&] { return test::is_zombie(worker_); }));
  }

  void expect_no_zombie_after_the_tracer() {
    expect_kept();
    tracer_->let_go();
    EXPECT_TRUE(test::eventually([&] { return ::kill(worker_, 0) != 0; })) << "it is still a zombie";
  }

  std::unique_ptr<pool> pool_;
  pid_t worker_ = 0;
  std::optional<test::tracer> tracer_;
};

TEST_F(TracedWorker, ThatIsKilledEndsItsTaskAndIsReplacedBeforeTheTracerLetsGo) {
  auto doomed = pool_->apply_async([] { ::raise(SIGKILL); });
  const auto ended = doomed.get_result();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), errc::worker_died);
  EXPECT_EQ(ended.error().status(), exit_status::killed(SIGKILL));
  EXPECT_EQ(pool_->apply(add, 20, 22), 42);
  expect_no_zombie_after_the_tracer();
}

TEST_F(TracedWorker, ThatCrashesEndsItsTaskAndIsReplacedBeforeTheTracerLetsGo) {
  auto doomed = pool_->apply_async(crash);
  const auto ended = doomed.get_result();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), errc::worker_died);
  EXPECT_EQ(ended.error().status(), exit_status::killed(SIGSEGV));
  EXPECT_EQ(pool_->apply(add, 20, 22), 42);
  expect_no_zombie_after_the_tracer();
}

TEST_F(TracedWorker, ThatExitsTellsItsCode) {
  auto doomed = pool_->apply_async([] { ::_exit(7); });
  const auto ended = doomed.get_result();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().status(), exit_status::exited(7));
  expect_no_zombie_after_the_tracer();
}

TEST_F(TracedWorker, DoesNotHoldUpTerminate) {
  auto running = pool_->apply_async(hang);
  pool_->terminate();
  pool_->join();
  EXPECT_FALSE(running.get_result());
  expect_no_zombie_after_the_tracer();
}

TEST_F(TracedWorker, DoesNotHoldUpTheDestructor) {
  auto running = pool_->apply_async(hang);
  pool_.reset();
  EXPECT_FALSE(running.get_result());
  expect_no_zombie_after_the_tracer();
}

// Its pidfd is not readable before the tracer has taken notice of each thread.
TEST_F(TracedWorker, WithSeveralThreadsIsReplacedBeforeTheTracerLetsGo) {
  tracer_->let_go();
  pool_->apply([] { std::thread(hang).detach(); });
  tracer_.emplace(worker_);
  ASSERT_TRUE(tracer_->works());
  const auto ended = pool_->apply_async([] { ::raise(SIGKILL); }).get_result();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().status(), exit_status::killed(SIGKILL));
  EXPECT_EQ(pool_->apply(add, 20, 22), 42);
  expect_no_zombie_after_the_tracer();
}

TEST_F(TracedWorker, OfAPoolThatHasGoneIsReapedWhileAnotherPoolLives) {
  const pool other({.workers = 1});
  pool_.reset();
  expect_no_zombie_after_the_tracer();
}

}  // namespace
}  // namespace muster::traced_worker_test
