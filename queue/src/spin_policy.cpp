// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/spin_policy.hpp>

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <muster/base/clock.hpp>
#include <muster/base/cpu_list.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/base/futex.hpp>
#include <muster/base/start_thread.hpp>

namespace muster {

namespace {

using std::chrono::nanoseconds;

/// Two threads on two processors that wake each other in turn; half a round trip is one wake-up. On one processor it
/// would cost a tenth, and whoever spins for that long only sleeps when the other is just about to answer.
class wake_up_meter {
public:
  static constexpr std::uint32_t rounds = 7;

  /// What is usual, where no threads can be had.
  nanoseconds measure() {
    nanoseconds found = std::chrono::microseconds(5);
    try {
      start_thread([&] {
        run_on(0);
        try {
          found = time_wake_ups();
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
        }
      }).join();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
    return found;
  }

private:
  using word = std::atomic<std::uint32_t>;

  nanoseconds time_wake_ups() {
    std::thread partner = start_thread([this] {
      run_on(1);
      answer();
    });
    std::array<nanoseconds, rounds> samples{};
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      const auto start = clock::now();
      hand_over(ping_, round);
      await(pong_, round);
      samples[round - 1] = (clock::now() - start) / 2;
    }
    partner.join();
    std::nth_element(samples.begin(), samples.begin() + rounds / 2, samples.end());
    return samples[rounds / 2];
  }

  // Binds the calling thread to the `index`-th of the process's processors. If that fails, it runs where it likes.
  void run_on(std::size_t index) const noexcept {
    if (index >= allowed_.size() || allowed_[index] >= CPU_SETSIZE) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(allowed_[index], &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }

  void answer() {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      await(ping_, round);
      hand_over(pong_, round);
    }
  }

  static void hand_over(word& to, std::uint32_t round) {
    to.store(round, std::memory_order_release);
    futex_wake(futex_address(to), 1, futex_scope::within_process);
  }

  static void await(const word& from, std::uint32_t round) {
    for (auto found = from.load(std::memory_order_acquire); found != round;
         found = from.load(std::memory_order_acquire)) {
      futex_wait(futex_address(from), found, futex_scope::within_process);
    }
  }

  const cpu_list allowed_ = process_cpus();
  word ping_ = 0;
  word pong_ = 0;
};

}  // namespace

spin_policy spin_policy::calibrate() {
  constexpr nanoseconds longest = std::chrono::microseconds(50);
  const auto processors = effective_cpus();
  if (processors < 2) return {.budget = nanoseconds(0), .processors = processors};
  const auto wake_up = wake_up_meter().measure();
  return {.budget = std::min(2 * wake_up, longest), .processors = processors};
}

}  // namespace muster
