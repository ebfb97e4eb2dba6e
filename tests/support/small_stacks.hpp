// SPDX-License-Identifier: BSL-1.0
#pragma once

// Threads and worker processes with little stack, and values that are as large as any that cross by themselves.

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include <muster/serialize/max_value_bytes.hpp>

namespace muster::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t small_stack_bytes = 32 << 20;  // their frames are several times as large
#else
inline constexpr std::size_t small_stack_bytes = 4 << 20;
#endif

/// While it lives, threads that are made get so much stack, and so do processes that are started, and their threads.
class small_stacks {
public:
  small_stacks() {
    ::pthread_attr_init(&threads_);
    ::pthread_getattr_default_np(&threads_);
    auto small = threads_;
    ::pthread_attr_setstacksize(&small, small_stack_bytes);
    EXPECT_EQ(::pthread_setattr_default_np(&small), 0);
    EXPECT_EQ(::getrlimit(RLIMIT_STACK, &processes_), 0);
    const rlimit limit{.rlim_cur = small_stack_bytes, .rlim_max = processes_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_STACK, &limit), 0);
  }
  small_stacks(const small_stacks&) = delete;
  small_stacks& operator=(const small_stacks&) = delete;
  ~small_stacks() {
    ::setrlimit(RLIMIT_STACK, &processes_);
    ::pthread_setattr_default_np(&threads_);
    ::pthread_attr_destroy(&threads_);
  }

private:
  pthread_attr_t threads_{};
  rlimit processes_{};
};

/// Runs a test's body in a thread with little stack, as are all threads and processes that it makes.
template <class Body>
void run_on_small_stack(const Body& body) {
  const small_stacks here;
  std::thread(body).join();
}

/// As large as can be: numbers from the first one on, each one more than the one before.
struct large_value {
  std::array<std::uint32_t, max_value_bytes / sizeof(std::uint32_t)> numbers;

  [[nodiscard]] bool begins_with(std::uint32_t first) const {
    return numbers.front() == first && std::ranges::adjacent_find(numbers, [](std::uint32_t a, std::uint32_t b) {
                                         return b != a + 1;
                                       }) == numbers.end();
  }
};
static_assert(sizeof(large_value) == max_value_bytes);

/// Not on the stack.
[[nodiscard]] inline std::unique_ptr<large_value> make_large(std::uint32_t first) {
  auto made = std::make_unique<large_value>();
  std::iota(made->numbers.begin(), made->numbers.end(), first);
  return made;
}

}  // namespace muster::test
