// SPDX-License-Identifier: BSL-1.0
#pragma once

// How far a map or stream is, for people: task_options::progress.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

class pool_core;

/// What there is to tell.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct progress_state {
  std::string label;
  std::size_t done = 0;
  std::optional<std::size_t> total;
  std::chrono::nanoseconds elapsed{};
};

/// One line of at most `width` columns: label, count, share, bar, rate, remaining time; of those as many as there is
/// room for, the count first.
[[nodiscard]] std::string progress_text(const progress_state& state, std::size_t width);

/// Shows the progress of one map or stream: on a terminal in one line that is drawn again and again, elsewhere in a
/// line from time to time.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Cost: add() is one addition; show() reads the clock, and seldom writes.
class progress_meter {
public:
  struct settings {
    int descriptor = 2;  ///< borrowed
    std::chrono::nanoseconds redraw = std::chrono::milliseconds(100);
    std::chrono::nanoseconds plain = std::chrono::seconds(10);
  };

  progress_meter(std::string label, std::optional<std::size_t> total);
  progress_meter(std::string label, std::optional<std::size_t> total, const settings& how);
  progress_meter(const progress_meter&) = delete;
  progress_meter& operator=(const progress_meter&) = delete;
  ~progress_meter() { finish(); }

  /// So many more elements have a result or an error. May be called by any thread, in any place.
  void add(std::size_t elements) noexcept { done_.fetch_add(elements, std::memory_order_relaxed); }

  /// Writes, if that is due and nobody else is at it. Not for threads that must not block.
  void show() MUSTER_EXCLUDES(mutex_);
  /// Writes how it ended, and the line's end, if anything has been written; then nothing more.
  void finish() noexcept MUSTER_EXCLUDES(mutex_);
  /// The same, once every element has ended.
  void finish_if_complete() noexcept {
    if (total_ && done_.load(std::memory_order_relaxed) >= *total_) finish();
  }
  /// When show() is to be called next.
  [[nodiscard]] clock::time_point due() const noexcept {
    return clock::time_point(clock::duration(due_.load(std::memory_order_relaxed)));
  }

private:
  void draw() MUSTER_REQUIRES(mutex_);
  void set_due(clock::time_point when) noexcept {
    due_.store(when.time_since_epoch().count(), std::memory_order_relaxed);
  }

  const std::string label_;
  const std::optional<std::size_t> total_;
  const settings settings_;
  const bool terminal_;
  const clock::time_point start_ = clock::now();
  std::atomic<std::size_t> done_ = 0;      // only a number
  std::atomic<clock::duration::rep> due_;  // likewise
  mutex mutex_;
  bool drawn_ MUSTER_GUARDED_BY(mutex_) = false;
  bool finished_ MUSTER_GUARDED_BY(mutex_) = false;
};

/// As pool_core::wait_helping, with `meter` shown meanwhile; nullptr: none.
bool wait_showing(pool_core& core, const std::atomic<std::uint32_t>& done, deadline until, progress_meter* meter);

}  // namespace muster::detail
