// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/log.hpp>
#include <muster/base/mutex.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

/// Where a pool runs the program's callbacks: one after the other, on a thread which is started by the first; or on a
/// loop of the program's.
///
/// A callback may do anything: call the pool, wait for a future, destroy the pool. What it throws is logged. While one
/// waits (callback_pause), those behind it go on, on another thread; it goes on itself when none of them runs.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class callback_executor : public std::enable_shared_from_this<callback_executor> {
public:
  using job = std::function<void()>;

  /// How many callbacks may wait at once, less one.
  static constexpr std::size_t most_threads = 256;

  explicit callback_executor(log_sink log) : log_(callable(std::move(log))) {}
  /// Without a thread: `loop`, which must outlive stop().
  callback_executor(log_sink log, boost::asio::io_context& loop) : log_(callable(std::move(log))), loop_(&loop) {}
  callback_executor(const callback_executor&) = delete;
  callback_executor& operator=(const callback_executor&) = delete;
  ~callback_executor();

  /// Has the thread started, unless there is one. For callers who can still tell of a failure: throws muster::error
  /// where no thread can be had.
  void prepare() MUSTER_EXCLUDES(mutex_);
  /// Runs `what` soon, never inside this call; where no thread can be had, when the next job comes or at stop(); after
  /// stop(), inside it, because there is no thread any more.
  void post(const job& what) MUSTER_EXCLUDES(mutex_);
  /// The same, but after stop() nothing, and false.
  bool try_post(const job& what) MUSTER_EXCLUDES(mutex_);
  /// The same, but not before `when`, and what stop() comes before is dropped. Requires: it has a thread, not a loop.
  bool post_at(clock::time_point when, job what) MUSTER_EXCLUDES(mutex_);

  /// Runs what was posted, then ends the threads and waits for them. Called by a callback it does not wait. What was
  /// posted to a loop runs when that does.
  void stop() MUSTER_EXCLUDES(mutex_);

private:
  friend class callback_pause;

  void require_thread() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::string have_thread() MUSTER_REQUIRES(mutex_);
  void say_lack(const std::string& why) const MUSTER_EXCLUDES(mutex_);
  void add_thread() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::thread take_thread() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] deadline take_due() MUSTER_REQUIRES(mutex_);
  void work() MUSTER_EXCLUDES(mutex_);
  void run(const job& what) noexcept;
  void begin_pause() MUSTER_EXCLUDES(mutex_);
  void end_pause() noexcept MUSTER_EXCLUDES(mutex_);

  const log_sink log_;
  boost::asio::io_context* const loop_ = nullptr;
  mutex mutex_;
  condition changed_;  // for threads that have nothing to do
  condition turn_;     // for callbacks that have waited
  std::deque<job> jobs_ MUSTER_GUARDED_BY(mutex_);
  std::multimap<clock::time_point, job> later_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  bool started_ MUSTER_GUARDED_BY(mutex_) = false;   // the first thread, or nobody needs it any more
  bool running_ MUSTER_GUARDED_BY(mutex_) = false;   // a callback that does not wait
  std::size_t idle_ MUSTER_GUARDED_BY(mutex_) = 0;   // threads that wait for jobs
  std::size_t ready_ MUSTER_GUARDED_BY(mutex_) = 0;  // callbacks that have waited and are to go on
  std::vector<std::thread> threads_ MUSTER_GUARDED_BY(mutex_);
  std::size_t taken_ MUSTER_GUARDED_BY(mutex_) = 0;  // of these: the first ones, by who ends them
};

/// While it lives the callback that this thread runs, if it runs one, waits: what it waits for may be made by callbacks
/// that are behind it. Make it before locks are taken that those may want.
///
/// Thread safety: belongs to the thread that made it.
class callback_pause {
public:
  /// Throws errc::overflow when too many callbacks wait already, EAGAIN when no thread can be had for the others.
  callback_pause();
  /// For a wait until then: none, if that has passed. Throws as the constructor.
  [[nodiscard]] static callback_pause until(deadline when);
  callback_pause(const callback_pause&) = delete;
  callback_pause& operator=(const callback_pause&) = delete;
  ~callback_pause();

private:
  explicit callback_pause(callback_executor* where);

  callback_executor* const where_;
};

}  // namespace muster::detail
