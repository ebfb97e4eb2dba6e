// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include <muster/base/detail/mutex.hpp>
#include <muster/pool/output_choice.hpp>

namespace muster::detail {

class callback_executor;

/// Brings the lines of workers from the supervisor's thread to the program's sink on the callback thread, and bounds
/// what waits in between. However many wait, there is one job for them at the executor.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class output_relay : public std::enable_shared_from_this<output_relay> {
public:
  static constexpr std::size_t most_lines = 65536;
  static constexpr std::size_t most_bytes = std::size_t{16} << 20U;

  output_relay(output_choice to, std::shared_ptr<callback_executor> callbacks)
      : to_(std::move(to)), callbacks_(std::move(callbacks)) {}
  output_relay(const output_relay&) = delete;
  output_relay& operator=(const output_relay&) = delete;

  /// Never waits, runs no user code. A line for which there is no room, or no memory, is dropped.
  void push(const worker_output& line) noexcept MUSTER_EXCLUDES(mutex_);

private:
  void deliver() MUSTER_EXCLUDES(mutex_);
  void schedule() MUSTER_REQUIRES(mutex_);

  const output_choice to_;
  const std::shared_ptr<callback_executor> callbacks_;
  mutex mutex_;
  std::deque<worker_output> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::size_t bytes_ MUSTER_GUARDED_BY(mutex_) = 0;   // in these
  bool scheduled_ MUSTER_GUARDED_BY(mutex_) = false;  // a job that looks at them is at the executor
};

}  // namespace muster::detail
