// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>

#include <muster/base/error.hpp>
#include <muster/base/requirements.hpp>

namespace muster::detail {

/// Whether something goes on beside the threads of this process that must have ended before a task has: what the task
/// has asked a device to do with memory that it was lent. Workers look here when user code has returned, and whoever
/// tells other processes that something is done looks before he does; a library that gives work away notes how it is
/// waited for. State of the process, because whoever gives work away knows of no worker, and the worker of no device.
///
/// Thread safety: safe.
/// Cost: for processes that have noted nothing, a load for each task, and for each time that others are told.
class pending_work {
public:
  using finish = void (*)();

  /// Until the next settle() there is something, and `how` waits for it.
  static void note(finish how) noexcept { noted.store(how, std::memory_order_relaxed); }
  /// Whether there is something.
  [[nodiscard]] static bool is_any() noexcept { return noted.load(std::memory_order_relaxed) != nullptr; }
  /// Waits for it, if there is something, and leaves it noted, also when it throws: other threads may be giving work
  /// away just now. Throws what `how` throws; errc::device_lost once: of such a device nobody waits for anything, so
  /// there is nothing then, until it is noted again.
  static void await() {
    auto how = noted.load(std::memory_order_relaxed);
    if (how == nullptr) return;
    try {
      how();
    } catch (const error& failure) {
      if (failure.code() == errc::device_lost) noted.compare_exchange_strong(how, nullptr, std::memory_order_relaxed);
      throw;
    }
  }
  /// Waits for it. Throws what `how` throws; there is nothing then either.
  static void settle() {
    if (const auto how = noted.exchange(nullptr, std::memory_order_relaxed)) how();
  }

private:
  // Written and read by the threads of a task, whose work is ordered by what waits for it.
  static inline constinit std::atomic<finish> noted{nullptr};
};

}  // namespace muster::detail
