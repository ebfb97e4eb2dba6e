// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include <muster/base/clock.hpp>
#include <muster/queue/pause_log.hpp>

namespace muster::detail {

/// Notices that a thread which sleeps until some time did not run when it was to. No signal tells a process that it was
/// stopped (SIGCONT is the program's), and a stop that is over before that time would leave no trace: so the sleep is
/// cut into steps, an eighth of it each, and a step that ends late is a pause.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class pause_watch {
public:
  static constexpr int steps = 8;
  static constexpr clock::duration shortest_step = std::chrono::milliseconds(10);
  static constexpr clock::duration longest_step = std::chrono::seconds(1);
  /// As late as any thread may be.
  static constexpr clock::duration slack = std::chrono::milliseconds(10);

  /// It sleeps until `when` from now on.
  void begin(clock::time_point now, clock::time_point when) {
    when_ = when;
    step_ = std::clamp<clock::duration>((when - now) / steps, shortest_step, longest_step);
  }
  /// When the next step ends, which begins now.
  [[nodiscard]] clock::time_point next_step(clock::time_point now) {
    seen_ = now;
    due_ = std::min(when_, now + step_);
    return due_;
  }
  /// It sleeps for ever.
  void end() { due_ = clock::time_point::max(); }

  /// The pause that has just ended, once: nothing where the step ends in time, or has not ended.
  [[nodiscard]] std::optional<host_pause> look(clock::time_point now) {
    if (due_ > now || now - due_ <= slack) return std::nullopt;
    const host_pause found{.seen = std::min(seen_, due_), .due = due_, .end = now};
    seen_ = due_ = now;
    return found;
  }

private:
  clock::time_point when_;
  clock::duration step_{};
  clock::time_point seen_;
  clock::time_point due_ = clock::time_point::max();
};

}  // namespace muster::detail
