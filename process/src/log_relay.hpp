// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/log.hpp>

namespace muster::detail {

/// Brings messages to a sink on a thread of its own, made with the first of them: whoever logs, the supervisor above
/// all, does not wait for a sink that waits (for a pipe that nobody empties, for a lock). Where no thread can be had,
/// who logs calls the sink.
///
/// They come in order, one at a time. While `most_waiting` wait, more are dropped, and the sink is told how many.
///
/// Thread safety: safe. To be ended in the process that made it.
class log_relay {
public:
  static constexpr std::size_t most_waiting = 1000;

  explicit log_relay(log_sink sink) : sink_(callable(std::move(sink))) {}
  log_relay(const log_relay&) = delete;
  log_relay& operator=(const log_relay&) = delete;
  ~log_relay() { end(); }

  /// Dropped after end().
  void say(log_level level, std::string message) MUSTER_EXCLUDES(mutex_);
  void operator()(log_level level, std::string message) { say(level, std::move(message)); }

  /// After this the sink is not, and will not be, called.
  /// Unblocked by: the sink, which has taken all that was said. Called again it does nothing.
  void end() MUSTER_EXCLUDES(mutex_);

private:
  struct entry {
    log_level level;
    std::string message;
  };

  [[nodiscard]] bool has_thread() MUSTER_REQUIRES(mutex_);
  void keep(entry what) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::vector<entry> take_next() MUSTER_EXCLUDES(mutex_);
  void run() MUSTER_EXCLUDES(mutex_);

  const log_sink sink_;
  mutex mutex_;
  condition changed_;
  std::vector<entry> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::size_t dropped_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
