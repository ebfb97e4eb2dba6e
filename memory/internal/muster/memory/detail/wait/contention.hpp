// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/idle_processor.hpp>

namespace muster {

/// Whether the processor on which a thread looks for others' words is wanted by others.
///
/// A thread that looks without an end uses up its share of a processor that others want too; then the kernel takes the
/// processor away for some milliseconds in one piece. A thread that sleeps instead keeps its share for the work. So a
/// thread that was interrupted for long while it looked does not look for some time: 100 ms, and longer while all
/// processors stay busy, up to some seconds.
///
/// Thread safety: an object belongs to one thread.
class contention {
public:
  /// Of the calling thread.
  [[nodiscard]] static contention& of_this_thread() noexcept {
    constinit thread_local contention own;
    return own;
  }

  /// By a thread that looks: between two looks so many processor_ticks() have passed, without a call in between.
  void note_gap(std::uint64_t ticks) noexcept {
    if (ticks > longest_gap) begin(clock::now());
  }
  /// Whether looking is not worth while now. Cost: a load, where there was no contention.
  [[nodiscard]] bool is_on() noexcept { return is_on_ && !is_over(clock::now()); }

  /// By note_gap() and is_on(), and by tests.
  void begin(clock::time_point now) noexcept;
  [[nodiscard]] bool is_over(clock::time_point now, bool (&is_any_idle)(long) noexcept = seems_processor_idle) noexcept;
  /// Whether it began some seconds ago, or later.
  [[nodiscard]] bool was_lately(clock::time_point now) const noexcept { return now < last_end_; }

private:
  // A processor's interrupts take less; a slice of another thread takes more.
  static constexpr std::uint64_t longest_gap = 1'000'000;
  static constexpr std::chrono::nanoseconds pause = std::chrono::milliseconds(5);
  static constexpr std::chrono::nanoseconds shortest = std::chrono::milliseconds(100);
  static constexpr std::chrono::nanoseconds longest = std::chrono::seconds(10);

  bool is_on_ = false;
  clock::time_point end_{};
  clock::time_point last_end_{};  // then it ends though all processors are busy
};

}  // namespace muster
