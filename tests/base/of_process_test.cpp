// SPDX-License-Identifier: BSL-1.0
#include <muster/base/of_process.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include <muster/base/detail/mutex.hpp>

namespace muster::of_process_test {
namespace {

bool holds_in_child(const std::function<bool()>& what) {
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(60);  // it might wait for what nobody lets go of
    ::_exit(what() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST(OfProcess, IsOneForAllOfAProcess) {
  static constinit of_process<int> numbers;
  numbers.get() = 7;
  EXPECT_EQ(numbers.get(), 7);
  std::thread([] { numbers.get() = 8; }).join();
  EXPECT_EQ(numbers.get(), 8);
}

TEST(OfProcess, AForkedChildHasOneOfItsOwnAndSoHasItsChild) {
  static constinit of_process<int> numbers;
  numbers.get() = 7;
  EXPECT_TRUE(holds_in_child([] {
    if (numbers.get() != 0) return false;
    numbers.get() = 8;
    return holds_in_child([] { return numbers.get() == 0; }) && numbers.get() == 8;
  }));
  EXPECT_EQ(numbers.get(), 7);
}

TEST(OfProcess, AForkedChildDoesNotWaitForAThreadOfItsParent) {
  static constinit of_process<mutex> locks;
  std::atomic<int> step = 0;
  std::thread owner([&] {
    const scoped_lock lock(locks.get());
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  EXPECT_TRUE(holds_in_child([] {
    const scoped_lock lock(locks.get());
    return true;
  }));
  step = 2;
  step.notify_all();
  owner.join();
}

}  // namespace
}  // namespace muster::of_process_test
