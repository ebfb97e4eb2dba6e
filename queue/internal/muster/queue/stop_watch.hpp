// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <thread>

#include <muster/queue/board.hpp>
#include <muster/queue/detail/slot_word.hpp>

namespace muster {

/// Turns a request to stop a running task, which is a flag of its slot's word, into a std::stop_token of this process.
///
/// A thread sleeps on the word until the parent asks, or until this object is destroyed. Before Linux 5.16, where
/// nobody can sleep on two words, the destructor wakes it there, again and again.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the slot. Requires: it is destroyed before the task is completed.
/// Cost: a thread, started and joined.
class stop_watch {
public:
  /// `claimed`: the word with which this process has the task.
  stop_watch(task_slot& slot, const slot_word& claimed);
  stop_watch(const stop_watch&) = delete;
  stop_watch& operator=(const stop_watch&) = delete;
  /// Waits for callbacks that are under way.
  ~stop_watch();

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

private:
  void watch() noexcept;
  void sleep_while(std::uint32_t found) noexcept;
  void wake_at_slot() const noexcept;

  task_slot& slot_;
  const slot_word claimed_;
  std::stop_source source_;
  std::atomic<std::uint32_t> ended_ = 0;     // futex: the destructor has begun
  std::atomic<std::uint32_t> gone_ = 0;      // futex: the thread looks no more
  std::atomic<bool> has_slot_only_ = false;  // the thread sleeps on the slot's word alone: set by it, before it does
  std::thread thread_;
};

}  // namespace muster
