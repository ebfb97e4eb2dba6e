// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a device does in order, on a thread of its own, so that what is not waited for may not have happened yet.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include <cuda.h>

#include "devices.hpp"

namespace fake_cuda {

/// A primary context, as long as somebody has retained it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
struct context {
  context(CUdevice which, int physical_number) : device(which), physical(physical_number) {}

  const CUdevice device;
  const int physical;
  std::atomic<bool> is_destroyed = false;
  std::atomic<CUresult> broken_by = CUDA_SUCCESS;

  /// Nothing more is executed.
  [[nodiscard]] bool is_over() const { return is_destroyed || broken_by != CUDA_SUCCESS; }
  void break_by(CUresult code) {
    auto none = CUDA_SUCCESS;
    broken_by.compare_exchange_strong(none, code);
  }
};

/// How far a stream is. Outlives it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class progress {
public:
  /// The number of all that was ever queued.
  [[nodiscard]] std::uint64_t last() const;
  [[nodiscard]] bool is_done(std::uint64_t number) const;
  void wait(std::uint64_t number) const;

private:
  friend class stream;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t submitted_ = 0;
  std::uint64_t done_ = 0;
};

/// A queue, and the thread that takes from it. In a context that is over it takes without executing.
///
/// Thread safety: distinct objects: safe. Shared objects: safe. Destroy it on no stream's thread.
class stream {
public:
  /// `waits_for_default`: it is not CU_STREAM_NON_BLOCKING.
  stream(std::shared_ptr<context> in, bool waits_for_default);
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  /// Waits until all has been taken.
  ~stream();

  [[nodiscard]] const std::shared_ptr<context>& in() const { return in_; }
  [[nodiscard]] bool waits_for_default() const { return waits_for_default_; }
  [[nodiscard]] const std::shared_ptr<progress>& state() const { return state_; }

  /// Queues it; gives its number. `always`: also executed in a context that is over. Requires: not after end().
  std::uint64_t submit(std::function<void()> operation, bool always = false);

  /// Nothing more comes.
  void end();
  /// Whether all has been taken since.
  [[nodiscard]] bool has_ended() const { return has_ended_; }

private:
  void run();
  void delay();
  struct task {
    std::function<void()> what;
    bool always = false;
  };
  bool take(task& next);
  void count_one();

  const std::shared_ptr<context> in_;
  const bool waits_for_default_;
  const std::shared_ptr<progress> state_ = std::make_shared<progress>();
  std::minstd_rand random_;
  const bool has_delays_;
  std::deque<task> waiting_;  // guarded by the state's mutex
  bool ends_ = false;         // likewise
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

/// What an event was last recorded as.
struct recording {
  std::shared_ptr<progress> of;
  std::uint64_t number = 0;
  std::atomic<std::int64_t> time_ns = 0;

  [[nodiscard]] bool is_done() const { return of->is_done(number); }
};

/// Thread safety: distinct objects: safe. Shared objects: safe.
class event {
public:
  event(std::shared_ptr<context> made_in, bool takes_time) : in(std::move(made_in)), has_time(takes_time) {}

  const std::shared_ptr<context> in;
  const bool has_time;

  /// None if it was never recorded.
  [[nodiscard]] std::shared_ptr<recording> last() const {
    const std::scoped_lock lock(mutex_);
    return last_;
  }
  void set(std::shared_ptr<recording> what) {
    const std::scoped_lock lock(mutex_);
    last_ = std::move(what);
  }

private:
  mutable std::mutex mutex_;
  std::shared_ptr<recording> last_;
};

/// Whether this thread is a stream's, so that no function of the driver may be called.
[[nodiscard]] bool is_on_stream();

}  // namespace fake_cuda
