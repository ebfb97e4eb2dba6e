// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// What a library keeps when a task has ended, because the next one most likely wants it too: mappings of memory that
/// the task was lent. Workers have it dropped when the next task's own code begins, whose arguments have taken by then
/// what they want of it, and when they have slept for 10 ms: so it is never kept while a task runs that does not use
/// it, nor for long by somebody who has nothing to do. State of the process, for the reason that pending_work is.
///
/// Thread safety: safe.
/// Cost: for processes that keep nothing, a load for each task.
class kept_for_next_task {
public:
  using release = void (*)() noexcept;

  /// Until the next drop() there is something, and `how` lets it go.
  static void note(release how) noexcept { noted.store(how, std::memory_order_relaxed); }
  /// Whether there is something.
  [[nodiscard]] static bool is_any() noexcept { return noted.load(std::memory_order_relaxed) != nullptr; }
  static void drop() noexcept {
    if (!is_any()) return;
    if (const auto how = noted.exchange(nullptr, std::memory_order_relaxed)) how();
  }

private:
  // Says only that there is something: what it is has a lock of its own.
  static inline constinit std::atomic<release> noted{nullptr};
};

}  // namespace muster::detail
