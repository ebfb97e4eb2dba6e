// SPDX-License-Identifier: BSL-1.0
#pragma once

// Threads of this machine in place of the simulated cores: what they do to shared words is counted, not how long it
// takes. So the simulation's counts can be checked where there are processors enough.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/spin.hpp>

#include "scaling_figures.hpp"

namespace scaling {

/// A word, on a line of its own, that counts what the calling thread does to it.
///
/// Thread safety: safe, as std::atomic.
class alignas(64) counting_word {
public:
  counting_word() = default;

  [[nodiscard]] std::uint64_t load(std::memory_order order) const {
    ++counts().reads;
    return value_.load(order);
  }
  void store(std::uint64_t desired, std::memory_order order) {
    ++counts().writes;
    value_.store(desired, order);
  }
  std::uint64_t exchange(std::uint64_t desired, std::memory_order order) {
    ++counts().writes;
    return value_.exchange(desired, order);
  }
  std::uint64_t fetch_or(std::uint64_t bits, std::memory_order order) {
    ++counts().writes;
    return value_.fetch_or(bits, order);
  }
  std::uint64_t fetch_and(std::uint64_t bits, std::memory_order order) {
    ++counts().writes;
    return value_.fetch_and(bits, order);
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                               std::memory_order failure) {
    return noted(value_.compare_exchange_strong(expected, desired, success, failure));
  }
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                             std::memory_order failure) {
    return noted(value_.compare_exchange_weak(expected, desired, success, failure));
  }

  [[nodiscard]] const std::atomic<std::uint64_t>& native() const { return value_; }
  void set_kind(line_kind kind) { kind_ = kind; }

  static event_counts& of_this_thread() {
    thread_local event_counts found;
    return found;
  }

private:
  [[nodiscard]] line_counts& counts() const { return of_this_thread().of(kind_); }
  bool noted(bool exchanged) {
    ++counts().writes;
    counts().failed += exchanged ? 0U : 1U;
    return exchanged;
  }

  std::atomic<std::uint64_t> value_ = 0;
  line_kind kind_ = line_kind::other;
};

/// Threads, with the operations that jobs need.
///
/// Thread safety: its jobs call what is for them; the rest is for one thread.
class threads {
public:
  using word = counting_word;

  struct job {
    std::size_t place = 0;  // of no meaning here
    std::function<void()> body;
  };

  std::span<word> make_words(line_kind kind, std::size_t count, std::size_t);
  void run(std::vector<job> jobs);

  [[nodiscard]] static nanoseconds now() { return muster::clock::now().time_since_epoch(); }
  static void spend(nanoseconds) {}  // this machine's instructions take their time anyway
  static void work(nanoseconds time);
  static void pause(std::size_t times);
  template <class Done>
  static bool spin_until(nanoseconds budget, Done done) {
    const auto end = now() + budget;
    for (;;) {
      constexpr int looks_per_clock_reading = 16;  // reading the clock costs as much as several looks
      for (int look = 0; look < looks_per_clock_reading; ++look) {
        if (done()) return true;
        muster::relax_processor();
      }
      if (now() >= end) return false;
    }
  }
  static void prefetch_for_write(word& what) { muster::prefetch_for_write(&what); }
  static void sleep_on(word& what, std::uint64_t expected);
  static void wake(word& what, std::size_t count);
  [[nodiscard]] static event_counts events() { return counting_word::of_this_thread(); }

private:
  std::vector<std::unique_ptr<word[]>> memory_;
};

}  // namespace scaling
