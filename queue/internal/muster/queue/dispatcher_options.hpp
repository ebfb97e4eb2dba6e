// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/device.hpp>
#include <muster/queue/overflow_policy.hpp>

namespace muster {

/// How a dispatcher treats what it is given, and whom it tells.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct dispatcher_options {
  /// How many places there are; each task with admission::limited takes one until it has ended, and what take_place()
  /// says. 0: without limit.
  std::size_t max_pending = 0;
  overflow_policy overflow = overflow_policy::block;
  std::chrono::nanoseconds overflow_wait = std::chrono::nanoseconds::max();
  unsigned quarantine_after = 0;  ///< a task that has killed so many workers is not tried again; 0: it always is
  std::vector<device> devices{};  ///< that workers are pinned to, in turn, for errors; none: to no device
  /// Told when a task comes after audit() has said that none is left: audits are due again. Must not call back.
  std::function<void()> watch{};
  /// Told when a task was accepted that only a worker beyond the active ones may run. Must not call back.
  std::function<void(std::size_t worker)> call_back{};
  /// Told when check_times() is due, and was not due earlier. Must not call back.
  std::function<void(clock::time_point)> watch_time{};
  /// Where a loop of the program's drains: told when it is to begin, and, while it sleeps, that nobody listens any
  /// more. Must not call back.
  std::function<void()> call_loop{};
  std::function<void()> release_loop{};
};

}  // namespace muster
